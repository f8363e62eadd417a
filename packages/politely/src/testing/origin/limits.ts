import { InFlight } from "./counts.js";
import type { LimitRule } from "./options.js";

/** What a limit tells its clients about itself at one instant. Instants are in microseconds of the origin's clock. */
export interface Quota {
  /** The most requests that may come at once. */
  readonly count: number;
  /** How many more would be let in right now. */
  readonly remaining: number;
  /** When all of `count` may come again. */
  readonly wholeAtUs: number;
  /** How long it takes from none remaining to all of them. */
  readonly windowUs: number;
}

/** The same under the limit's name. */
export interface NamedQuota extends Quota {
  readonly name: string;
  /** With none remaining, when the next one is let in; otherwise when all of `count` may come again. */
  readonly resetAtUs: number;
}

/** Until when an answer with `Retry-After` told somebody to stay away. */
export interface Told {
  toldUntilUs: number;
}

/** One limit of a site for one client. Time is whole microseconds and never steps back. */
export interface SiteLimit extends LimitState, Told {
  readonly name: string;
}

/** What a kind of limit does. */
interface LimitState {
  /** 0 when a request may come now; else how long until it may, if nobody else comes. Infinity: only others can tell. Asked once for each arrival. */
  waitUs(nowUs: number): number;
  /** Counts a request that every limit lets in. Gives how long the site holds it back before it starts to work on it, if it does. */
  take?(nowUs: number): number | undefined;
  /** What it says about itself; absent when it has no number of requests to say. */
  says?(nowUs: number): Quota;
  readonly inFlight?: InFlight;
  /** Whether a ban runs. */
  isBan?(nowUs: number): boolean;
}

type RuleOf<Kind extends LimitRule["kind"]> = Extract<LimitRule, { kind: Kind }>;

const dayUs = 86_400_000_000;

/** How each kind of limit begins for a new client. `wallOffsetUs` turns the clock into the origin's wall clock by addition. */
const kinds: { readonly [Kind in LimitRule["kind"]]: (rule: RuleOf<Kind>, wallOffsetUs: number) => LimitState } = {
  concurrency({ count }) {
    const inFlight = new InFlight();
    return { inFlight, waitUs: (nowUs) => (inFlight.countAt(nowUs) < count ? 0 : Number.POSITIVE_INFINITY) };
  },

  "fixed-window"({ rate: { count, perUs } }, wallOffsetUs) {
    let used = 0;
    let startUs = Number.NEGATIVE_INFINITY;
    const startAt = (nowUs: number): number => Math.floor((nowUs + wallOffsetUs) / perUs) * perUs - wallOffsetUs;
    const leftAt = (nowUs: number): number => (startAt(nowUs) === startUs ? count - used : count);
    const wholeAtUs = (nowUs: number): number => startAt(nowUs) + perUs;
    return {
      waitUs: (nowUs) => (leftAt(nowUs) > 0 ? 0 : wholeAtUs(nowUs) - nowUs),
      take(nowUs) {
        used = count - leftAt(nowUs) + 1;
        startUs = startAt(nowUs);
        return 0;
      },
      says: (nowUs) => ({ count, windowUs: perUs, remaining: leftAt(nowUs), wholeAtUs: wholeAtUs(nowUs) }),
    };
  },

  "sliding-window"({ rate: { count, perUs } }) {
    const window = new Recent(count, perUs);
    return {
      waitUs: (nowUs) => window.waitUs(nowUs),
      take: (nowUs) => window.add(nowUs),
      says(nowUs) {
        const wholeAtUs = Math.max(nowUs, window.newestUs + perUs);
        return { count, windowUs: perUs, remaining: count - window.countAt(nowUs), wholeAtUs };
      },
    };
  },

  /** Counts tokens taken and not yet back in token-microseconds: one owes `perUs`, and `count` come back each microsecond. Whole numbers only. */
  "token-bucket"({ rate: { rateCount: count, ratePerUs: perUs }, burst }) {
    let owed = 0;
    let seenUs = 0;
    const owedAt = (nowUs: number): number => Math.max(0, owed - (nowUs - seenUs) * count);
    return {
      waitUs: (nowUs) => Math.max(0, Math.ceil((owedAt(nowUs) + perUs - burst * perUs) / count)),
      take(nowUs) {
        owed = owedAt(nowUs) + perUs;
        seenUs = nowUs;
        return 0;
      },
      says(nowUs) {
        const remaining = Math.floor((burst * perUs - owedAt(nowUs)) / perUs);
        const wholeAtUs = nowUs + Math.ceil(owedAt(nowUs) / count);
        return { count: burst, windowUs: Math.ceil((burst * perUs) / count), remaining, wholeAtUs };
      },
    };
  },

  /**
   * Counts as nginx does: in whole milliseconds and thousandths of a request, rounding what leaks out down. The first
   * request has no excess. Each later one has the excess of the one before, less what leaked out since, plus one request,
   * and not below zero; it is refused when that is above the burst.
   */
  "leaky-bucket"({ rate: perSecond, burst, nodelay }) {
    const request = 1_000;
    const most = burst * request;
    let excess = -request;
    let lastMs = 0;
    const excessAt = (nowUs: number): number => {
      const leaked = Math.floor((perSecond * (Math.floor(nowUs / 1_000) - lastMs)) / 1_000);
      return Math.max(0, excess - leaked + request);
    };
    /** The first whole millisecond at which so much has leaked out since the last request. */
    const leakedAtUs = (amount: number): number => (lastMs + Math.ceil((amount * 1_000) / perSecond)) * 1_000;
    return {
      waitUs: (nowUs) => (excessAt(nowUs) <= most ? 0 : leakedAtUs(excess + request - most) - nowUs),
      take(nowUs) {
        excess = excessAt(nowUs);
        lastMs = Math.floor(nowUs / 1_000);
        return nodelay ? 0 : Math.floor((excess * 1_000) / perSecond) * 1_000;
      },
      says(nowUs) {
        const now = excessAt(nowUs);
        return {
          count: burst + 1,
          windowUs: Math.ceil(((burst + 1) * request * 1_000) / perSecond) * 1_000,
          remaining: Math.max(0, Math.floor((most - now) / request) + 1),
          wholeAtUs: now === 0 ? nowUs : leakedAtUs(excess + request),
        };
      },
    };
  },

  /** Unlike the other limits this one counts arrivals that are refused. A ban ends at its instant exactly; the count then starts from nothing. */
  "penalty-box"({ rate: { count, perUs }, banMs, lengthenMs = banMs }) {
    const banUs = Math.ceil(banMs * 1_000);
    let arrivals = new Recent(count, perUs);
    let untilUs = Number.NEGATIVE_INFINITY;
    const isBan = (nowUs: number): boolean => nowUs < untilUs;
    return {
      isBan,
      waitUs(nowUs) {
        if (isBan(nowUs)) untilUs = Math.min(untilUs + Math.ceil(lengthenMs * 1_000), nowUs + Math.max(banUs, dayUs));
        else if (arrivals.waitUs(nowUs) > 0) {
          arrivals = new Recent(count, perUs);
          untilUs = nowUs + banUs;
        } else arrivals.add(nowUs);
        return Math.max(0, untilUs - nowUs);
      },
    };
  },
};

/** Begins a limit for a new client. */
export function beginLimit(rule: LimitRule, wallOffsetUs: number): SiteLimit {
  const kind = kinds[rule.kind](rule as never, wallOffsetUs);
  return { ...kind, name: rule.name ?? rule.kind, toldUntilUs: Number.NEGATIVE_INFINITY };
}

/** What a limit says about itself, after a request has been decided; nothing when it has no number of requests to say. */
export function quotaOf(limit: SiteLimit, nowUs: number): readonly NamedQuota[] {
  const quota = limit.says?.(nowUs);
  if (quota === undefined) return [];
  const resetAtUs = quota.remaining > 0 ? quota.wholeAtUs : nowUs + limit.waitUs(nowUs);
  return [{ ...quota, name: limit.name, resetAtUs }];
}

/** The last `count` instants. */
class Recent {
  readonly #atUs: number[] = [];
  #added = 0;
  newestUs = Number.NEGATIVE_INFINITY;

  constructor(
    readonly count: number,
    readonly perUs: number,
  ) {}

  /** How many there were in (now - per, now]. */
  countAt(nowUs: number): number {
    return this.#atUs.filter((us) => us > nowUs - this.perUs).length;
  }

  /** How long until there are fewer than `count` in (t - per, t]. */
  waitUs(nowUs: number): number {
    const oldestUs = this.#atUs[this.#added % this.count] ?? Number.NEGATIVE_INFINITY;
    return Math.max(0, oldestUs + this.perUs - nowUs);
  }

  add(nowUs: number): number {
    this.#atUs[this.#added % this.count] = nowUs;
    this.#added += 1;
    this.newestUs = nowUs;
    return 0;
  }
}
