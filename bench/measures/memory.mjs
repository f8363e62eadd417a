// @ts-check
import { hostNames } from "../harness/hosts.mjs";
import { settledHeapBytes, sink } from "../harness/timing.mjs";
import { bare, bottleneck, effect, flexible, go, limiter, politely } from "./contenders.mjs";

const withoutStats = { name: "politely, keepStats 0", rival: "politely", options: { keepStats: 0 } };
const idle = { name: "politely, nothing owed", rival: "politely", options: { keepStats: 1000, idle: true } };

/** @type {import("./types.d.ts").Measure} */
export const memory = {
  name: "memory",
  rows: [
    {
      id: "memory",
      title: "memory per host that owes time, 1,000,000 hosts, key strings not counted",
      metrics: [{ key: "bytes", title: "bytes per host", digits: 1 }],
      contenders: [
        politely,
        withoutStats,
        { ...idle, note: "keepStats 1,000; hours later" },
        effect,
        go,
        limiter,
        flexible,
        { ...bottleneck, params: { hosts: 10_000 }, note: "measured on 10,000 hosts" },
        bare,
      ],
      params: { hosts: 1_000_000 },
      quick: { hosts: 100_000 },
      rounds: 1,
      goals: [
        { text: "at most 150 bytes, statistics included", metric: "bytes", atMost: 150 },
        { text: "at most 85 bytes with keepStats 0", metric: "bytes", of: withoutStats.name, atMost: 85 },
        { text: "at most 40 bytes once nothing is owed", metric: "bytes", of: idle.name, atMost: 40 },
      ],
    },
  ],

  async run(rival, { hosts }, options) {
    // Once with few hosts, so that code and caches are not charged to the hosts.
    sink.value = await rival.hold(hostNames(100), options);
    const names = hostNames(hosts);
    const before = await settledHeapBytes();
    sink.value = await rival.hold(names, options);
    const after = await settledHeapBytes();
    return { bytes: (after - before) / names.length };
  },
};
