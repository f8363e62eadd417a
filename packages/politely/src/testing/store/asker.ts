import type {
  DoneReply,
  LeaseOperation,
  LeaseReply,
  LookAtKey,
  RenewReply,
  SettleReply,
  TakeKey,
  TakeOperation,
  TakeReply,
} from "../../shared/operation.js";
import type { Store } from "../../stores/store.js";
import { type From, type SettleTerms, settleOf, startsOf, type TakenStart, takeOf } from "./operations.js";

/** The names of the keys of a request, and its limits at each. */
export type Wanted = Readonly<Record<string, TakeKey>>;

/** A take, and what came of it. */
export interface Tried {
  readonly operation: TakeOperation;
  readonly reply: TakeReply;
  readonly starts: readonly TakenStart[];
}

/** A process that speaks with a store, one operation after the other. */
export class Asker {
  #sequence = 0;

  constructor(
    readonly store: Store,
    readonly name: string,
  ) {}

  /** Says who sends the next operation. */
  next(): From {
    this.#sequence += 1;
    return { asker: `${this.name}:0`, sequence: this.#sequence };
  }

  async take(wanted: Wanted, terms: Partial<TakeOperation> = {}): Promise<Tried> {
    const operation = takeOf(this.next(), Object.values(wanted), terms);
    const reply = await this.store.transact(Object.keys(wanted), operation);
    return { operation, reply, starts: startsOf(operation, reply) };
  }

  /** Takes one start; fails when there is none. */
  async start(wanted: Wanted, terms: Partial<TakeOperation> = {}): Promise<TakenStart> {
    const { reply, starts } = await this.take(wanted, terms);
    if (starts.length === 1) return starts[0];
    throw new Error(`Expected one start; got ${starts.length}, and as reason ${JSON.stringify(reply.stop)}.`);
  }

  /** How many of `count` starts are granted at once. */
  async fit(wanted: Wanted, count: number, terms: Partial<TakeOperation> = {}): Promise<number> {
    return (await this.take(wanted, { count, ...terms })).starts.length;
  }

  settle(names: readonly string[], taken: TakenStart, terms: SettleTerms = {}): Promise<SettleReply> {
    return this.store.transact(names, settleOf(this.next(), taken, terms));
  }

  async look(wanted: Wanted): Promise<readonly LookAtKey[]> {
    return (await this.store.transact(Object.keys(wanted), { kind: "look", keys: Object.values(wanted) })).keys;
  }

  renew(names: readonly string[], places: readonly string[], leaseUs: number): Promise<RenewReply> {
    return this.store.transact(names, { kind: "renew", ...this.next(), places, leaseUs });
  }

  leave(names: readonly string[], ticket: string): Promise<DoneReply> {
    return this.store.transact(names, { kind: "leave", ...this.next(), ticket });
  }

  record(wanted: Wanted, agesUs: readonly number[]): Promise<DoneReply> {
    const keys = Object.values(wanted);
    return this.store.transact(Object.keys(wanted), { kind: "record", ...this.next(), keys, agesUs });
  }

  pause(names: readonly string[], pauseUs: number): Promise<DoneReply> {
    return this.store.transact(names, { kind: "set", ...this.next(), pauseUs, reset: "nothing" });
  }

  reset(names: readonly string[], reset: "pacing" | "all"): Promise<DoneReply> {
    return this.store.transact(names, { kind: "set", ...this.next(), pauseUs: -1, reset });
  }

  lease(name: string, act: LeaseOperation["act"], terms: Partial<LeaseOperation> = {}): Promise<LeaseReply> {
    const operation: LeaseOperation = {
      kind: "lease",
      act,
      holder: this.name,
      label: `label of ${this.name}`,
      ttlUs: 30_000_000,
      epochUs: Date.now() * 1000,
      ...terms,
    };
    return this.store.transact([name], operation);
  }
}
