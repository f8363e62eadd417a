// @ts-check
import { median } from "../harness/timing.mjs";
import { politely } from "./contenders.mjs";

/** @type {import("./types.d.ts").Measure} */
export const run = {
  name: "run",
  rows: [
    {
      id: "run",
      title: "run of an empty task beside acquire and release, one host, no wait",
      metrics: [
        { key: "times", title: "× acquire and release", digits: 2 },
        { key: "runNs", title: "ns per run", digits: 1 },
        { key: "pairNs", title: "ns per acquire and release", digits: 1 },
      ],
      contenders: [politely],
      params: { count: 200_000, samples: 9 },
      quick: { count: 100_000, samples: 5 },
      rounds: 3,
      hasRatio: false,
      goals: [{ text: "at most twice acquire and release", metric: "times", atMost: 2 }],
    },
  ],

  // Both on one limiter and by turns, so that the machine and the compiler treat them alike.
  async run(rival, { count, samples }, options) {
    const { acquire, run } = rival.tasks(options);
    const task = () => {};
    const byHand = async () => {
      for (let i = 0; i < count; i++) (await acquire()).release();
    };
    const byRun = async () => {
      for (let i = 0; i < count; i++) await run(task);
    };
    /** @type {number[]} */
    const pairs = [];
    /** @type {number[]} */
    const runs = [];
    for (let sample = -2; sample < samples; sample++) {
      const pairNs = await nanoseconds(byHand, count);
      const runNs = await nanoseconds(byRun, count);
      // The first turns are those that compile the code.
      if (sample < 0) continue;
      pairs.push(pairNs);
      runs.push(runNs);
    }
    const times = median(runs.map((value, index) => value / pairs[index]));
    return { times, runNs: median(runs), pairNs: median(pairs) };
  },
};

/** @param {() => Promise<void>} loop @param {number} count */
async function nanoseconds(loop, count) {
  const startMs = performance.now();
  await loop();
  return ((performance.now() - startMs) * 1e6) / count;
}
