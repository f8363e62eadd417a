// @ts-check
import { pauseMs } from "../harness/timing.mjs";
import { warmUp } from "../harness/warmUp.mjs";
import { bottleneck, flexible, go, limiter, politely, politelyByCaller, pQueue, pThrottle } from "./contenders.mjs";

const contenders = [
  politely,
  politelyByCaller,
  go,
  limiter,
  pThrottle,
  { ...pThrottle, name: "p-throttle, strict", options: { strict: true } },
  pQueue,
  { ...pQueue, name: "p-queue, strict", options: { strict: true } },
  bottleneck,
  flexible,
];
const most = { key: "most", title: "most starts in a second", digits: 0 };
const forgiving = { key: "forgiving", title: "in 0.995 s", digits: 0 };
const hundredth = { key: "hundredthS", title: "100th start, s", digits: 4 };
const holds = { text: "never more than 20 in any second, no tolerance", metric: "most", atMost: 20 };
const limit = { count: 20, perMs: 1000, burst: 20, isWindow: true };
const shared = { contenders, hasRatio: false, rounds: 1, parallel: 5, capMs: 15_000 };

/** Each plan: when, in ms, how many calls are made. Fixed windows begin at the first call, so a flood just before their end is the worst. */
const plans = {
  oneThenFlood: [
    [0, 1],
    [900, 60],
  ],
  trickleThenFlood: [...Array.from({ length: 19 }, (_, i) => [i * 50, 1]), [950, 60]],
  backlog: [[0, 100]],
};

/** @type {import("./types.d.ts").Measure} */
export const window = {
  name: "window",
  rows: [
    {
      ...shared,
      id: "window-flood",
      title: "20 per second: one call, 0.9 s of nothing, then 60 at once",
      metrics: [most, forgiving],
      params: { plan: plans.oneThenFlood, limit },
      goals: [holds],
    },
    {
      ...shared,
      id: "window-trickle",
      isSlow: true,
      title: "20 per second: a call every 50 ms for 0.95 s, then 60 at once",
      metrics: [most, forgiving],
      params: { plan: plans.trickleThenFlood, limit },
      goals: [holds],
    },
    {
      ...shared,
      id: "window-backlog",
      title: "20 per second: 100 at once",
      metrics: [most, forgiving, hundredth],
      params: { plan: plans.backlog, limit },
      goals: [holds, { text: "100th start at 4.00 s", metric: "hundredthS", atMost: 4.005 }],
    },
  ],

  async run(rival, { plan, limit }, options) {
    /** @type {number[]} */
    const startsMs = [];
    await warmUp(rival, options, limit.isWindow);
    const begin = rival.paced(limit, (/** @type {number} */ atMs) => startsMs.push(atMs), undefined, options);
    const zeroMs = performance.now();
    let calls = 0;
    for (const [atMs, count] of plan) {
      if (atMs > 0) await pauseMs(zeroMs + atMs - performance.now());
      for (let i = 0; i < count; i++) begin();
      calls += count;
    }
    while (startsMs.length < calls) await pauseMs(5);
    return {
      most: mostWithin(startsMs, 1_000_000),
      forgiving: mostWithin(startsMs, 995_000),
      hundredthS: (startsMs[99] - startsMs[0]) / 1000,
    };
  },
};

/**
 * The most starts that any interval of `spanUs` holds, one of its two ends included, in whole microseconds and without tolerance.
 *
 * @param {number[]} startsMs
 * @param {number} spanUs
 */
function mostWithin(startsMs, spanUs) {
  const startsUs = startsMs.map((ms) => Math.round(ms * 1000)).sort((a, b) => a - b);
  let first = 0;
  let highest = 0;
  for (let last = 0; last < startsUs.length; last++) {
    while (startsUs[last] - startsUs[first] >= spanUs) first++;
    highest = Math.max(highest, last - first + 1);
  }
  return highest;
}
