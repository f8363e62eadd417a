import { ArrivalLog } from "./arrivalLog.js";
import type { LimitState } from "./limitState.js";

/** What a penalty box is made of. */
export interface PenaltyBoxRule {
  /** One more than this many within `perUs` starts a ban. */
  readonly count: number;
  readonly perUs: number;
  readonly banUs: number;
  /** What each call during a ban adds to it. */
  readonly lengthenUs: number;
  /** A ban never ends later than this after the call that lengthened it. At least `banUs`. */
  readonly maxBanUs: number;
  /** Only requests that another limit refused are counted. */
  readonly countsRefusals: boolean;
}

/** How an arrival met a penalty box. */
export interface Meeting {
  /** A ban was running when it came. */
  readonly wasBanned: boolean;
  /** 0: let in. Else how long the ban still lasts. */
  readonly waitUs: number;
}

/**
 * Bans a client that comes too often, and for longer when it comes during the ban.
 *
 * The arrival that is one too many is refused and starts the ban. A ban ends at its instant exactly; the count then
 * starts from nothing. Unlike the other limits this one counts arrivals that are refused.
 */
export class PenaltyBox implements LimitState {
  readonly #rule: PenaltyBoxRule;
  readonly #log = new ArrivalLog();
  #untilUs = Number.NEGATIVE_INFINITY;

  constructor(rule: PenaltyBoxRule) {
    this.#rule = rule;
  }

  /** Counts an arrival; `isRefused` says that another limit turns it away. */
  arrive(nowUs: number, isRefused: boolean): Meeting {
    const { count, perUs, banUs, lengthenUs, maxBanUs, countsRefusals } = this.#rule;
    if (nowUs < this.#untilUs) {
      this.#untilUs = Math.min(this.#untilUs + lengthenUs, nowUs + maxBanUs);
      return { wasBanned: true, waitUs: this.#untilUs - nowUs };
    }
    if (countsRefusals && !isRefused) return { wasBanned: false, waitUs: 0 };
    this.#log.dropUpTo(nowUs - perUs);
    this.#log.add(nowUs);
    if (this.#log.size <= count) return { wasBanned: false, waitUs: 0 };
    this.#log.clear();
    this.#untilUs = nowUs + banUs;
    return { wasBanned: false, waitUs: banUs };
  }

  waitUs(nowUs: number): number {
    return Math.max(0, this.#untilUs - nowUs);
  }

  take(): number {
    return 0;
  }

  quota(): undefined {
    return undefined;
  }

  isFresh(nowUs: number): boolean {
    this.#log.dropUpTo(nowUs - this.#rule.perUs);
    return this.#log.size === 0 && nowUs >= this.#untilUs;
  }
}
