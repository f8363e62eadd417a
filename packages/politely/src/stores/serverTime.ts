/** One answer of a server. `sentUs` and `receivedUs` are instants of the client's own monotonic clock, in microseconds. */
export interface HeardDate {
  /** What its `Date` said, in milliseconds since 1970. It is rounded down to a second. */
  readonly dateMs: number;
  readonly sentUs: number;
  readonly receivedUs: number;
}

/** How far clocks may be apart. */
export interface ServerTimeOptions {
  /** How much faster or slower than the server's the client's clock may run, in parts per million. Default 100. */
  readonly driftPpm?: number;
  /** How far the machines behind one address may differ from the time they share. Default 5,000. */
  readonly hostSkewUs?: number;
}

/** Between which instants the server's time is, in microseconds since 1970. */
export interface TimeBounds {
  readonly lowUs: number;
  readonly highUs: number;
}

const secondUs = 1_000_000;

/**
 * Works out a server's time from the `Date` of its answers, to about a round trip, though each says the second only.
 *
 * When an answer that took from `sentUs` to `receivedUs` says second D, the server's time was at least D when it arrived and less than
 * D + 1 s when the request left. Each answer moves these two bounds towards each other, most of all one from just before or just after
 * the server's second changes; between answers they move apart again, by the drift of both clocks. While that and the skew are what the options
 * say, the server's time is always between the bounds.
 *
 * The time it tells is the lower bound. So no client is ever ahead of the server: none starts before the instant that is written
 * in a shared state, and none writes an instant there that has not come yet and that all others would have to wait for. The price is
 * that a start is written down up to `errorUs` too early, and that the next one may follow it that much too soon. The upper bound would have the
 * same error with the opposite sign, but would have to go back when it gets better, and the lower one only ever has to go forward.
 *
 * Pure: all times are arguments. Local instants should not go back; where they do, the bounds are right, but wider.
 */
export class ServerTime {
  readonly #drift: number;
  readonly #skewUs: number;
  #low: Anchor | undefined;
  #high: Anchor | undefined;
  #lastUs = Number.NEGATIVE_INFINITY;

  constructor({ driftPpm = 100, hostSkewUs = 5_000 }: ServerTimeOptions = {}) {
    this.#drift = driftPpm / 1_000_000;
    this.#skewUs = hostSkewUs;
  }

  /**
   * Takes an answer into account. False when it contradicts the ones before: then a clock was set or stood still, they are forgotten,
   * and this one alone counts.
   *
   * An answer without a valid date, or received before it was sent, is left out.
   */
  hear({ dateMs, sentUs, receivedUs }: HeardDate): boolean {
    if (!Number.isFinite(dateMs) || !(receivedUs >= sentUs)) return true;
    const dateUs = Math.floor(dateMs / 1_000) * secondUs;
    const low = { serverUs: dateUs - this.#skewUs, localUs: receivedUs };
    const high = { serverUs: dateUs + secondUs + this.#skewUs, localUs: sentUs };

    const before = this.boundsUs(receivedUs);
    const highUs = this.#highUs(high, receivedUs);
    if (before === undefined || low.serverUs > before.highUs || highUs < before.lowUs) {
      this.#low = low;
      this.#high = high;
      return before === undefined;
    }
    if (low.serverUs > before.lowUs) this.#low = low;
    if (highUs < before.highUs) this.#high = high;
    return true;
  }

  /** Forgets what was heard, so that the next answer counts alone. The time that was told is not forgotten: it never goes back. */
  forget(): void {
    this.#low = undefined;
    this.#high = undefined;
  }

  /** Where the server's time is at a local instant; undefined before the first answer. */
  boundsUs(localUs: number): TimeBounds | undefined {
    if (this.#low === undefined || this.#high === undefined) return undefined;
    return { lowUs: this.#lowUs(this.#low, localUs), highUs: this.#highUs(this.#high, localUs) };
  }

  /** How far the bounds are apart, and so by how much the time told may be behind; Infinity before the first answer. */
  errorUs(localUs: number): number {
    const bounds = this.boundsUs(localUs);
    return bounds === undefined ? Number.POSITIVE_INFINITY : bounds.highUs - bounds.lowUs;
  }

  /**
   * The server's time, a whole number of microseconds since 1970: at most `errorUs` behind, never ahead. Undefined before the first answer.
   *
   * Never goes back. Where the server's clock was set back, it stands still until that has caught up, and so it does when all was forgotten.
   */
  nowUs(localUs: number): number | undefined {
    if (this.#low !== undefined) {
      this.#lastUs = Math.max(this.#lastUs, Math.floor(this.#lowUs(this.#low, localUs)));
    }
    return Number.isFinite(this.#lastUs) ? this.#lastUs : undefined;
  }

  /**
   * How long until an answer could tell something new: until the server's second may change. 0 when that may be so now.
   *
   * An answer at any other instant would say a second that is known already.
   */
  uncertainInUs(localUs: number): number {
    const bounds = this.boundsUs(localUs);
    if (bounds === undefined) return 0;
    const low = bounds.lowUs + this.#skewUs;
    const high = bounds.highUs - this.#skewUs;
    const nextSecondUs = (Math.floor(low / secondUs) + 1) * secondUs;
    return Math.max(0, nextSecondUs - high);
  }

  // Anchors stay where they were heard: moving them along with each answer would add up rounding errors of a quarter of a microsecond.
  #lowUs({ serverUs, localUs: fromUs }: Anchor, localUs: number): number {
    const elapsedUs = localUs - fromUs;
    return serverUs + elapsedUs * (elapsedUs < 0 ? 1 + this.#drift : 1 - this.#drift);
  }

  #highUs({ serverUs, localUs: fromUs }: Anchor, localUs: number): number {
    const elapsedUs = localUs - fromUs;
    return serverUs + elapsedUs * (elapsedUs < 0 ? 1 - this.#drift : 1 + this.#drift);
  }
}

/** A bound of the server's time at one local instant. */
interface Anchor {
  readonly serverUs: number;
  readonly localUs: number;
}
