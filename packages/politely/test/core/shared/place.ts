import { decide } from "../../../src/shared/decide.js";
import { keepForUs } from "../../../src/shared/expiry.js";
import { freshKey, type KeyState } from "../../../src/shared/keyState.js";
import type {
  LimitOperation,
  LookAtKey,
  ReplyTo,
  SettleReply,
  TakeKey,
  TakeOperation,
  TakeReply,
} from "../../../src/shared/operation.js";
import { readState, stateText } from "../../../src/shared/stateText.js";
import {
  type From,
  type SettleTerms,
  settleOf,
  startsOf,
  type TakenStart,
  takeOf,
} from "../../../src/testing/store/operations.js";

/** The keys of a request and its limits at each. */
export type Wanted = Readonly<Record<string, TakeKey>>;

/** A take, and what came of it. */
export interface Tried {
  readonly reply: TakeReply;
  readonly starts: readonly TakenStart[];
}

/** Keys with their states as text, on a clock that the test moves: a store without a store. */
export class Place {
  nowUs = 1_000_000_000;
  /** Operations carried out, looks not counted. */
  calls = 0;
  readonly #cells = new Map<string, { readonly text: string; readonly untilUs: number }>();
  #sequence = 0;

  /** True: keys are never forgotten, however long they are kept. */
  isElephant = false;

  /** Lets time pass. */
  wait(us: number): this {
    this.nowUs += us;
    return this;
  }

  send<Op extends LimitOperation>(names: readonly string[], operation: Op): ReplyTo<Op> {
    const states = names.map((name) => this.state(name));
    const reply = decide(states, operation, this.nowUs);
    if (operation.kind === "look") return reply;
    this.calls += 1;
    states.forEach((state, index) => {
      const untilUs = this.nowUs + keepForUs(state, state.seenUs);
      this.#cells.set(names[index], { text: stateText(state), untilUs });
    });
    return reply;
  }

  state(name: string): KeyState {
    const cell = this.#cells.get(name);
    if (cell === undefined) return freshKey(this.nowUs);
    if (cell.untilUs > this.nowUs) return readState(cell.text, name);
    // What it has learned about others' manners is advice, and may be forgotten with the rest.
    return this.isElephant ? { ...readState(cell.text, name), heldUs: 0 } : freshKey(this.nowUs);
  }

  /** The text of a key, or undefined. */
  text(name: string): string | undefined {
    return this.#cells.get(name)?.text;
  }

  /** Replaces what is known of a key; undefined forgets it. */
  put(name: string, text: string | undefined): void {
    if (text === undefined) this.#cells.delete(name);
    else this.#cells.set(name, { text, untilUs: Number.POSITIVE_INFINITY });
  }

  /** A sender that nobody else is. */
  from(): From {
    this.#sequence += 1;
    return { asker: `asker-${this.#sequence}`, sequence: 1 };
  }

  take(wanted: Wanted, terms: Partial<TakeOperation> = {}): Tried {
    const operation = takeOf(this.from(), Object.values(wanted), terms);
    const reply = this.send(Object.keys(wanted), operation);
    return { reply, starts: startsOf(operation, reply) };
  }

  /** Takes one start that must be there. */
  start(wanted: Wanted, terms: Partial<TakeOperation> = {}): TakenStart {
    const { reply, starts } = this.take(wanted, terms);
    if (starts.length !== 1) throw new Error(`No start at ${this.nowUs}: ${JSON.stringify(reply.stop)}`);
    return starts[0];
  }

  /** How many of `count` starts are granted at once. */
  fit(wanted: Wanted, count: number, terms: Partial<TakeOperation> = {}): number {
    return this.take(wanted, { count, ...terms }).starts.length;
  }

  settle(names: readonly string[], taken: TakenStart, terms: SettleTerms = {}): SettleReply {
    return this.send(names, settleOf(this.from(), taken, terms));
  }

  look(wanted: Wanted): readonly LookAtKey[] {
    return this.send(Object.keys(wanted), { kind: "look", keys: Object.values(wanted) }).keys;
  }
}
