// @ts-check
import { ensure, median, nanosecondsPerCall } from "../harness/timing.mjs";
import { bare, go, limiter, politely } from "./contenders.mjs";

const bucketOnly = { name: "politely, bucket only", rival: "politely", options: { withRelease: true } };

/** @type {import("./types.d.ts").Measure} */
export const tryacquire = {
  name: "tryacquire",
  rows: [
    {
      id: "tryacquire",
      title: "tryAcquire, granted, one host",
      metrics: [{ key: "ns", title: "ns per call", digits: 1 }],
      contenders: [
        politely,
        go,
        limiter,
        bare,
        { name: "politely, released", rival: "politely", options: { withRelease: true } },
      ],
      params: { count: 1_000_000, samples: 5 },
      quick: { count: 500_000, samples: 3 },
      rounds: 5,
      goals: [
        { text: "at most Go's", metric: "ns", against: go.name, atMost: 1 },
        { text: "at most twice the bare minimum", metric: "ns", against: bare.name, atMost: 2 },
      ],
    },
    {
      id: "mixed",
      title: "tryAcquire and release, granted, one host with a bucket, two windows and a concurrency",
      metrics: [{ key: "ns", title: "ns per call", digits: 1 }],
      contenders: [{ ...politely, options: { withRelease: true, isMixed: true } }, bucketOnly],
      params: { count: 500_000, samples: 5 },
      quick: { count: 300_000, samples: 3 },
      rounds: 5,
      goals: [{ text: "at most 6 × the bucket alone", metric: "ns", against: bucketOnly.name, atMost: 6 }],
    },
  ],

  async run(rival, size, options) {
    const take = rival.tryOne(options);
    const times = await nanosecondsPerCall((count) => {
      let granted = 0;
      for (let i = 0; i < count; i++) if (take()) granted++;
      ensure(granted === count, `${count - granted} of ${count} calls were refused`);
    }, size);
    return { ns: median(times) };
  },
};
