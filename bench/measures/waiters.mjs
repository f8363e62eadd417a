// @ts-check
import { pacedByKey } from "../harness/pacedByKey.mjs";
import { cpuUs, ensure, heapBytes, settledHeapBytes } from "../harness/timing.mjs";
import { bare, go, limiter, politely, pQueue, pThrottle } from "./contenders.mjs";

const cpu = { key: "cpuUs", title: "CPU µs/waiter", digits: 2 };
const heap = { key: "peakMB", title: "peak heap MB", digits: 1 };
const late = { key: "lateMs", title: "last start late ms", digits: 1 };
const cancel = { key: "cancelUs", title: "µs/cancel", digits: 2 };
const cancelCpu = { key: "cancelCpuUs", title: "CPU µs/cancel", digits: 2 };
/** Rounds before the one that counts. One is not enough: all cancels of a round are over before their code is compiled. */
const WARM_UPS = 5;
const lastStartGoal = { text: "last start at most 10 ms later than the limit allows", metric: "lateMs", atMost: 10 };

/** @type {import("./types.d.ts").Measure} */
export const waiters = {
  name: "waiters",
  rows: [
    {
      id: "waiters-100k",
      title: "100,000 waiters on one host, 50,000 starts a second",
      metrics: [cpu, heap, late],
      contenders: [politely, pThrottle, limiter, go, pQueue, bare],
      params: { waiters: 100_000, keys: 1, limit: { count: 50, perMs: 1, burst: 1000 } },
      quick: { waiters: 50_000 },
      rounds: 3,
      goals: [
        { text: "at most p-throttle's CPU", metric: "cpuUs", against: pThrottle.name, atMost: 1 },
        { text: "at most p-throttle's peak heap", metric: "peakMB", against: pThrottle.name, atMost: 1 },
        lastStartGoal,
      ],
    },
    {
      id: "waiters-cancel",
      title: "100,000 waiters, 25,000 starts a second, every other waiter on one shared AbortSignal, which aborts",
      metrics: [cancel, cancelCpu, cpu, heap, late],
      contenders: [politely, go, { ...pQueue, params: { waiters: 10_000 }, note: "10,000 waiters" }, bare],
      params: { waiters: 100_000, keys: 1, limit: { count: 25, perMs: 1, burst: 500 }, cancelHalf: true },
      quick: { waiters: 50_000 },
      rounds: 3,
      goals: [{ text: "at most 1 µs for each cancel", metric: "cancelUs", atMost: 1 }, lastStartGoal],
    },
    {
      id: "waiters-10k-keys",
      title: "100,000 waiters on 10,000 hosts, 10 each, 5 starts a second each",
      metrics: [cpu, heap, late],
      contenders: [politely, pThrottle, bare],
      params: { waiters: 100_000, keys: 10_000, limit: { count: 5, perMs: 1000, burst: 1 } },
      rounds: 3,
      goals: [{ text: "at most 1.2 × p-throttle's CPU", metric: "cpuUs", against: pThrottle.name, atMost: 1.2 }],
    },
    {
      id: "waiters-2s",
      title: "10,000 waiters on one host, 5,000 starts a second",
      metrics: [cpu, heap, late],
      contenders: [politely, pThrottle, go, bare],
      params: { waiters: 10_000, keys: 1, limit: { count: 5, perMs: 1, burst: 10 } },
      rounds: 3,
      goals: [{ text: "at most 1.5 × p-throttle's CPU", metric: "cpuUs", against: pThrottle.name, atMost: 1.5 }],
    },
    {
      id: "waiters-1m",
      title: "1,000,000 waiters on one host, 200,000 starts a second",
      metrics: [cpu, heap, late],
      contenders: [politely, pThrottle, bare],
      params: { waiters: 1_000_000, keys: 1, limit: { count: 200, perMs: 1, burst: 4000 } },
      isSlow: true,
      rounds: 3,
      goals: [
        {
          text: "linear: at most 1.25 × the CPU per waiter at 100,000",
          metric: "cpuUs",
          againstRow: "waiters-100k",
          atMost: 1.25,
        },
        lastStartGoal,
      ],
    },
  ],

  async run(rival, { waiters, keys, limit, cancelHalf = false }, options) {
    const warmLimit = keys === 1 ? { count: 50, perMs: 1, burst: 10 } : { count: 50, perMs: 1000, burst: 1 };
    const warmCrowd = { waiters: 20_000, keys: Math.ceil(keys / 5), limit: warmLimit, cancelHalf };
    // As a program keeps its limiter: where nothing is left of it, V8 throws away the code that the warm-ups have made it compile.
    /** @type {unknown[]} */
    const warm = [];
    for (let round = 0; round < WARM_UPS; round++) {
      const { kept } = await standInLine(rival, warmCrowd, options);
      warm[0] = kept;
    }
    const beforeBytes = await settledHeapBytes();
    const crowd = { waiters, keys, limit, cancelHalf };
    const { peakBytes, cancelled, kept, ...rest } = await standInLine(rival, crowd, options);
    // Used here, so that it is not collected before.
    ensure(warm.length === 1 && warm[0] !== kept, "there was no warm-up");
    ensure(!cancelHalf || cancelled > waiters * 0.2, `only ${cancelled} of ${waiters} were cancelled`);
    return { ...rest, peakMB: (peakBytes - beforeBytes) / 1e6 };
  },
};

/**
 * Lets everybody queue at once, by turns on each key, then waits for the last start.
 *
 * @param {import("./types.d.ts").Rival} rival
 * @param {{ waiters: number; keys: number; limit: import("./types.d.ts").Limit; cancelHalf: boolean }} crowd
 * @param {object} options
 */
async function standInLine(rival, { waiters, keys, limit, cancelHalf }, options) {
  const line = { started: 0, cancelled: 0 };
  const startsMs = new Float64Array(waiters);
  const startKeys = new Uint32Array(waiters);
  const controller = new AbortController();
  /** @type {() => void} */
  let finish = () => {};
  /** @type {Promise<void>} */
  const finished = new Promise((resolve) => {
    finish = resolve;
  });
  const onStart = (/** @type {number} */ startedAtMs, key = 0) => {
    startsMs[line.started] = startedAtMs;
    startKeys[line.started] = key;
    if (++line.started + line.cancelled === waiters) finish();
  };
  const onCancel = () => {
    if (line.started + ++line.cancelled === waiters) finish();
  };

  const cpuAtStart = cpuUs();
  /** @type {unknown} */
  let kept;
  if (keys === 1) {
    const begin = rival.paced(limit, onStart, onCancel, options);
    for (let i = 0; i < waiters; i++) begin(cancelHalf && i % 2 ? controller.signal : undefined);
    kept = begin;
  } else {
    const begin = pacedByKey(rival, { keys, limit, options }, onStart);
    for (let i = 0; i < waiters; i++) begin(i % keys);
    kept = begin;
  }
  let peakBytes = heapBytes();
  const sampler = setInterval(() => {
    peakBytes = Math.max(peakBytes, heapBytes());
  }, 25);

  let cancelUs = Number.NaN;
  let cancelCpuUs = Number.NaN;
  if (cancelHalf) {
    // What queueing has left to collect is not the cost of cancelling.
    await settledHeapBytes();
    const cpuAtAbort = cpuUs();
    const abortMs = performance.now();
    controller.abort();
    // By the next turn of the event loop every cancelled caller has been told.
    await new Promise((resolve) => setImmediate(resolve));
    cancelUs = ((performance.now() - abortMs) * 1000) / line.cancelled;
    cancelCpuUs = (cpuUs() - cpuAtAbort) / line.cancelled;
  }
  const loopEndMs = performance.now();
  await finished;
  clearInterval(sampler);
  // Before the starts are judged: that is no work of the contender.
  const spentUs = cpuUs() - cpuAtStart;
  /** @type {number[][]} */
  const startsByKey = Array.from({ length: keys }, () => []);
  for (let i = 0; i < line.started; i++) startsByKey[startKeys[i]].push(startsMs[i]);
  return {
    cpuUs: spentUs / waiters,
    lateMs: Math.max(...startsByKey.map((starts) => lateMs(starts, loopEndMs, limit))),
    cancelUs,
    cancelCpuUs,
    cancelled: line.cancelled,
    peakBytes,
    kept: [kept, controller],
  };
}

/**
 * How much later the last start of one key is than the limit allows.
 *
 * Timers cannot fire while the loop runs that queues or cancels. From its end on, the limit allows what its bucket holds by then, and its rate.
 *
 * @param {readonly number[]} startedMs in any order
 * @param {number} loopEndMs
 * @param {import("./types.d.ts").Limit} limit
 */
function lateMs(startedMs, loopEndMs, limit) {
  const starts = Float64Array.from(startedMs).sort();
  const inLoop = starts.filter((startMs) => startMs <= loopEndMs);
  const left = Math.max(0, starts.length - inLoop.length - tokensAt(loopEndMs, inLoop, limit));
  return starts[starts.length - 1] - loopEndMs - (left * limit.perMs) / limit.count;
}

/**
 * What a bucket holds at `atMs` after starts at the given instants.
 *
 * @param {number} atMs
 * @param {Float64Array} startsMs in order
 * @param {import("./types.d.ts").Limit} limit
 */
function tokensAt(atMs, startsMs, { count, perMs, burst }) {
  let tokens = burst;
  let seenMs = startsMs[0] ?? atMs;
  for (const startMs of startsMs) {
    tokens = Math.min(burst, tokens + ((startMs - seenMs) * count) / perMs) - 1;
    seenMs = startMs;
  }
  return Math.max(0, Math.min(burst, tokens + ((atMs - seenMs) * count) / perMs));
}
