import { StoreError } from "../../errors.js";
import type { RecordOperation } from "../../shared/operation.js";
import type { MakeOperation } from "./link.js";

/** Operations that are kept one by one, at most; of more, the oldest are dropped, and that is said. */
const LATER_MOST = 10_000;
/** Answers that are kept, at most: one for each lane and kind. */
const ANSWERS_MOST = 100_000;
/** Records of starts, and answers, that are sent at once: nothing can be asked before they are told, and the order of lanes does not matter. */
const TOGETHER_MOST = 32;

/** An operation that waits for the store to be back. */
export interface Kept {
  readonly key: string;
  send(): Promise<unknown>;
  /** It will not be sent again. */
  end(): void;
  /** Keeps what must not be lost of it, when there is no room for the whole. Absent where nothing is forgiven without it. */
  dropped?(): void;
}

/** An answer that the store has to hear of, kept once for each lane and kind. */
export interface KeptAnswer extends Kept {
  /** Until when each key was asked to be left alone, on this process's clock; 0: nobody said. */
  readonly untilUs: readonly number[];
}

/** Where the starts are that the store does not know of. */
export interface MissedStarts {
  /** In how many lanes. */
  readonly size: number;
  /** Hands over those of one lane, the one longest known first; undefined when there are none. */
  take(): { readonly keys: readonly string[]; readonly make: MakeOperation<RecordOperation> } | undefined;
}

/** What a backlog needs. */
export interface BacklogParts {
  /** The name of the store. */
  readonly store: string;
  /** Makes something to be sent of an operation. */
  readonly keptOf: (keys: readonly string[], make: MakeOperation<RecordOperation>) => Kept;
  /** Something could not be told, and never can. */
  readonly onLost: (key: string, message: string) => void;
}

/**
 * What a store has missed while it was away, and hears first when it is back.
 *
 * Starts are never dropped: whoever makes them bounds their lanes. Of answers the last of each lane and kind is kept, with the longest time to stay away, which
 * is all that a store makes of many. Of everything else the oldest is dropped beyond 10,000: places that lapse by themselves, and units that are not given back.
 */
export class Backlog {
  /** Set by whoever stands in for the store. */
  starts: MissedStarts | undefined = undefined;
  /** Records that were sent, and nobody knows whether they arrived. */
  readonly #records = new Set<Kept>();
  /** The oldest first. */
  readonly #later = new Set<Kept>();
  readonly #answers = new Map<string, KeptAnswer>();
  /** Those that are on their way. */
  readonly #onWay = new Set<Kept>();
  #telling: Promise<void> | undefined = undefined;
  /** How many were dropped, and not yet said to be lost. */
  #dropped = 0;

  constructor(readonly parts: BacklogParts) {}

  /** How many operations it takes to tell everything. */
  get size(): number {
    return (this.starts?.size ?? 0) + this.#records.size + this.#later.size + this.#answers.size;
  }

  /** Keeps an operation. */
  keep(kept: Kept): void {
    if (this.#later.size >= LATER_MOST) this.#dropOldest();
    this.#later.add(kept);
  }

  /** The answer of this lane and kind that is kept already. */
  answerOf(name: string): KeptAnswer | undefined {
    return this.#answers.get(name);
  }

  /** Keeps an answer instead of the one there is of this lane and kind. */
  keepAnswer(name: string, kept: KeptAnswer): void {
    const before = this.#answers.get(name);
    // What is on its way is ended when it has arrived.
    if (before !== undefined && !this.#onWay.has(before)) before.end();
    this.#answers.delete(name);
    for (const [oldest, answer] of this.#answers) {
      if (this.#answers.size < ANSWERS_MOST) break;
      this.#answers.delete(oldest);
      if (!this.#onWay.has(answer)) answer.end();
      this.#drop(answer.key, `${ANSWERS_MOST} answers`);
    }
    this.#answers.set(name, kept);
  }

  /** Tells the store what it has missed, as much of it as there is now. One round at a time: two would send the same. */
  async tell(): Promise<void> {
    while (this.#telling !== undefined) await this.#telling.catch(() => undefined);
    this.#telling = this.#tellAll();
    try {
      await this.#telling;
    } finally {
      this.#telling = undefined;
    }
  }

  /** Says how many could not be told. */
  sayDropped(when: string): void {
    const count = this.#dropped;
    this.#dropped = 0;
    if (count > 0) this.parts.onLost("*", `${count} operations could not be told to ${this.parts.store} ${when}`);
  }

  /** Forgets everything. What was not told is lost, and said. */
  close(): void {
    this.#dropped += this.size;
    this.#later.clear();
    this.#answers.clear();
    this.#records.clear();
    this.sayDropped("before the end");
  }

  async #tellAll(): Promise<void> {
    await this.#tellStarts(this.#records.size + (this.starts?.size ?? 0));
    let left = this.#later.size;
    for (const kept of this.#later) {
      if (left-- === 0) break;
      await this.#send(kept, () => this.#later.delete(kept));
    }
    const answers = Array.from(this.#answers);
    for (let from = 0; from < answers.length; from += TOGETHER_MOST) {
      // One that another took the place of meanwhile is not worth telling.
      const some = answers.slice(from, from + TOGETHER_MOST).filter(([name, kept]) => this.answerOf(name) === kept);
      await allOf(
        some.map(([name, kept]) => this.#send(kept, () => this.answerOf(name) === kept && this.#answers.delete(name))),
      );
    }
  }

  /** Tells the starts of so many lanes. */
  async #tellStarts(count: number): Promise<void> {
    for (let left = count; left > 0; left -= TOGETHER_MOST) {
      while (this.#records.size < TOGETHER_MOST) {
        const lane = this.starts?.take();
        if (lane === undefined) break;
        this.#records.add(this.parts.keptOf(lane.keys, lane.make));
      }
      await allOf(Array.from(this.#records, (kept) => this.#send(kept, () => this.#records.delete(kept))));
    }
  }

  async #send(kept: Kept, done: () => void): Promise<void> {
    this.#onWay.add(kept);
    try {
      await kept.send();
    } catch (error) {
      // What the store will never take must not keep everything else from it.
      if (!(error instanceof StoreError && error.isLasting)) throw error;
      this.parts.onLost(kept.key, error.message);
    } finally {
      this.#onWay.delete(kept);
    }
    done();
    kept.end();
  }

  /** Drops the oldest that is not on its way: what is, may have arrived. */
  #dropOldest(): void {
    for (const kept of this.#later) {
      if (this.#onWay.has(kept)) continue;
      this.#later.delete(kept);
      kept.end();
      kept.dropped?.();
      this.#drop(kept.key, `${LATER_MOST} operations`);
      return;
    }
  }

  /** The first is said at once, and how many there were at the end. */
  #drop(key: string, full: string): void {
    this.#dropped += 1;
    const why = `${full} already wait to be told to ${this.parts.store}; the oldest are dropped from now on`;
    if (this.#dropped === 1) this.parts.onLost(key, why);
  }
}

/** Waits for all of them, whatever becomes of them, and rejects when one did. */
async function allOf(works: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(works)).find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
