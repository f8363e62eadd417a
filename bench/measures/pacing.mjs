// @ts-check
import { pacedByKey } from "../harness/pacedByKey.mjs";
import { cpuUs, pauseMs } from "../harness/timing.mjs";
import { warmUp } from "../harness/warmUp.mjs";
import { go, limiter, politely, politelyByCaller, pThrottle } from "./contenders.mjs";

const shared = {
  metrics: [
    { key: "sharePercent", title: "% of limit used", digits: 2 },
    { key: "shortGaps", title: "gaps too short", digits: 0 },
    { key: "shortestByMs", title: "by up to ms", digits: 3 },
    { key: "cpuPercent", title: "% of a core", digits: 1 },
  ],
  contenders: [politely, politelyByCaller, limiter, pThrottle, go],
  hasRatio: false,
  rounds: 1,
  goals: [
    { text: "at least 99 % of the limit used", metric: "sharePercent", atLeast: 99 },
    { text: "no gap too short", metric: "shortGaps", atMost: 0 },
  ],
};

/** @type {import("./types.d.ts").Measure} */
export const pacing = {
  name: "pacing",
  rows: [
    {
      ...shared,
      id: "pacing-1",
      title: "50 per second, burst 1, one key with a backlog",
      params: { keys: 1, seconds: 5, limit: { count: 50, perMs: 1000, burst: 1 } },
      quick: { seconds: 1 },
      goals: [...shared.goals, { text: "under 5 % of a core", metric: "cpuPercent", atMost: 5 }],
    },
    {
      ...shared,
      id: "pacing-200",
      title: "200 keys at 10 per second each, burst 1, each with a backlog",
      params: { keys: 200, seconds: 5, limit: { count: 10, perMs: 1000, burst: 1 } },
      quick: { seconds: 1 },
    },
  ],

  async run(rival, { keys, seconds, limit }, options) {
    await warmUp(rival, options);
    /** @type {number[][]} */
    const startsMs = Array.from({ length: keys }, () => []);
    let started = 0;
    const onStart = (/** @type {number} */ atMs, /** @type {number} */ key) => {
      startsMs[key].push(atMs);
      started++;
    };
    const begin = pacedByKey(rival, { keys, limit, options }, onStart);
    const perKey = Math.round((seconds * 1000 * limit.count) / limit.perMs);
    for (let key = 0; key < keys; key++) {
      for (let i = 0; i < perKey; i++) begin(key);
      // A long loop would keep the first callers from going on, and the rivals' starts are stamped when they do.
      await new Promise((resolve) => setImmediate(resolve));
    }

    const [cpuAtStart, startMs] = [cpuUs(), performance.now()];
    while (started < perKey * keys) await pauseMs(50);
    const cpuPercent = (cpuUs() - cpuAtStart) / 10 / (performance.now() - startMs);
    return { ...judgeGaps(startsMs, limit.perMs / limit.count), cpuPercent };
  },
};

/**
 * @param {number[][]} startsMs the starts of each key
 * @param {number} gapMs
 */
function judgeGaps(startsMs, gapMs) {
  let [shares, shortGaps, shortestByUs] = [0, 0, 0];
  for (const starts of startsMs) {
    const us = starts.map((ms) => Math.round(ms * 1000));
    for (let i = 1; i < us.length; i++) {
      const missingUs = gapMs * 1000 - (us[i] - us[i - 1]);
      if (missingUs > 0) shortGaps++;
      shortestByUs = Math.max(shortestByUs, missingUs);
    }
    shares += ((us.length - 1) * gapMs * 1000) / (us[us.length - 1] - us[0]);
  }
  return { sharePercent: (100 * shares) / startsMs.length, shortGaps, shortestByMs: shortestByUs / 1000 };
}
