import type { LimiterEvent } from "politely";

/** A grant that nobody sends a request for within this time was given back. */
const STALE_MS = 60_000;
/** An instant of the store is never this far from the moment at which it was used. */
const FAR_MS = 1_000;

/** Where the difference between the store's clock and the wall's is kept from run to run. */
export interface StoreToWall {
  storeToWallMs: number | undefined;
}

/** When a request was granted, on this process's clock (`performance.now()`). */
export interface GrantTimes {
  /** For the index: the time between two of these is the time between the instants that the limits are kept at. */
  readonly startedMs: number;
  /** For durations: never later than the moment at which this process heard of it. */
  readonly beganMs: number;
}

/**
 * Tells when each request was granted. A request is sent a moment after its grant, and two moments differ: what is written down as its
 * start is the instant that the limits are kept at, which is the store's. It is put on the wall clock by one and the same difference for
 * all runs of a folder, so that the time between two starts stays what it was, also where a run was broken off between them. That difference is of
 * the first grant ever, which may have been heard of later than others: so durations are measured by the least difference instead, or a quick
 * answer would come before its request.
 */
export class Grants {
  /** Instants of `performance.now()`, by key, the oldest first; and when this process used each. */
  readonly #granted = new Map<string, (GrantTimes & { readonly usedMs: number })[]>();
  /** This process's clock minus the store's. */
  #differenceMs: number | undefined;
  /** The least so far. */
  #leastMs = Number.POSITIVE_INFINITY;

  constructor(readonly kept: StoreToWall) {}

  /** To be given every event of the limiter. */
  heard(event: LimiterEvent): void {
    if (event.type === "grant") {
      const grant = { ...this.#timesOf(event), usedMs: event.atMs };
      const grants = this.#granted.get(event.key);
      if (grants === undefined) this.#granted.set(event.key, [grant]);
      else grants.push(grant);
    } else if (event.type === "release" && event.outcome === "unused") {
      const grants = this.#granted.get(event.key) ?? [];
      const index = grants.findIndex(({ usedMs }) => usedMs === event.startedAtMs);
      if (index >= 0) grants.splice(index, 1);
    }
  }

  #timesOf({ atMs, startedAtMs }: LimiterEvent & { type: "grant" }): GrantTimes {
    // Without a limit, or while the store is away, the instant is this process's own.
    if (startedAtMs === undefined || startedAtMs === atMs) return { startedMs: atMs, beganMs: atMs };
    this.#differenceMs ??= this.#firstDifferenceMs(atMs - startedAtMs);
    const startedMs = startedAtMs + this.#differenceMs;
    if (Math.abs(atMs - startedMs) >= FAR_MS) return { startedMs: atMs, beganMs: atMs };
    this.#leastMs = Math.min(this.#leastMs, atMs - startedAtMs);
    return { startedMs, beganMs: startedAtMs + this.#leastMs };
  }

  /** That of the runs before, unless a clock was set since. */
  #firstDifferenceMs(measuredMs: number): number {
    const { timeOrigin } = performance;
    const keptMs = (this.kept.storeToWallMs ?? Number.NaN) - timeOrigin;
    if (Math.abs(keptMs - measuredMs) < FAR_MS) return keptMs;
    this.kept.storeToWallMs = measuredMs + timeOrigin;
    return (this.kept.storeToWallMs ?? 0) - timeOrigin;
  }

  /** When the request was granted that is sent now under `key`. */
  take(key: string): GrantTimes {
    const nowMs = performance.now();
    const grants = this.#granted.get(key);
    let grant = grants?.shift();
    while (grant !== undefined && nowMs - grant.usedMs > STALE_MS) grant = grants?.shift();
    if (grants?.length === 0) this.#granted.delete(key);
    return grant ?? { startedMs: nowMs, beganMs: nowMs };
  }
}
