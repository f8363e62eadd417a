import { toUs } from "../engine/systemClock.js";
import { StoreError } from "../errors.js";
import type { LimitOperation, ReplyTo, Sender } from "../stores/operations.js";
import type { Store } from "../stores/store.js";
import type { Clock } from "../types.js";

/** The longest an answer is waited for before the operation is sent again. */
const PATIENCE_MS = 1_500;
/** A store is away once nothing has been answered for so long since the first failure, however fast it refuses. */
const AWAY_MS = 4_500;
const PAUSE_LEAST_MS = 50;
const PAUSE_MOST_MS = 500;
/** Between two looks at a store that is away: the first, and the longest. */
const LOOK_FIRST_MS = 250;
const LOOK_MOST_MS = 4_000;
/** As long as nobody has measured it, and what the first measure may be at most. */
const FIRST_TRIP_US = 2_000;
const FIRST_TRIP_MOST_US = 300_000;
/** A round trip that takes longer than twice the usual one and this counts as that. */
const RISE_MOST_US = 50_000;

/** However slow the way, a start is not used when it is older than this and a little. */
const USUAL_MOST_US = 300_000;
/** A reply that is faster by more than this shows that those before were slow, and may be slow itself. */
const FASTER_MOST_US = 10_000;
/** By how much two clocks may differ in speed. */
const DRIFT = 0.0001;

/** What a link needs. */
export interface LinkParts {
  readonly store: Store;
  readonly clock: Clock;
  /** The store is away: why. */
  onAway(failure: StoreError): void;
  /** The store may be back. Tells it what it has missed, by `send`; rejects when it is still away. */
  onBack(send: Send): Promise<void>;
  /** It is in use again. */
  onReturn(awayMs: number): void;
}

/** What an operation can be. */
type Kind = LimitOperation["kind"];
type Op<K extends Kind> = Extract<LimitOperation, { readonly kind: K }>;

/** An operation without what the link fills in. */
export type Unsent<K extends Kind> = { readonly kind: K } & Omit<Op<K>, "kind" | Exclude<keyof Sender, "asker">>;

/** A reply, with the instants of this process between which it was made. */
export interface Heard<Reply> {
  readonly reply: Reply;
  readonly number: number;
  readonly sentUs: number;
  readonly heardUs: number;
  /** When it would have been heard, had it come back as fast as the fastest lately; not before a usual round trip after it was asked for. */
  readonly freshUs: number;
}

/** Sends an operation on some keys; again by the same number, where it may have been heard. */
export type Send = <K extends Kind>(
  keys: readonly string[],
  operation: Unsent<K>,
  number?: number,
) => Promise<Heard<ReplyTo<Op<K>>>>;

/** The way to a store: sends operations until they are answered, each counts once, and knows whether the store is away. */
export class Link {
  /** Why the store is away; undefined while it is not. */
  failure: StoreError | undefined = undefined;
  /** What a reply takes, smoothed. */
  roundTripUs = FIRST_TRIP_US;
  /** How far the store's time is ahead of this process's, as the last reply said; before the first, by the wall clock. */
  offsetUs: number;
  /** The same of the reply that came back fastest lately, and when that was last looked at. */
  #fastOffsetUs = Number.NEGATIVE_INFINITY;
  #fastAtUs = 0;
  /** Numbers of operations that are not answered yet. */
  readonly #open = new Set<number>();
  #number = 0;
  /** It was heard of before. */
  #isMet = false;
  #failingSinceMs: number | undefined = undefined;
  /** What was last said since then by whoever said more than nothing. */
  #said: unknown = undefined;
  #awaySinceMs = 0;
  #lookMs = LOOK_FIRST_MS;
  #timer: unknown = undefined;
  #isClosed = false;

  constructor(readonly parts: LinkParts) {
    const { clock, store } = parts;
    this.offsetUs = store.timeline === "epoch" ? toUs(clock.wall() - clock.now()) : 0;
  }

  /** What a reply usually takes, as far as the age of a start counts. */
  get usualUs(): number {
    return Math.min(this.roundTripUs, USUAL_MOST_US);
  }

  /** Operations with a smaller number are answered, or given up. */
  get completeBefore(): number {
    const [oldest = this.#number + 1] = this.#open;
    return oldest;
  }

  /** Sends an operation. Rejects with `StoreError`: at once while the store is away and for a lasting error, else when it was tried for long enough. */
  readonly send: Send = async (keys, operation) => {
    if (this.failure !== undefined) throw this.failure;
    return this.#sendSurely(keys, operation);
  };

  /** A number for an operation that is told until it is heard. */
  newNumber(): number {
    return ++this.#number;
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== undefined) this.parts.clock.clearTimer(this.#timer);
  }

  async #sendSurely<K extends Kind>(keys: readonly string[], unsent: Unsent<K>): Promise<Heard<ReplyTo<Op<K>>>> {
    const { clock } = this.parts;
    const number = ++this.#number;
    this.#open.add(number);
    const beganMs = clock.now();
    try {
      for (let attempt = 1; ; attempt++) {
        try {
          return await this.#sendOnce(keys, unsent, number, attempt > 1);
        } catch (cause) {
          const error = this.#failed(cause);
          const isGivenUp = clock.now() - beganMs >= AWAY_MS && attempt >= 3;
          if (error.isLasting || this.#isClosed || this.failure !== undefined || isGivenUp) throw error;
          await this.#pause(Math.min(PAUSE_MOST_MS, PAUSE_LEAST_MS * attempt));
        }
      }
    } finally {
      this.#open.delete(number);
    }
  }

  async #sendOnce<K extends Kind>(
    keys: readonly string[],
    unsent: Unsent<K>,
    number: number,
    isAgain: boolean,
  ): Promise<Heard<ReplyTo<Op<K>>>> {
    const { clock, store } = this.parts;
    const sentUs = toUs(clock.now());
    const reply = await this.#within(store.transact(keys, { ...unsent, number, isAgain } as unknown as Op<K>));
    const heardUs = toUs(clock.now());
    this.#measure(heardUs - sentUs);
    this.offsetUs = reply.nowUs - heardUs;
    this.#failingSinceMs = undefined;
    this.#said = undefined;
    const usualUs = sentUs + this.roundTripUs;
    // Where clients wait for one another an answer may be long in coming, and fresh. One whose time was read a usual round trip before is fresh, too.
    const isContended = store.isContended === true;
    const heldUpUs = isContended ? Math.max(0, this.#heldUpUs(heardUs, heardUs - sentUs) - this.usualUs) : 0;
    const freshUs = isContended ? Math.max(usualUs, heardUs - heldUpUs) : usualUs;
    return { reply, number, sentUs, heardUs, freshUs };
  }

  /** By how much the last reply took longer on its way back than the fastest one lately. */
  #heldUpUs(heardUs: number, tripUs: number): number {
    // Two clocks drift apart a little.
    this.#fastOffsetUs -= (heardUs - this.#fastAtUs) * DRIFT;
    this.#fastAtUs = heardUs;
    const heldUpUs = this.#fastOffsetUs - this.offsetUs;
    // It cannot have taken longer than both ways together: then a clock was set.
    if (heldUpUs >= 0 && heldUpUs <= tripUs) return heldUpUs;
    const isFaster = heldUpUs < 0 && heldUpUs > -FASTER_MOST_US;
    this.#fastOffsetUs = this.offsetUs;
    // With nothing good to compare it with all of the time may have been its way back.
    return isFaster ? 0 : Math.max(0, tripUs - this.roundTripUs);
  }

  /** One answer that was held up does not make long what is usual. */
  #measure(tripUs: number): void {
    const usualUs = this.roundTripUs;
    if (this.#isMet) this.roundTripUs += (Math.min(tripUs, 2 * usualUs + RISE_MOST_US) - usualUs) / 8;
    else this.roundTripUs = Math.min(tripUs, FIRST_TRIP_MOST_US);
    this.#isMet = true;
  }

  /** Rejects when an answer takes too long. */
  #within<Answer>(promise: Promise<Answer>): Promise<Answer> {
    const { clock, store } = this.parts;
    return new Promise((resolve, reject) => {
      const timer = clock.setTimer(clock.now() + PATIENCE_MS, () => {
        const said: unknown = store.lastError?.() ?? this.#said;
        const because = said === undefined ? "" : ` Its client said: ${wordsOf(said)}`;
        const message = `${store.name} has not answered in ${PATIENCE_MS} ms. ${adviceFor(store)}${because}`;
        reject(new StoreError(message, { cause: said }));
      });
      promise.then(resolve, reject).finally(() => clock.clearTimer(timer));
    });
  }

  /** Notes a failure. Once nothing was answered for long enough, the store is away. */
  #failed(cause: unknown): StoreError {
    const { clock, store } = this.parts;
    const nowMs = clock.now();
    const isKnown = cause instanceof StoreError;
    this.#said = (isKnown ? cause.cause : cause) ?? this.#said;
    const error = isKnown
      ? cause
      : new StoreError(`${store.name} failed: ${wordsOf(cause)}. ${adviceFor(store)}`, { cause });
    this.#failingSinceMs ??= nowMs;
    if (error.isLasting || this.failure !== undefined || this.#isClosed) return error;
    if (nowMs - this.#failingSinceMs < AWAY_MS) return error;
    this.failure = error;
    this.#awaySinceMs = this.#failingSinceMs;
    this.#lookMs = LOOK_FIRST_MS;
    this.parts.onAway(error);
    this.#lookLater();
    return error;
  }

  #pause(ms: number): Promise<void> {
    const { clock } = this.parts;
    return new Promise((resolve) => {
      clock.setTimer(clock.now() + ms, resolve);
    });
  }

  #lookLater(): void {
    const { clock } = this.parts;
    if (this.#isClosed) return;
    this.#timer = clock.setTimer(clock.now() + this.#lookMs, () => {
      this.#timer = undefined;
      void this.#look();
    });
    clock.unref?.(this.#timer);
    this.#lookMs = Math.min(LOOK_MOST_MS, this.#lookMs * 2);
  }

  /** Tells a store that may be back what it has missed. If anything fails, it is still away. */
  async #look(): Promise<void> {
    try {
      await this.parts.onBack((keys, operation, number = ++this.#number) =>
        this.#sendOnce(keys, operation, number, false),
      );
    } catch (error) {
      if (error instanceof StoreError && error.isLasting) this.failure = error;
      this.#lookLater();
      return;
    }
    this.failure = undefined;
    this.#failingSinceMs = undefined;
    if (!this.#isClosed) this.parts.onReturn(Math.round(this.parts.clock.now() - this.#awaySinceMs));
  }
}

/** Where to look: a store with the clock of its machine has no server. */
function adviceFor({ timeline }: Store): string {
  return timeline === "machine"
    ? "Look at what else on this machine uses it."
    : "Look at the server and the network to it.";
}

/** What an error says. One that only gathers others has no words of its own. */
function wordsOf(cause: unknown): string {
  if (cause instanceof AggregateError && cause.message === "") return cause.errors.map(wordsOf).join("; ");
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}
