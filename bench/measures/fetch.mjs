// @ts-check
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { ensure, median } from "../harness/timing.mjs";
import { politely } from "./contenders.mjs";

const SITE = fileURLToPath(new URL("../harness/httpSite.mjs", import.meta.url));
const CALLERS = 64;

/** @typedef {(url: string) => Promise<Response>} Fetch */

/** @type {import("./types.d.ts").Measure} */
export const fetchOverhead = {
  name: "fetch",
  rows: [
    {
      id: "fetch",
      title: "polite.fetch beside bare fetch, loopback, 64 callers, bodies read, listening and statistics on",
      metrics: [
        { key: "share", title: "% of bare fetch", digits: 1 },
        { key: "perSecond", title: "requests/s", digits: 0 },
        { key: "barePerSecond", title: "bare requests/s", digits: 0 },
      ],
      contenders: [politely],
      params: { count: 1_000, samples: 15 },
      capMs: 240_000,
      quick: { count: 1_000, samples: 7 },
      rounds: 3,
      hasRatio: false,
      goals: [{ text: "at least 92 % of bare fetch", metric: "share", atLeast: 92 }],
    },
  ],

  // Both in one process and by turns, so that the machine and the compiler treat them alike.
  async run(rival, { count, samples }, options) {
    const site = fork(SITE);
    try {
      const [port] = await once(site, "message");
      const url = `http://127.0.0.1:${port}/`;
      const polite = rival.fetching(options);
      const bare = (/** @type {string} */ address) => globalThis.fetch(address);
      for (let round = 0; round < 3; round++) {
        await perSecond(bare, url, count);
        await perSecond(polite, url, count);
      }
      /** @type {number[]} */
      const bares = [];
      /** @type {number[]} */
      const polites = [];
      for (let sample = 0; sample < samples; sample++) {
        bares.push(await perSecond(bare, url, count));
        polites.push(await perSecond(polite, url, count));
      }
      const share = median(polites.map((value, index) => (100 * value) / bares[index]));
      return { share, perSecond: median(polites), barePerSecond: median(bares) };
    } finally {
      site.kill();
    }
  },
};

/** @param {Fetch} send @param {string} url @param {number} count */
async function perSecond(send, url, count) {
  let left = count;
  const caller = async () => {
    while (left-- > 0) {
      const response = await send(url);
      ensure((await response.text()).length > 0, "an answer was empty");
    }
  };
  const startMs = performance.now();
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return (count * 1000) / (performance.now() - startMs);
}
