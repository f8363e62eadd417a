import type { HostSummary } from "./observer.js";
import type { ShortLimits } from "./shortLimits.js";

/** Hosts beyond these are counted together. */
const MAX_HOSTS = 20_000;
const OTHERS = "(other hosts)";
/** Starts of so many past seconds are told apart. */
const SECONDS = 6;

/** What happened at one host in this run. */
export interface Tally {
  requests: number;
  throttled: number;
  failed: number;
  waitedMs: number;
  inFlight: number;
  firstMs: number;
  lastMs: number;
  /** Starts by second, in a ring. */
  readonly recent: Int32Array;
  recentSec: number;
}

/** Counts what happens at each host. Times are those of `performance.now()`. */
export class HostTallies {
  readonly #tallies = new Map<string, Tally>();

  of(key: string): Tally {
    const name = this.#tallies.size < MAX_HOSTS || this.#tallies.has(key) ? key : OTHERS;
    let tally = this.#tallies.get(name);
    if (tally === undefined) {
      tally = {
        requests: 0,
        throttled: 0,
        failed: 0,
        waitedMs: 0,
        inFlight: 0,
        firstMs: Number.NaN,
        lastMs: Number.NaN,
        recent: new Int32Array(SECONDS),
        recentSec: 0,
      };
      this.#tallies.set(name, tally);
    }
    return tally;
  }

  /** A request starts. */
  started(key: string, startedMs: number, waitedMs: number): void {
    const tally = this.of(key);
    tally.requests += 1;
    tally.inFlight += 1;
    tally.waitedMs += waitedMs;
    if (tally.requests === 1) tally.firstMs = startedMs;
    tally.lastMs = startedMs;
    turnTo(tally, Math.floor(startedMs / 1_000));
    tally.recent[tally.recentSec % SECONDS] += 1;
  }

  /** Starts a second over the last five. */
  perSecLately(key: string, nowMs: number): number {
    const tally = this.of(key);
    if (tally.requests === 0) return 0;
    const second = Math.floor(nowMs / 1_000);
    turnTo(tally, second);
    let starts = 0;
    for (const count of tally.recent) starts += count;
    const spanMs = Math.min(nowMs - tally.firstMs, nowMs - (second - SECONDS + 1) * 1_000);
    return (starts * 1_000) / Math.max(spanMs, 1_000);
  }

  /** The hosts with the most requests first. */
  summaries(words: (key: string) => ShortLimits): readonly HostSummary[] {
    return [...this.#tallies]
      .filter(([, { requests }]) => requests > 0)
      .sort(([, a], [, b]) => b.requests - a.requests)
      .map(([key, tally]) => summaryOf(key, tally, words(key)));
  }
}

function summaryOf(key: string, tally: Tally, { text, perSec }: ShortLimits): HostSummary {
  const { requests, throttled, failed, waitedMs, firstMs, lastMs } = tally;
  const spanMs = lastMs - firstMs;
  return {
    key,
    requests,
    throttled,
    failed,
    waitedMs: Math.round(waitedMs),
    perSec: requests < 2 || !(spanMs > 0) ? 0 : Math.round(((requests - 1) * 1e6) / spanMs) / 1_000,
    limit: text,
    ...(perSec === undefined ? {} : { limitPerSec: perSec }),
  };
}

/** Empties the seconds of the ring that have gone by. */
function turnTo(tally: Tally, second: number): void {
  for (let turns = 0; tally.recentSec < second && turns < SECONDS; turns++) {
    tally.recentSec = turns === 0 && second - tally.recentSec > SECONDS ? second - SECONDS + 1 : tally.recentSec + 1;
    tally.recent[tally.recentSec % SECONDS] = 0;
  }
}
