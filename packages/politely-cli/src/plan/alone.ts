import { type Cause, type KeyLimiter, type Limits, limit } from "politely";
import { Flight, isEven, isFollowed, takesUs } from "./flight.js";
import { HORIZON_US, PlanClock } from "./planClock.js";
import { limitText, WAITS, waitNumber } from "./waits.js";

/** What a plan takes for granted. */
export interface Assumptions {
  /** How long every answer takes. */
  readonly latencyMs: number;
  /** What the calendar shows at the beginning, in milliseconds since 1970. Only quotas look at it. */
  readonly wallMs: number;
}

/** When the requests to one host start, if nothing but its own limits holds them back. */
export interface Curve {
  /** The start of each request, in milliseconds from the beginning. Shorter than asked where the plan's horizon comes first. */
  readonly starts: Float64Array;
  /** The limit each start waited for, as a number in `WAITS`; 255 for none. */
  readonly waitedFor: Uint8Array;
  /** Those limits in words, by the same number. */
  readonly texts: readonly string[];
  /** When the first start beyond `starts` is due at the earliest. Infinity when none is left. */
  readonly nextMs: number;
}

/** No limit made it wait. */
export const NONE = 255;
/** Starts between two signs of progress. */
const STEP = 4096;

/**
 * Plans `count` requests to one host, all asked for at the beginning. Yields the number of starts found since the last time.
 *
 * The first `n` starts are the same for every `count` of at least `n`: nobody passes anybody. So one curve serves all hosts with these limits.
 */
export function* planAlone(limits: Limits | undefined, count: number, assumed: Assumptions): Generator<number, Curve> {
  const starts = new Float64Array(count);
  const waitedFor = new Uint8Array(count).fill(NONE);
  const texts: string[] = WAITS.map(() => "");
  if (limits === undefined || limits.enabled === false)
    return { starts, waitedFor, texts, nextMs: Number.POSITIVE_INFINITY };
  const host = new LoneHost(limits, assumed, texts);
  const engineCount = isEven(limits) ? Math.min(count, 2) : count;
  for (let index = 0; index < engineCount; index++) {
    if (!host.startNext()) {
      const nextMs = host.clock.now();
      return { starts: starts.subarray(0, index), waitedFor: waitedFor.subarray(0, index), texts, nextMs };
    }
    starts[index] = host.clock.now();
    waitedFor[index] = host.waitedFor;
    if ((index + 1) % STEP === 0) yield STEP;
  }
  yield engineCount % STEP;
  return engineCount === count
    ? { starts, waitedFor, texts, nextMs: Number.POSITIVE_INFINITY }
    : goOnEvenly(starts, waitedFor, texts);
}

/** Continues two starts of a host whose starts are all equally far apart. */
function goOnEvenly(starts: Float64Array, waitedFor: Uint8Array, texts: readonly string[]): Curve {
  const gapUs = Math.round(starts[1] * 1000);
  waitedFor.fill(waitedFor[1], 2);
  for (let index = 2; index < starts.length; index++) {
    starts[index] = (index * gapUs) / 1000;
    if (index * gapUs <= HORIZON_US) continue;
    const nextMs = starts[index];
    return { starts: starts.subarray(0, index), waitedFor: waitedFor.subarray(0, index), texts, nextMs };
  }
  return { starts, waitedFor, texts, nextMs: Number.POSITIVE_INFINITY };
}

/** One host on a clock of its own. */
class LoneHost {
  readonly clock: PlanClock;
  /** The limit that the latest start waited for. */
  waitedFor = NONE;
  readonly #limiter: KeyLimiter;
  readonly #flight: Flight;
  readonly #isFollowed: boolean;
  readonly #hasManyWindows: boolean;

  constructor(
    limits: Limits,
    { latencyMs, wallMs }: Assumptions,
    readonly texts: string[],
  ) {
    this.clock = new PlanClock(wallMs);
    this.#limiter = limit(limits, { clock: this.clock, keepStats: 0 });
    this.#isFollowed = isFollowed(limits);
    this.#hasManyWindows = Array.isArray(limits.window) && limits.window.length > 1;
    this.#flight = new Flight(takesUs(limits, latencyMs));
  }

  /** Moves to the next start. False when it lies beyond the horizon. */
  startNext(): boolean {
    this.waitedFor = NONE;
    for (;;) {
      this.#flight.land(this.clock.nowUs);
      const permit = this.#limiter.tryAcquire();
      if (permit !== undefined) {
        // A place that nobody waits for need not be given back.
        if (this.#isFollowed) this.#flight.add(permit, 0, this.clock.nowUs);
        return true;
      }
      this.clock.moveTo(Math.max(this.clock.nowUs + 1, this.#nextUs()));
      if (this.clock.nowUs > HORIZON_US) return false;
    }
  }

  /** When to look again: never later than the start is possible. */
  #nextUs(): number {
    const { causes, waitMs } = this.#limiter.explain();
    const place = causes.find(({ limit: kind }) => kind === "concurrency");
    const cause = place ?? causes[0];
    if (cause !== undefined) this.#note(cause);
    const readyUs = this.clock.nowUs + Math.round(waitMs * 1000);
    if (!this.#isFollowed) return readyUs;
    // A place comes back with an answer, and what counts from an answer is known exactly only then.
    return place === undefined ? Math.min(this.#flight.nextUs, readyUs) : this.#flight.nextUs;
  }

  #note(cause: Cause): void {
    const number = waitNumber(cause.limit);
    this.waitedFor = number;
    if (this.texts[number] === "" || (cause.limit === "window" && this.#hasManyWindows)) {
      this.texts[number] = limitText(cause);
    }
  }
}
