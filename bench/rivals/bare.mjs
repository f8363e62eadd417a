// @ts-check
// The least that could do the job: a clock read, bucket arithmetic, a plain array of callbacks and one timer. No permit, no
// statistics, no validation, unless asked for. Nothing to use, only something to compare with.

const BURST = 1e8;
const PER_MS = 0.001;

/** @param {{ owed: number; seenAtMs: number }} bucket */
function take(bucket) {
  const nowMs = performance.now();
  const owed = Math.max(0, bucket.owed - (nowMs - bucket.seenAtMs) * PER_MS) + 1;
  if (owed > BURST) return false;
  bucket.owed = owed;
  bucket.seenAtMs = nowMs;
  return true;
}

export function tryOne() {
  const bucket = { owed: 0, seenAtMs: performance.now() };
  return () => take(bucket);
}

/** @param {{ hasPermit?: boolean }} [options] with a permit and counts, as politely has them */
export function tryMany({ hasPermit = false } = {}) {
  if (hasPermit) return tryManyCounted();
  /** @type {Map<string, { owed: number; seenAtMs: number }>} */
  const buckets = new Map();
  return (/** @type {string} */ host) => {
    let bucket = buckets.get(host);
    if (bucket === undefined) {
      bucket = { owed: 0, seenAtMs: performance.now() };
      buckets.set(host, bucket);
    }
    return take(bucket);
  };
}

/** A new bucket for each host, and a ring of names that says which one is forgotten for it. @param {{ keepStats?: number }} [options] */
export function meeting({ keepStats = 1000 } = {}) {
  /** @type {Map<string, { owed: number; seenAtMs: number }>} */
  const buckets = new Map();
  /** @type {string[]} */
  const names = Array.from({ length: keepStats }, () => "");
  let next = 0;
  return {
    meet(/** @type {string} */ host) {
      if (!buckets.has(host)) {
        buckets.delete(names[next]);
        names[next] = host;
        if (++next === keepStats) next = 0;
        buckets.set(host, { owed: 1, seenAtMs: performance.now() });
      }
      return true;
    },
    knownCount: () => buckets.size,
  };
}

class Permit {
  /** @param {string} host @param {number} row @param {number} startedAtMs */
  constructor(host, row, startedAtMs) {
    this.host = host;
    this.row = row;
    this.startedAtMs = startedAtMs;
  }
}

const WORDS = 6;
const kept = { permit: /** @type {Permit | undefined} */ (undefined), calls: 0 };

/** Rows of numbers: owed, seen at, last start, granted, first start, in flight. */
function tryManyCounted() {
  let words = new Float64Array(1024 * WORDS);
  /** @type {Map<string, number>} */
  const rows = new Map();

  /** @param {string} host */
  function rowOf(host) {
    const row = rows.size;
    rows.set(host, row);
    if (words.length <= row * WORDS) {
      const wider = new Float64Array(2 * words.length);
      wider.set(words);
      words = wider;
    }
    return row;
  }

  return (/** @type {string} */ host) => {
    const row = rows.get(host) ?? rowOf(host);
    const at = row * WORDS;
    const nowMs = performance.now();
    const owed = Math.max(0, words[at] - (nowMs - words[at + 1]) * PER_MS) + 1;
    if (owed > BURST) return false;
    words[at] = owed;
    words[at + 1] = nowMs;
    words[at + 2] = nowMs;
    if (words[at + 3] === 0) words[at + 4] = nowMs;
    words[at + 3] += 1;
    words[at + 5] += 1;
    const permit = new Permit(host, row, nowMs);
    // As politely's permits: made every time, kept now and then.
    if ((++kept.calls & 1023) === 0) kept.permit = permit;
    return permit !== undefined;
  };
}

export function awaited() {
  return () => Promise.resolve(true);
}

/** @param {string[]} hosts */
export function hold(hosts) {
  const take = tryMany();
  for (const host of hosts) take(host);
  return take;
}

/** @typedef {{ resolve: () => void; reject: (reason: unknown) => void; signal: AbortSignal | undefined }} Waiter */

/**
 * @param {{ count: number; perMs: number; burst: number }} limit
 * @param {(startedAtMs: number) => void} onStart
 * @param {() => void} [onCancel]
 */
export function paced({ count, perMs, burst }, onStart, onCancel) {
  /** @type {Waiter[]} */
  let queue = [];
  let head = 0;
  let tokens = burst;
  let seenAtMs = performance.now();
  let isArmed = false;
  /** @type {Set<AbortSignal>} */
  const watched = new Set();
  const started = () => onStart(performance.now());

  function drain() {
    isArmed = false;
    const nowMs = performance.now();
    tokens = Math.min(burst, tokens + ((nowMs - seenAtMs) * count) / perMs);
    seenAtMs = nowMs;
    while (head < queue.length && tokens >= 1) {
      queue[head++].resolve();
      tokens--;
    }
    if (head === queue.length) {
      queue = [];
      head = 0;
    } else arm();
  }

  function arm() {
    if (isArmed) return;
    isArmed = true;
    setTimeout(drain, Math.max(1, ((1 - tokens) * perMs) / count));
  }

  /** @param {AbortSignal} signal */
  function watch(signal) {
    if (watched.has(signal)) return;
    watched.add(signal);
    signal.addEventListener("abort", () => {
      const kept = [];
      for (let i = head; i < queue.length; i++) {
        if (queue[i].signal === signal) queue[i].reject(signal.reason);
        else kept.push(queue[i]);
      }
      queue = kept;
      head = 0;
    });
  }

  return (/** @type {AbortSignal} */ signal) => {
    if (signal) watch(signal);
    /** @type {Promise<void>} */
    const turn = new Promise((resolve, reject) => queue.push({ resolve, reject, signal }));
    turn.then(started, onCancel);
    arm();
  };
}
