// @ts-check
import { median, nanosecondsPerCall, sink } from "../harness/timing.mjs";
import { bare, limiter, politely, pThrottle } from "./contenders.mjs";

/** @type {import("./types.d.ts").Measure} */
export const acquire = {
  name: "acquire",
  rows: [
    {
      id: "acquire",
      title: "await acquire() that need not wait",
      metrics: [{ key: "ns", title: "ns per call", digits: 1 }],
      contenders: [politely, pThrottle, limiter, { ...bare, note: "await Promise.resolve()" }],
      params: { count: 500_000, samples: 5 },
      quick: { count: 300_000, samples: 3 },
      rounds: 5,
      goals: [{ text: "at most 1.2 × p-throttle's", metric: "ns", against: pThrottle.name, atMost: 1.2 }],
    },
  ],

  async run(rival, size, options) {
    const start = rival.awaited(options);
    const times = await nanosecondsPerCall(async (count) => {
      for (let i = 0; i < count; i++) sink.value = await start();
    }, size);
    return { ns: median(times) };
  },
};
