// @ts-check
import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { ensure, median } from "../harness/timing.mjs";
import { politely } from "./contenders.mjs";

const COMMAND = fileURLToPath(new URL("../../packages/politely-cli/dist/bin.js", import.meta.url));
const BARE = fileURLToPath(new URL("../harness/bareGet.mjs", import.meta.url));
const SITE = fileURLToPath(new URL("../harness/httpSite.mjs", import.meta.url));
const CONCURRENCY = 32;
const SAMPLE_MS = 50;

/** @typedef {{ seconds: number; peakMb: number }} Ended */

/** @type {import("./types.d.ts").Measure} */
export const command = {
  name: "command",
  rows: [
    {
      id: "get",
      title:
        "politely get, small local pages, no limits, 32 at a time, beside an undici loop that writes the same files",
      metrics: [
        { key: "share", title: "% of the loop", digits: 0 },
        { key: "perSecond", title: "pages/s", digits: 0 },
        { key: "barePerSecond", title: "loop's pages/s", digits: 0 },
        { key: "peakMb", title: "peak MB", digits: 0 },
      ],
      contenders: [politely],
      params: { what: "get", count: 10_000, samples: 5 },
      quick: { samples: 2 },
      capMs: 180_000,
      rounds: 1,
      hasRatio: false,
      goals: [{ text: "at least 0.7 × the loop", metric: "share", atLeast: 70 }],
    },
    {
      id: "get-1m",
      title: "politely get, a list of 1,000,000 local pages to its end",
      metrics: [
        { key: "peakMb", title: "peak MB", digits: 0 },
        { key: "perSecond", title: "pages/s", digits: 0 },
      ],
      contenders: [politely],
      params: { what: "list", count: 1_000_000, samples: 1 },
      isSlow: true,
      capMs: 2_400_000,
      rounds: 1,
      hasRatio: false,
      goals: [{ text: "under 200 MB", metric: "peakMb", atMost: 200 }],
    },
    {
      id: "plan-1m",
      title: "politely plan, 1,000,000 URLs over 10,000 hosts",
      metrics: [
        { key: "seconds", title: "s", digits: 1 },
        { key: "peakMb", title: "peak MB", digits: 0 },
      ],
      contenders: [
        { ...politely, name: "one rate a host", params: { limits: { rate: "2/s", burst: 5 } } },
        {
          ...politely,
          name: "two windows and concurrency",
          params: { limits: { window: ["2/s", "60/min"], concurrency: 4 } },
        },
      ],
      params: { what: "plan", count: 1_000_000, hosts: 10_000 },
      isSlow: true,
      capMs: 120_000,
      rounds: 3,
      hasRatio: false,
      goals: [
        { text: "one rate: under 10 s", metric: "seconds", of: "one rate a host", atMost: 10 },
        { text: "windows: under 10 s", metric: "seconds", of: "two windows and concurrency", atMost: 10 },
        { text: "under 1 GB", metric: "peakMb", of: "two windows and concurrency", atMost: 1_000 },
      ],
    },
  ],

  async run(_rival, params) {
    const folder = mkdtempSync(join(tmpdir(), "politely-bench-"));
    try {
      const { what } = /** @type {typeof params & { what: string }} */ (params);
      return what === "plan" ? await plan(folder, params) : await get(folder, params, what === "get");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** @param {string} folder @param {import("./types.d.ts").Params} params @param {boolean} isCompared */
async function get(folder, { count, samples }, isCompared) {
  const site = fork(SITE);
  try {
    const [port] = await once(site, "message");
    const list = await writeList(folder, count, (index) => `http://127.0.0.1:${port}/p${index}`);
    writeFileSync(join(folder, "politely.json"), JSON.stringify({ hosts: { "127.0.0.1": { enabled: false } } }));
    /** @type {Ended[]} */
    const ours = [];
    /** @type {Ended[]} */
    const theirs = [];
    // By turns, and each in a process of its own from its start to its end.
    for (let sample = 0; sample < samples; sample++) {
      const out = join(folder, `get${sample}`);
      const args = [COMMAND, "get", list, "-o", out, "--concurrency", `${CONCURRENCY}`, "--no-robots", "-q"];
      ours.push(await timed(args, folder));
      const lines = readFileSync(join(out, "index.jsonl"), "utf8").match(/\n/g)?.length ?? 0;
      ensure(lines === count, `the index has ${lines} lines of ${count}`);
      rmSync(out, { recursive: true });
      if (!isCompared) continue;
      theirs.push(await timed([BARE, list, join(folder, `bare${sample}`), `${CONCURRENCY}`], folder));
    }
    const perSecond = median(ours.map(({ seconds }) => count / seconds));
    const peakMb = Math.max(...ours.map((each) => each.peakMb));
    if (!isCompared) return { perSecond, peakMb };
    const barePerSecond = median(theirs.map(({ seconds }) => count / seconds));
    const share = median(ours.map(({ seconds }, index) => (100 * theirs[index].seconds) / seconds));
    return { share, perSecond, barePerSecond, peakMb };
  } finally {
    site.kill();
  }
}

/** @param {string} folder @param {import("./types.d.ts").Params} params */
async function plan(folder, params) {
  const { count, hosts, limits } = /** @type {typeof params & { limits: object }} */ (params);
  const list = await writeList(folder, count, (index) => `https://host${index % hosts}.example/page/${index}`);
  writeFileSync(join(folder, "politely.json"), JSON.stringify({ default: limits }));
  const { seconds, peakMb } = await timed([COMMAND, "plan", list, "--json"], folder);
  return { seconds, peakMb };
}

/** @param {string} folder @param {number} count @param {(index: number) => string} urlOf */
async function writeList(folder, count, urlOf) {
  const path = join(folder, "list.txt");
  const stream = createWriteStream(path);
  for (let index = 0; index < count; index++) {
    if (!stream.write(`${urlOf(index)}\n`)) await once(stream, "drain");
  }
  await finished(stream.end());
  return path;
}

/**
 * Runs Node with these arguments to its end.
 *
 * @param {string[]} args
 * @param {string} cwd
 * @returns {Promise<Ended>} `peakMb` is the most resident memory seen every 50 ms
 */
function timed(args, cwd) {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    let peakMb = 0;
    const child = execFile(process.execPath, args, { cwd, maxBuffer: 1 << 28 }, (error, _stdout, stderr) => {
      clearInterval(sampler);
      if (error) reject(new Error(stderr.trim() || error.message));
      else resolve({ seconds: (performance.now() - startMs) / 1000, peakMb });
    });
    const sampler = setInterval(() => {
      try {
        const [, kb] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8")) ?? [];
        if (kb !== undefined) peakMb = Number(kb) / 1024;
      } catch {
        // It has just ended.
      }
    }, SAMPLE_MS);
  });
}
