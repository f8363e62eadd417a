import { toUs } from "../../engine/systemClock.js";
import { StoreError } from "../../errors.js";
import { MEMO_US } from "../../shared/decide.js";
import type { Operation, ReplyTo, Sender, SettleOperation, TakeOperation, TakeReply } from "../../shared/operation.js";
import type { Store } from "../../stores/store.js";
import type { Clock } from "../../types.js";
import { AskerNumbers } from "./askers.js";
import {
  again,
  answerName,
  askUntil,
  bareAnswer,
  isGift,
  isHoldAnswer,
  latestOf,
  NOBODY,
  trial,
} from "./linkAnswers.js";
import { Backlog, type Kept } from "./linkBacklog.js";
import { SilenceError, unexpected } from "./linkErrors.js";
import { within } from "./within.js";

/** The longest an answer is waited for before the operation is sent again. */
const PATIENCE_MS = 1_500;
/** How often an operation is sent before the store counts as away. */
const ATTEMPTS = 3;
const PAUSE_MS = 50;
/** Between two looks at a store that is away: the first, and the longest. */
const LOOK_FIRST_MS = 250;
const LOOK_MOST_MS = 4_000;
/** The key of the operation that tries whether the store can write. */
const TRIAL_KEY = "trial";

/** What a link needs. */
export interface LinkParts {
  readonly store: Store;
  readonly clock: Clock;
  /** Names this process among those who share the store. */
  readonly process: string;
  /** The store is away, or back. */
  readonly onOutage: (message: string, isAway: boolean) => void;
  /** Something could not be told, and never can. */
  readonly onLost: (key: string, message: string) => void;
}

/** Makes an operation for whoever sends it. */
export type MakeOperation<Op> = (sender: Sender) => Op;

/** An operation that may be sent several times, and counts once. */
interface Errand<Op extends Operation> {
  /** The operation as it is now: how long ago things were changes. */
  make(): Op;
  send(): Promise<ReplyTo<Op>>;
  /** It will not be sent again. */
  end(): void;
}

/** Sends an operation, whether or not the store counts as away. */
export type SendSurely = <Op extends Operation>(
  keys: readonly string[],
  make: MakeOperation<Op>,
) => Promise<ReplyTo<Op>>;

/** Who knows of places that this process holds, and the store may have forgotten. */
export interface PlaceKeeper {
  /** Whether that is so at one of these keys. */
  isShort(storeKeys: readonly string[]): boolean;
  /** Gets them back. Resolves to what is in the way, and so in the way of everything else there; undefined when nothing is. */
  regain(storeKeys: readonly string[]): Promise<TakeReply | undefined>;
  /** The store is back, and nothing has been asked yet. */
  renewAll(send: SendSurely): Promise<void>;
}

/**
 * The way to the store: sends operations, again when a reply is lost, and knows whether the store is there.
 *
 * Every call ends within a bounded time, at most `ATTEMPTS` times the patience. What must not get lost while the store is
 * away is sent when it is back, before anything else.
 */
export class Link {
  /** The usual time for an answer. */
  roundTripUs = 500;
  /** Store time minus this process's, as of the last answer; undefined before the first. */
  offsetUs: number | undefined = undefined;
  /** Why the store counts as away; undefined while it does not. */
  failure: StoreError | undefined = undefined;
  /** Operations sent, for those who count. */
  calls = 0;
  #isClosed = false;
  #isTelling = false;
  #lookMs = LOOK_FIRST_MS;
  #timer: unknown = undefined;
  #awaySinceMs = 0;
  #sequence = 0;
  readonly #askers = new AskerNumbers();
  /** What the store has missed. */
  readonly backlog: Backlog;
  /** Asked before starts are. */
  places: PlaceKeeper | undefined = undefined;

  constructor(readonly parts: LinkParts) {
    const { store, onLost } = parts;
    this.backlog = new Backlog({ store: store.name, keptOf: (keys, make) => this.#keptOf(keys, make), onLost });
  }

  get isAway(): boolean {
    return this.failure !== undefined;
  }

  /** Sends an operation. Rejects with `StoreError` when the store is away, or has not answered in time; then it is away from now on. */
  async send<Op extends Operation>(keys: readonly string[], make: MakeOperation<Op>): Promise<ReplyTo<Op>> {
    if (this.failure !== undefined) throw this.failure;
    return this.#sendSurely(keys, make);
  }

  /**
   * Asks for starts, which must not be taken by a question that nobody waits for any more: a client may send it when it is connected again.
   * So it is asked again when the store is back, and `undo` hears what was, or is then, answered; and nobody stands in line for it.
   *
   * Where the store may have forgotten places of this process, these go first, and what is in their way is the answer.
   */
  async sendOrUndo(
    keys: readonly string[],
    make: MakeOperation<TakeOperation>,
    undo: (reply: TakeReply) => void,
  ): Promise<TakeReply> {
    if (this.failure !== undefined) throw this.failure;
    if (this.places?.isShort(keys) === true) {
      const stopped = await this.places.regain(keys);
      if (stopped !== undefined) return stopped;
    }
    const errand = this.#errand(keys, make);
    try {
      const reply = await errand.send();
      errand.end();
      return reply;
    } catch (error) {
      if (error instanceof StoreError && error.isLasting) errand.end();
      else this.#keep({ key: keys[0], send: this.#undoing(keys, errand, undo), end: () => errand.end() });
      throw error;
    }
  }

  /** Sends an operation now, or when the store is back. Never rejects: resolves to undefined when it has to wait, or cannot be carried out. */
  async sendOrKeep<Op extends Operation>(
    keys: readonly string[],
    make: MakeOperation<Op>,
  ): Promise<ReplyTo<Op> | undefined> {
    const errand = this.#errand(keys, make);
    const { failure } = this;
    try {
      if (failure !== undefined) throw failure;
      const reply = await errand.send();
      errand.end();
      return reply;
    } catch (error) {
      this.#sendLater(keys, errand, failure === undefined, error);
      return undefined;
    }
  }

  /** Tells the store an answer first thing when it is back. It is put in words then, and once before to see what it is: of one kind at the same keys only the last is told. */
  keep(keys: readonly string[], make: MakeOperation<SettleOperation>): void {
    const seen = make(NOBODY);
    if (isHoldAnswer(seen)) this.#keepAnswer(keys, seen, make);
    else this.#keep(this.#keptOf(keys, make));
  }

  /** There is something in the backlog: it is told now, unless the store is away. */
  tellSoon(): void {
    if (this.#isTelling || this.isAway) return;
    this.#isTelling = true;
    void this.#tellRest();
  }

  /** Asks what time it is at the store. */
  async meet(): Promise<void> {
    if (this.offsetUs === undefined) await this.send([TRIAL_KEY], trial);
  }

  /** Ends the looks at a store that is away. What it could not be told is lost, and said. */
  close(): void {
    this.#isClosed = true;
    this.backlog.close();
    if (this.#timer !== undefined) this.parts.clock.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  async #sendSurely<Op extends Operation>(keys: readonly string[], make: MakeOperation<Op>): Promise<ReplyTo<Op>> {
    const errand = this.#errand(keys, make);
    try {
      return await errand.send();
    } finally {
      errand.end();
    }
  }

  #errand<Op extends Operation>(keys: readonly string[], make: MakeOperation<Op>): Errand<Op> {
    const asker = this.#askers.take(keys[0]);
    this.#sequence += 1;
    const sender = { asker: `${this.parts.process}:${asker}`, sequence: this.#sequence };
    let wasSent = false;
    return {
      make: () => make(sender),
      send: () => {
        const isAgain = wasSent;
        wasSent = true;
        return this.#sendAgain(keys, make(sender), isAgain);
      },
      end: () => this.#askers.give(keys[0], asker),
    };
  }

  /** Asks again what nobody waits for any more, gives `undo` the answer once, and leaves the line. */
  #undoing(
    keys: readonly string[],
    errand: Errand<TakeOperation>,
    undo: (reply: TakeReply) => void,
  ): () => Promise<void> {
    const { ticket } = errand.make();
    let isUndone = false;
    return async () => {
      if (!isUndone) undo(await errand.send());
      isUndone = true;
      if (ticket !== "") await this.#sendSurely(keys, (by) => ({ kind: "leave", ...by, ticket }) as const);
    };
  }

  /**
   * Keeps an operation that could not be sent, or was and nobody knows whether it arrived.
   *
   * The store remembers for a while what it was told, so sending it again is safe. What gives something back is not sent once that
   * may be forgotten: it must not be given back twice.
   */
  #sendLater<Op extends Operation>(
    keys: readonly string[],
    errand: Errand<Op>,
    wasSent: boolean,
    error: unknown,
  ): void {
    if (wasSent && error instanceof StoreError && error.isLasting) {
      errand.end();
      this.parts.onLost(keys[0], error.message);
      return;
    }
    const { clock } = this.parts;
    const forgottenMs = wasSent && isGift(errand.make()) ? clock.now() + MEMO_US / 2000 : Number.POSITIVE_INFINITY;
    const send = async (): Promise<void> => {
      if (clock.now() < forgottenMs) await errand.send();
    };
    const dropped = (): void => {
      const operation = errand.make();
      if (isHoldAnswer(operation)) this.#keepAnswer(keys, operation, (sender) => bareAnswer(operation, sender));
    };
    this.#keep({ key: keys[0], send, end: () => errand.end(), dropped });
  }

  async #tellRest(): Promise<void> {
    try {
      while (!this.isAway && !this.#isClosed && this.backlog.size > 0) await this.backlog.tell();
    } catch {
      // The store is away again, and what is left is told the next time.
    } finally {
      this.#isTelling = false;
    }
  }

  #keptOf<Op extends Operation>(keys: readonly string[], make: MakeOperation<Op>): Kept {
    let errand: Errand<Op> | undefined;
    const send = (): Promise<unknown> => {
      errand ??= this.#errand(keys, make);
      return errand.send();
    };
    return { key: keys[0], send, end: () => errand?.end() };
  }

  #keepAnswer(keys: readonly string[], seen: SettleOperation, make: MakeOperation<SettleOperation>): void {
    if (this.#isClosed) return;
    const nowUs = (): number => toUs(this.parts.clock.now());
    const name = answerName(keys, seen);
    const untilUs = latestOf(seen, nowUs(), this.backlog.answerOf(name)?.untilUs);
    const kept = this.#keptOf(keys, (sender) => askUntil(make(sender), untilUs, nowUs()));
    this.backlog.keepAnswer(name, { ...kept, untilUs });
    this.tellSoon();
  }

  #keep(kept: Kept): void {
    if (this.#isClosed) return;
    this.backlog.keep(kept);
    this.tellSoon();
  }

  /** Sends an operation until it is answered, `ATTEMPTS` times at most. `wasSent`: it may have arrived already. */
  async #sendAgain<Op extends Operation>(
    keys: readonly string[],
    operation: Op,
    wasSent: boolean,
  ): Promise<ReplyTo<Op>> {
    let said: unknown;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#sendOnce(keys, wasSent || attempt > 1 ? again(operation) : operation);
      } catch (cause) {
        const error = cause instanceof StoreError ? cause : unexpected(this.parts.store, cause);
        if (error.isLasting) throw error;
        if (!(error instanceof SilenceError)) said = error.cause ?? error;
        if (attempt >= ATTEMPTS || this.#isClosed) {
          const whole = error instanceof SilenceError ? error.after(this.parts.store.lastError?.() ?? said) : error;
          this.#goAway(whole);
          throw whole;
        }
        await this.#pause(PAUSE_MS * attempt);
      }
    }
  }

  async #sendOnce<Op extends Operation>(keys: readonly string[], operation: Op): Promise<ReplyTo<Op>> {
    const { clock, store } = this.parts;
    const sentUs = toUs(clock.now());
    this.calls += 1;
    const silence = (): SilenceError => new SilenceError(store, PATIENCE_MS);
    const reply = await within(clock, PATIENCE_MS, store.transact(keys, operation), silence);
    const nowUs = toUs(clock.now());
    // No answer takes longer than it is waited for: the rest of that time this process stood still.
    this.roundTripUs += (Math.min(nowUs - sentUs, toUs(PATIENCE_MS)) - this.roundTripUs) / 8;
    this.offsetUs = reply.nowUs - nowUs;
    return reply;
  }

  #pause(ms: number): Promise<void> {
    const { clock } = this.parts;
    return new Promise((resolve) => {
      clock.setTimer(clock.now() + ms, resolve);
    });
  }

  #goAway(error: StoreError): void {
    if (this.failure !== undefined || this.#isClosed) return;
    this.failure = error;
    this.#awaySinceMs = this.parts.clock.now();
    this.#lookMs = LOOK_FIRST_MS;
    this.parts.onOutage(`${this.parts.store.name} is away: ${error.message}`, true);
    this.#lookLater();
  }

  #lookLater(): void {
    const { clock } = this.parts;
    if (this.#isClosed || this.#timer !== undefined) return;
    this.#timer = clock.setTimer(clock.now() + this.#lookMs, () => {
      this.#timer = undefined;
      void this.#look();
    });
    clock.unref?.(this.#timer);
    this.#lookMs = Math.min(LOOK_MOST_MS, this.#lookMs * 2);
  }

  /** Tries the store with a write, since one that can only be read is of no use; keeps the places of this process, and tells it what it has missed. */
  async #look(): Promise<void> {
    try {
      await this.#try();
      await this.places?.renewAll((keys, make) => this.#sendSurely(keys, make));
      // What comes meanwhile is told afterwards: otherwise a busy process would never be done.
      await this.backlog.tell();
    } catch {
      this.#lookLater();
      return;
    }
    if (this.#isClosed) return;
    this.failure = undefined;
    const awayMs = Math.round(this.parts.clock.now() - this.#awaySinceMs);
    this.parts.onOutage(`${this.parts.store.name} is back after ${awayMs} ms`, false);
    this.backlog.sayDropped("while it was away");
    this.tellSoon();
  }

  /** Tries the store. Where it is away for a reason that waiting does not mend any more, whoever asks hears that one. */
  async #try(): Promise<void> {
    try {
      await this.#sendOnce([TRIAL_KEY], trial({ asker: `${this.parts.process}:trial`, sequence: 1 }));
    } catch (cause) {
      const error = cause instanceof StoreError ? cause : unexpected(this.parts.store, cause);
      if (error.isLasting || this.failure?.isLasting === true) this.failure = error;
      throw error;
    }
  }
}
