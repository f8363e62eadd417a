import type { LimiterEvent } from "politely";

/** A grant that nobody sends a request for within this time was given back. */
const STALE_MS = 60_000;

/**
 * Tells when each request was granted. A request is sent a moment after its grant, and two moments differ: what is written down as its
 * start is the grant, the instant that the limits are kept at.
 */
export class Grants {
  /** Instants of `performance.now()`, by key, the oldest first. */
  readonly #granted = new Map<string, number[]>();

  /** To be given every event of the limiter. */
  heard(event: LimiterEvent): void {
    if (event.type === "grant") {
      const times = this.#granted.get(event.key);
      if (times === undefined) this.#granted.set(event.key, [event.atMs]);
      else times.push(event.atMs);
    } else if (event.type === "release" && event.outcome === "unused") {
      const times = this.#granted.get(event.key) ?? [];
      const index = times.indexOf(event.startedAtMs);
      if (index >= 0) times.splice(index, 1);
    }
  }

  /** When the request was granted that is sent now under `key`. */
  take(key: string): number {
    const nowMs = performance.now();
    const times = this.#granted.get(key);
    let atMs = times?.shift();
    while (atMs !== undefined && nowMs - atMs > STALE_MS) atMs = times?.shift();
    if (times?.length === 0) this.#granted.delete(key);
    return atMs === undefined ? nowMs : Math.min(atMs, nowMs);
  }
}
