import type { PolicyInput } from "politely";
import type { HostTallies } from "./hostTallies.js";
import type { IndexLine } from "./indexLine.js";
import type { Keys } from "./keys.js";
import type { GetProgress, GetSummary, HostProgress, HostWait } from "./observer.js";
import type { KeyCounts, QueueCounts } from "./queue/urlQueue.js";
import type { Waits } from "./waits.js";

/** So many hosts are known by their counts. */
const MAX_HOSTS = 20_000;

/** What progress is made of. */
export interface ProgressParts {
  readonly keys: Keys;
  readonly tallies: HostTallies;
  readonly waits: Waits;
  readonly policy: PolicyInput;
  /** Of all machines together; undefined where that is not known. */
  readonly concurrency: number | undefined;
}

interface HostCounts {
  total: number;
  done: number;
  failed: number;
}

/** Counts how far a run is. */
export class Progress implements GetProgress {
  total = 0;
  done = 0;
  failed = 0;
  inFlight = 0;
  bytes = 0;
  starts = 0;
  unchanged = 0;
  finishedBefore = 0;
  isStopping = false;
  readonly beganAtMs = performance.now();
  readonly policy: PolicyInput;
  readonly concurrency: number | undefined;
  readonly #hosts = new Map<string, HostCounts>();

  constructor(readonly parts: ProgressParts) {
    this.policy = parts.policy;
    this.concurrency = parts.concurrency;
  }

  /** Takes the counts of the list as they are now. */
  counted({ total, fetched, refused, failed }: QueueCounts): void {
    this.total = total;
    this.done = fetched + refused + failed;
    this.failed = refused + failed;
  }

  /** Takes the counts of hosts as they are now, at most 20,000. */
  countedHosts(counts: readonly KeyCounts[]): void {
    this.#hosts.clear();
    for (const { key, total, fetched, refused, failed } of counts.slice(0, MAX_HOSTS)) {
      this.#hosts.set(key, { total, done: fetched + refused + failed, failed: refused + failed });
    }
  }

  /** A URL has ended. */
  ended({ key, outcome, bytes }: IndexLine): void {
    const isFailed = outcome === "failed" || outcome === "refused";
    this.done += 1;
    if (isFailed) this.failed += 1;
    if (outcome === "unchanged") this.unchanged += 1;
    if (outcome === "fetched") this.bytes += bytes;
    if (isFailed) this.parts.tallies.of(key).failed += 1;
    const host = this.#hosts.get(key);
    if (host === undefined) return;
    host.done += 1;
    if (isFailed) host.failed += 1;
  }

  hosts(): readonly HostProgress[] {
    const { keys, tallies } = this.parts;
    const nowMs = performance.now();
    const hosts: HostProgress[] = [];
    for (const [key, { total, done, failed }] of this.#hosts) {
      if (done >= total && !(nowMs - tallies.of(key).lastMs < LINGER_MS)) continue;
      const { inFlight } = tallies.of(key);
      const startsPerSec = tallies.perSecLately(key, nowMs);
      hosts.push({ key, total, done, failed, inFlight, startsPerSec, limit: keys.words(key).text });
    }
    return hosts;
  }

  waits(keys: readonly string[]): ReadonlyMap<string, HostWait> {
    return this.parts.waits.of(keys);
  }

  left(): ReadonlyMap<string, number> {
    const left = new Map<string, number>();
    for (const [key, { total, done }] of this.#hosts) if (total > done) left.set(key, total - done);
    return left;
  }

  /** How the run ended. */
  summary(): GetSummary {
    const { total, done, failed, unchanged, starts: requests, bytes, finishedBefore, isStopping: isStopped } = this;
    const { keys, tallies } = this.parts;
    return {
      type: "summary",
      total,
      fetched: done - failed,
      unchanged,
      failed,
      left: total - done,
      finishedBefore,
      requests,
      bytes,
      tookMs: Math.round(performance.now() - this.beganAtMs),
      isStopped,
      hosts: tallies.summaries((key) => keys.words(key)),
    };
  }
}

const LINGER_MS = 3_000;
