// @ts-check
import { hostNames, shuffled } from "../harness/hosts.mjs";
import { ensure, median, nanosecondsPerCall } from "../harness/timing.mjs";
import { bare, bareWithPermit, go, limiter, politely } from "./contenders.mjs";

const metrics = [{ key: "ns", title: "ns per call", digits: 1 }];
const contenders = [politely, go, limiter, bare, bareWithPermit];

/** @type {import("./types.d.ts").Measure} */
export const hosts = {
  name: "hosts",
  rows: [
    {
      id: "hosts-10k",
      title: "tryAcquire, granted, 10,000 hosts in random order",
      metrics,
      contenders,
      params: { hosts: 10_000, count: 500_000, samples: 5 },
      quick: { samples: 3 },
      rounds: 5,
      goals: [{ text: "at most Go's", metric: "ns", against: go.name, atMost: 1 }],
    },
    {
      id: "hosts-1m",
      title: "tryAcquire, granted, 1,000,000 hosts in random order",
      metrics,
      contenders,
      params: { hosts: 1_000_000, count: 500_000, samples: 2 },
      isSlow: true,
      rounds: 3,
      goals: [{ text: "at most 1.2 × Go's", metric: "ns", against: go.name, atMost: 1.2 }],
    },
  ],

  async run(rival, { hosts, ...size }, options) {
    const names = hostNames(hosts);
    const order = shuffled(hosts);
    const take = rival.tryMany(options);
    for (const name of names) take(name);
    let next = 0;
    const times = await nanosecondsPerCall((count) => {
      let granted = 0;
      for (let i = 0; i < count; i++) {
        if (take(names[order[next]])) granted++;
        if (++next === hosts) next = 0;
      }
      ensure(granted === count, `${count - granted} of ${count} calls were refused`);
    }, size);
    return { ns: median(times) };
  },
};
