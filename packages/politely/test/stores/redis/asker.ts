import { answerOf } from "../../../src/core/answer.js";
import type { LeaseReply, SettleReply, TakeOperation, TakeReply } from "../../../src/stores/operations.js";
import { type AskedKey, placeName } from "../../../src/stores/operations.js";
import type { Store } from "../../../src/stores/store.js";

/** A take, and what it was answered. */
export interface Took {
  readonly names: readonly string[];
  readonly operation: TakeOperation;
  readonly reply: TakeReply;
}

/** A process with one lane that asks a store. */
export class Asker {
  #number = 0;

  constructor(
    readonly store: Store,
    readonly process: string,
  ) {}

  /** What the next operation is sent with. */
  next(): { readonly asker: string; readonly number: number; readonly isAgain: boolean } {
    return { asker: `${this.process}.1`, number: ++this.#number, isAgain: false };
  }

  /** Asks for one start now, or for as many as `more` says. */
  async take(wanted: Readonly<Record<string, AskedKey>>, more: Partial<TakeOperation> = {}): Promise<Took> {
    const names = Object.keys(wanted);
    const terms = { keys: Object.values(wanted), count: 1, horizonUs: 0, grainUs: 1, doesWait: false, isTold: false };
    const operation: TakeOperation = { kind: "take", ...this.next(), ...terms, ...more };
    return { names, operation, reply: await this.store.transact(names, operation) };
  }

  /** The same, and fails where there is no start. */
  async start(wanted: Readonly<Record<string, AskedKey>>): Promise<Took> {
    const took = await this.take(wanted);
    if (took.reply.grants.length === 0) throw new Error(`no start: ${took.reply.stop?.words}`);
    return took;
  }

  /** Gives back the first start of a take. */
  async settle({ names, operation, reply }: Took, answer = answerOf("success")): Promise<SettleReply> {
    const [{ startedUs, parts }] = reply.grants;
    const keys = operation.keys.map(({ rule, cost }, index) => {
      const { previousUs, unitsBefore, period } = parts[index];
      const unused = answer.kind === "unused" ? cost : { rate: 0, window: 0, quota: 0 };
      return { rule, cost, previousUs, unitsAfter: unitsBefore + cost.rate, period, unused, isMeant: index === 0 };
    });
    const place = placeName(operation.asker, operation.number, 0);
    const terms = { startedUs, grantedUs: reply.nowUs, place, isOver: true, keys, answer, random: 0 };
    return this.store.transact(names, { kind: "settle", ...this.next(), ...terms });
  }

  lease(name: string, act: "take" | "look"): Promise<LeaseReply> {
    const holder = { holder: this.process, label: "a test", ttlUs: 30_000_000, epochUs: 1 };
    return this.store.transact([name], { kind: "lease", act, ...holder });
  }
}
