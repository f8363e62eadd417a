// @ts-check
import { hostNames } from "../harness/hosts.mjs";
import { ensure, median, nanosecondsPerCall, pauseMs } from "../harness/timing.mjs";
import { bare, politely } from "./contenders.mjs";

const KEPT = 1000;
const options = { keepStats: KEPT };

/** @type {import("./types.d.ts").Measure} */
export const newHost = {
  name: "new-host",
  rows: [
    {
      id: "new-host",
      title: "a host never seen before, after 100,000 others, of which 1,000 are remembered: one start and its release",
      metrics: [{ key: "us", title: "µs per new host", digits: 2 }],
      contenders: [
        { ...politely, options },
        { ...bare, options, note: "a map and a ring of names" },
      ],
      params: { count: 100_000, samples: 5 },
      quick: { count: 50_000, samples: 3 },
      rounds: 3,
      goals: [{ text: "at most 3 µs", metric: "us", atMost: 3 }],
    },
  ],

  async run(rival, { count, samples }, options) {
    const names = hostNames(count * (samples + 1));
    const { meet, knownCount } = rival.meeting(options);
    let next = 0;
    const times = await nanosecondsPerCall(
      (count) => {
        let granted = 0;
        for (let i = 0; i < count; i++) if (meet(names[next++])) granted++;
        ensure(granted === count, `${count - granted} of ${count} calls were refused`);
      },
      { count, samples },
    );
    // Until then the last ones owe time.
    await pauseMs(5);
    const known = knownCount();
    ensure(known <= KEPT, `${known} hosts are remembered, not ${KEPT}`);
    return { us: median(times) / 1000 };
  },
};
