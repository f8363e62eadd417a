import type { LimiterEvent } from "politely";
import type { Ticker } from "../view/ticker.js";
import { keepLatest } from "./keepLatest.js";
import type { ServiceLimiter } from "./serviceLimiter.js";

/** As many as hosts have statistics of their own. */
const KEPT_MOST = 20_000;

/**
 * The cooldowns that a limiter tells of, by host: those that answers told to this service began or lengthened.
 *
 * With a store they are in the store, which is asked for one host at a time; the limiter's statistics of all hosts do not have them. The last 20,000 are kept.
 */
export class HeardCooldowns {
  readonly #endsAtMs = new Map<string, number>();
  readonly #stop: () => void;

  constructor(
    limiter: Pick<ServiceLimiter, "subscribe">,
    readonly ticker: Pick<Ticker, "nowMs">,
  ) {
    this.#stop = limiter.subscribe((event) => this.#hear(event));
  }

  /** How long a host is still to be left alone, in whole milliseconds; undefined when nothing of that is known here. */
  leftMs(host: string): number | undefined {
    const leftMs = Math.round((this.#endsAtMs.get(host) ?? 0) - this.ticker.nowMs());
    return leftMs > 0 ? leftMs : undefined;
  }

  /** Hears nothing any more. */
  close(): void {
    this.#stop();
  }

  #hear(event: LimiterEvent): void {
    if (event.type !== "cooldown") return;
    const { key, atMs, untilMs } = event;
    const endsAtMs = this.ticker.nowMs() + untilMs - atMs;
    const knownMs = this.#endsAtMs.get(key) ?? endsAtMs;
    keepLatest(this.#endsAtMs, key, Math.max(knownMs, endsAtMs), KEPT_MOST);
  }
}
