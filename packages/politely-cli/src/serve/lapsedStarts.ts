import type { LimiterEvent } from "politely";
import type { Ticker } from "../view/ticker.js";
import { keepLatest } from "./keepLatest.js";
import type { ServiceLimiter, ServicePermit } from "./serviceLimiter.js";

/** As many as there are permits at most. */
const KEPT_MOST = 100_000;

/**
 * The starts whose places a limiter in memory has freed by itself, at `maxHold`, by key and instant: two of one key and instant lapse together.
 *
 * The last 100,000 are kept. Permits of a limiter with a store have instants of another timeline, and say themselves when they have lapsed.
 */
export class LapsedStarts {
  readonly #atMs = new Map<string, number>();
  readonly #stop: () => void;

  constructor(
    limiter: Pick<ServiceLimiter, "subscribe">,
    readonly ticker: Pick<Ticker, "nowMs">,
  ) {
    this.#stop = limiter.subscribe((event) => this.#hear(event));
  }

  /** When the place of a permit was found free, on the ticker's clock; undefined when it was not. */
  lapsedAtMs({ key, startedAtMs }: ServicePermit): number | undefined {
    return this.#atMs.size === 0 ? undefined : this.#atMs.get(nameOf(key, startedAtMs));
  }

  /** Hears nothing any more. */
  close(): void {
    this.#stop();
  }

  #hear(event: LimiterEvent): void {
    if (event.type !== "expire" || event.what !== "permit") return;
    keepLatest(this.#atMs, nameOf(event.key, event.atMs - event.afterMs), this.ticker.nowMs(), KEPT_MOST);
  }
}

/** Instants are whole microseconds, but a difference of two is not exact. */
function nameOf(key: string, startedAtMs: number): string {
  return `${Math.round(startedAtMs * 1_000)} ${key}`;
}
