// @ts-check
import { politely } from "politely";
import { ensure, sink } from "../harness/timing.mjs";

/** Never refuses in a benchmark, and a host that was called once owes time for as long as it runs. */
const NEVER_REFUSES = { rate: /** @type {const} */ ("1/s"), burst: 1e8 };
const HOST = "h0.example.com";
/** A bucket, two windows and a concurrency, none of which refuses in a benchmark either. */
const MIXED = {
  ...NEVER_REFUSES,
  window: [
    { count: 1e7, per: "1s" },
    { count: 1e9, per: "1m" },
  ],
  concurrency: 1000,
};

/** @param {{ withRelease?: boolean; isMixed?: boolean }} options mixed: two windows and a concurrency beside the bucket */
export function tryOne({ withRelease = false, isMixed = false } = {}) {
  const limiter = politely({ default: isMixed ? MIXED : NEVER_REFUSES });
  if (!withRelease) return () => kept(limiter.tryAcquire(HOST));
  return () => {
    const permit = limiter.tryAcquire(HOST);
    permit?.release();
    return kept(permit);
  };
}

export function tryMany() {
  const limiter = politely({ default: NEVER_REFUSES }, { maxKeys: 2_000_000 });
  return (/** @type {string} */ host) => kept(limiter.tryAcquire(host));
}

export function awaited() {
  const limiter = politely({ default: NEVER_REFUSES });
  return () => limiter.acquire(HOST);
}

export function tasks() {
  const limiter = politely({ default: NEVER_REFUSES });
  return {
    acquire: () => limiter.acquire(HOST),
    run: (/** @type {() => void} */ task) => limiter.run(HOST, task),
  };
}

/** A host owes nothing a millisecond after its start. @param {{ keepStats?: number }} options */
export function meeting({ keepStats }) {
  const limiter = politely({ default: { minDelay: "1ms" } }, { keepStats });
  return {
    meet(/** @type {string} */ host) {
      const permit = limiter.tryAcquire(host);
      permit?.release();
      return kept(permit);
    },
    knownCount: () => limiter.stats().filter(({ foldedHosts }) => foldedHosts === undefined).length,
  };
}

export function fetching() {
  const limiter = politely({ hosts: { "127.0.0.1": { rate: "1000000/s", burst: 1_000_000, concurrency: 64 } } });
  return (/** @type {string} */ url) => limiter.fetch(url);
}

/** @param {string[]} hosts @param {{ keepStats?: number; idle?: boolean }} options */
export function hold(hosts, { keepStats, idle = false }) {
  const clock = movableClock();
  const limiter = politely(
    { default: { rate: "1/h" } },
    { ...(keepStats === undefined ? {} : { keepStats }), ...(idle ? { clock } : {}) },
  );
  for (const host of hosts) ensure(limiter.tryAcquire(host) !== undefined, `${host} was refused its first start`);
  for (const host of hosts.slice(0, 1000))
    ensure(!limiter.check(host).proceed, `${host} was forgotten while it owed time`);
  if (idle) {
    clock.advance(2 * 3_600_000);
    foldIdle(limiter);
    for (const host of hosts.slice(0, 10)) limiter.tryAcquire(host);
    clock.advance(2 * 3_600_000);
    foldIdle(limiter);
  }
  return limiter;
}

/** Hosts that owe nothing go when they are looked at, and `eachStats` looks at every one. @param {import("politely").Limiter} limiter */
function foldIdle(limiter) {
  let rows = 0;
  for (const _ of limiter.eachStats()) rows += 1;
  ensure(rows > 0, "there were no statistics");
}

/**
 * A start counts from `permit.startedAtMs`; with `byCaller`, from the moment the caller goes on.
 *
 * @param {{ count: number; perMs: number; burst: number; isWindow?: boolean }} limit
 * @param {(startedAtMs: number) => void} onStart
 * @param {() => void} [onCancel]
 * @param {{ byCaller?: boolean }} [options]
 */
export function paced({ count, perMs, burst, isWindow = false }, onStart, onCancel, { byCaller = false } = {}) {
  const rate = { count, per: perMs };
  const limits = isWindow ? { window: rate } : { rate, burst };
  const limiter = politely({ default: { ...limits, maxQueue: 2_000_000 } });
  const onPermit = byCaller
    ? () => onStart(performance.now())
    : (/** @type {{ startedAtMs: number }} */ permit) => onStart(permit.startedAtMs);
  return (/** @type {AbortSignal | undefined} */ signal) => {
    limiter.acquire(HOST, signal && { signal }).then(onPermit, onCancel);
  };
}

/**
 * The same for many hosts of one limiter.
 *
 * @param {{ count: number; perMs: number; burst: number }} limit
 * @param {(startedAtMs: number, key: number) => void} onStart
 * @param {{ byCaller?: boolean }} [options]
 */
export function pacedKeys({ count, perMs, burst }, onStart, { byCaller = false } = {}) {
  const limiter = politely({ default: { rate: { count, per: perMs }, burst } });
  return (/** @type {number} */ key) => {
    limiter
      .acquire(`h${key}.example.com`)
      .then((permit) => onStart(byCaller ? performance.now() : permit.startedAtMs, key));
  };
}

let calls = 0;

/**
 * Lets the permit leave the loop now and then, so that it has to be made every time. Not each time: that would measure what
 * the collector does when an old object is made to point to a new one, which no caller does with its permits.
 *
 * @param {unknown} permit
 */
function kept(permit) {
  calls += 1;
  if ((calls & 1023) === 0) sink.value = permit;
  return permit !== undefined;
}

/** A clock that stands still until told to move, and then runs the timers that fall due, in order. */
function movableClock() {
  let nowMs = 1000;
  /** @type {Set<{ atMs: number; fn: () => void }>} */
  const timers = new Set();
  return {
    now: () => nowMs,
    wall: () => 1_800_000_000_000 + nowMs,
    setTimer(/** @type {number} */ atMs, /** @type {() => void} */ fn) {
      const timer = { atMs, fn };
      timers.add(timer);
      return timer;
    },
    clearTimer(/** @type {unknown} */ timer) {
      timers.delete(/** @type {{ atMs: number; fn: () => void }} */ (timer));
    },
    advance(/** @type {number} */ ms) {
      const endMs = nowMs + ms;
      for (;;) {
        const due = [...timers].filter((timer) => timer.atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0];
        if (!due) break;
        timers.delete(due);
        nowMs = Math.max(nowMs, due.atMs);
        due.fn();
      }
      nowMs = endMs;
    },
  };
}
