import { StoreError } from "../../errors.js";
import type { DynamodbClient } from "../dynamodb.js";
import { ServerTime } from "../serverTime.js";
import type { PlaceTime } from "../swapCells.js";

/** The part of an answer that is read. */
interface HeardResponse {
  readonly response?: { readonly headers?: Readonly<Record<string, string>> };
}

type Handler = (request: unknown) => Promise<HeardResponse>;

/** Narrowing ends here, even if the bounds are wider than they should be. That is put up with for some minutes, then it is tried again. */
const narrowAtMostMs = 3_000;
const acceptForMs = 300_000;
/** Narrowing goes on until the error is this part of what is allowed, so that it is not needed again soon. */
const aimedPart = 0.6;
/** One answer gives bounds a second and a round trip apart. Whoever may be this far behind is content with it, and never reads for more. */
const secondUs = 1_000_000;
const oneAnswerUs = 1_050_000;
/** The bounds can get as close as two round trips, and what the machines behind one address may differ by. With one to spare: */
const fewestRoundTrips = 3;
const hostsDifferUs = 10_000;
/** How much more than the least that can be had is put up with. */
const slack = 1.5;
/** A wall clock that goes this much faster or slower than the monotonic one, and this much more, says that one of them stood still or was set. */
const steppedMs = 100;
const steppedRate = 0.001;

/**
 * DynamoDB's time, from the `Date` of all answers that a client gets.
 *
 * One for each client, however many stores use it. What it tells is never ahead, and says how far it may be behind. It goes back only when answers say that
 * DynamoDB's clock was set back: whoever went on by the old time would be ahead of all who begin later.
 *
 * The answer that brings what another client wrote says in which second that was. So a client is behind what it knows of others by 1,010 ms at most, over a slow way
 * too, and `decide` does not take it for a clock that was set back.
 */
export class AnswerClock {
  static readonly #clocks = new WeakMap<DynamodbClient, AnswerClock>();

  #time = new ServerTime();
  #narrowing: Promise<void> | undefined;
  #fastestUs = Number.POSITIVE_INFINITY;
  /** What has to be put up with until then, since narrowing did not reach less. */
  #acceptedUs = 0;
  #acceptedUntilMs = 0;
  #datesHeard = 0;
  #heardAtMs = 0;
  /** The wall clock less the monotonic one, when an answer was last heard. Its changes count, not its value. */
  #wallLeadMs: number | undefined;

  /** The clock of a client. Adds a middleware to the client that listens to its answers. */
  static of(client: DynamodbClient): AnswerClock {
    const known = AnswerClock.#clocks.get(client);
    if (known !== undefined) return known;
    const clock = new AnswerClock();
    const listen = (next: Handler): Handler => {
      return async (request) => {
        const sentMs = performance.now();
        const answer = await next(request);
        clock.hear(answer.response?.headers?.date, sentMs, performance.now());
        return answer;
      };
    };
    // Next to the wire: within each try, and before an answer that says no becomes an error.
    client.middlewareStack.add(listen as never, { step: "deserialize", priority: "low" } as never);
    AnswerClock.#clocks.set(client, clock);
    return clock;
  }

  /** Takes the `Date` of an answer into account. Instants are those of `performance.now()`. */
  hear(date: string | undefined, sentMs: number, receivedMs: number): void {
    const dateMs = Date.parse(date ?? "");
    if (Number.isNaN(dateMs)) return;
    this.#datesHeard += 1;
    const wasStepped = this.#distrustIfStepped();
    this.#heardAtMs = receivedMs;
    this.#wallLeadMs = Date.now() - receivedMs;
    // It may have been under way while the clock stood still, and be as old as that took.
    if (wasStepped) return;
    this.#fastestUs = Math.min(this.#fastestUs, (receivedMs - sentMs) * 1_000);
    const heard = { dateMs, sentUs: sentMs * 1_000, receivedUs: receivedMs * 1_000 };
    if (this.#time.hear(heard)) return;
    this.#time = new ServerTime();
    this.#time.hear(heard);
  }

  /** Whether the time is known to `errorUs`, or about as well as it can be. */
  isSettled(errorUs: number): boolean {
    this.#distrustIfStepped();
    const reachedUs = this.#errorUs();
    if (reachedUs === Number.POSITIVE_INFINITY) return false;
    if (reachedUs <= Math.max(errorUs, this.#toleratedUs(errorUs))) return true;
    return reachedUs <= this.#acceptedUs && performance.now() < this.#acceptedUntilMs;
  }

  /**
   * Reads with `ask` until the time is known to `errorUs`, for 3 s at most. Does nothing when it is.
   *
   * Rejects with what `ask` rejects with, or when its answers have no `Date`.
   */
  async settle(errorUs: number, ask: () => Promise<unknown>): Promise<void> {
    if (this.isSettled(errorUs)) return;
    this.#narrowing ??= this.#narrow(errorUs, ask).finally(() => {
      this.#narrowing = undefined;
    });
    await this.#narrowing;
  }

  /** What time it is by DynamoDB's clock, and how well that is known. */
  read(): PlaceTime {
    const localUs = performance.now() * 1_000;
    const nowUs = this.#time.nowUs(localUs);
    const bounds = this.#time.boundsUs(localUs);
    if (nowUs === undefined || bounds === undefined) {
      throw new StoreError("DynamoDB's time is not known yet. This is a bug of politely.");
    }
    return { nowUs, errorUs: Math.max(0, Math.ceil(bounds.highUs - nowUs)) };
  }

  /** Asks around the instants at which the server's second changes, since other answers tell nothing new. */
  async #narrow(errorUs: number, ask: () => Promise<unknown>): Promise<void> {
    const giveUpMs = performance.now() + narrowAtMostMs;
    for (;;) {
      const heardBefore = this.#datesHeard;
      await ask();
      if (this.#datesHeard === heardBefore) {
        throw new StoreError(
          "DynamoDB's answers carry no Date that can be read, so the store does not know the time. If a proxy removes the header, let it through.",
        );
      }
      if (errorUs >= oneAnswerUs && this.isSettled(errorUs)) return;
      const aimUs = Math.max(errorUs * aimedPart, this.#narrowedUs());
      const reachedUs = this.#errorUs();
      if (reachedUs <= aimUs) return;
      if (performance.now() >= giveUpMs) {
        this.#acceptedUs = reachedUs * slack;
        this.#acceptedUntilMs = giveUpMs + acceptForMs;
        return;
      }
      const uncertainInUs = this.#time.uncertainInUs(performance.now() * 1_000);
      await pause(Math.max(uncertainInUs, Math.min(aimUs, reachedUs) / 4) / 1_000);
    }
  }

  /** What a slow way makes of an error that was asked for: 4.5 round trips and 15 ms; or what one answer tells, 1.5 and 1,015 ms, where that is less or enough. */
  #toleratedUs(errorUs: number): number {
    const toldUs = secondUs + (this.#fastestUs + hostsDifferUs) * slack;
    return errorUs >= oneAnswerUs ? toldUs : Math.min(toldUs, this.#narrowedUs() * slack);
  }

  /** About the least error that many answers leave over this way. */
  #narrowedUs(): number {
    return this.#fastestUs * fewestRoundTrips + hostsDifferUs;
  }

  #errorUs(): number {
    return this.#time.errorUs(performance.now() * 1_000);
  }

  /** A monotonic clock stands still while a machine or a function is suspended. The wall clock tells, though not what time it is. */
  #distrustIfStepped(): boolean {
    if (this.#wallLeadMs === undefined) return false;
    const nowMs = performance.now();
    const strayedMs = Math.abs(Date.now() - nowMs - this.#wallLeadMs);
    const wasStepped = strayedMs > steppedMs + (nowMs - this.#heardAtMs) * steppedRate;
    if (wasStepped) this.#time.forget();
    return wasStepped;
  }
}

/** Resolves after `ms` milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
