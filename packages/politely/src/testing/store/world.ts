import { type Answer, answerOf } from "../../core/answer.js";
import { compileRule } from "../../policy/compileRule.js";
import type { Limits } from "../../policy/types.js";
import type * as op from "../../stores/operations.js";
import { placeName } from "../../stores/operations.js";
import type { Store } from "../../stores/store.js";
import { pause } from "../httpWorld.js";

/** The names of the keys of a request, and what is asked of each. */
export type Wanted = Readonly<Record<string, op.AskedKey>>;

/** A start, with what is needed to give it back. */
export interface TakenStart extends Pick<op.SettleOperation, "startedUs" | "grantedUs" | "place"> {
  readonly wanted: Wanted;
  readonly token: number;
  readonly parts: readonly Pick<op.SettleKey, "previousUs" | "unitsAfter" | "period">[];
}

/** A take, and what came of it. */
export interface Tried extends op.TakeReply {
  readonly starts: readonly TakenStart[];
}

/** A key under these limits and no others, a cost for each start, and a gap beyond the limits. */
export function keyOf(limits: Limits, cost = 1, slowUs = 0): op.AskedKey {
  return { rule: compileRule(limits), cost: { rate: cost, window: cost, quota: cost }, slowUs };
}

/** What a process says of a place that it holds. */
export function renewedPlace({ place, startedUs, wanted }: TakenStart): op.RenewedPlace {
  const [{ rule }] = Object.values(wanted);
  return { id: place, startedUs, units: 1, pendingUnits: 0, maxHoldUs: rule.maxHoldUs, ttlUs: rule.permitTtlUs };
}

/** A process that speaks with a store, one operation after the other. */
export class Asker {
  /** As operations name it. */
  readonly asker: string;
  #number = 0;
  /** The reply to the last operation, and how to send that again, over this client or another. */
  reply: Promise<object> = Promise.resolve({});
  again: (store?: Store) => Promise<object> = () => this.reply;

  constructor(
    readonly store: Store,
    readonly process: string,
  ) {
    this.asker = `${process}.1`;
  }

  #send<Op extends op.Operation>(wanted: Wanted, operation: Op): Promise<op.ReplyTo<Op>> {
    const keys = Object.keys(wanted);
    this.again = (store = this.store) => store.transact(keys, { ...operation, isAgain: true });
    const reply = this.store.transact(keys, operation);
    this.reply = reply;
    return reply;
  }

  #next(wanted: Wanted): op.Sender & { keys: op.AskedKey[] } {
    return { asker: this.asker, number: ++this.#number, isAgain: false, keys: Object.values(wanted) };
  }

  /** Takes one start, now or never, unless the terms say otherwise. */
  async take(wanted: Wanted, terms: Partial<op.TakeOperation> = {}): Promise<Tried> {
    const whole = { count: 1, horizonUs: 0, grainUs: 1, doesWait: false, isTold: false, ...terms };
    const sender = this.#next(wanted);
    const reply = await this.#send(wanted, { kind: "take", ...sender, ...whole });
    const starts: TakenStart[] = [];
    for (const { startedUs, count, token, parts } of reply.grants) {
      for (let nth = 0; nth < count; nth++) {
        const place = placeName(this.asker, sender.number, starts.length);
        const own = parts.map(({ previousUs, unitsBefore, period }, index) => ({
          previousUs: nth === 0 ? previousUs : startedUs,
          unitsAfter: (unitsBefore + (nth + 1) * sender.keys[index].cost.rate) >>> 0,
          period,
        }));
        starts.push({ wanted, startedUs, grantedUs: reply.nowUs, token: token + nth, place, parts: own });
      }
    }
    return { ...reply, starts };
  }

  /** Takes one start; fails when there is none. */
  async start(wanted: Wanted, terms?: Partial<op.TakeOperation>): Promise<TakenStart> {
    const { starts, stop } = await this.take(wanted, terms);
    if (starts.length === 1) return starts[0];
    throw new Error(`Expected one start; got ${starts.length}, and as reason ${JSON.stringify(stop)}.`);
  }

  /** How many of `count` starts are granted at once. */
  async fit(wanted: Wanted, count: number, terms?: Partial<op.TakeOperation>): Promise<number> {
    return (await this.take(wanted, { count, ...terms })).starts.length;
  }

  /** Gives a start back with an answer, and says what it really cost in each kind of limit. */
  settle({ wanted, parts, ...start }: TakenStart, answer: Answer = answerOf("neutral"), isOver = true, spent?: number) {
    const { keys, ...sender } = this.#next(wanted);
    const settled = keys.map(({ rule, cost }, index) => {
      const units = cost.rate - (answer.kind === "unused" ? 0 : (spent ?? cost.rate));
      const unused = { rate: units, window: units, quota: units };
      return { rule, cost, ...parts[index], unused, isMeant: index === 0 };
    });
    return this.#send(wanted, { kind: "settle", ...start, ...sender, isOver, keys: settled, answer, random: 0 });
  }

  /** Looks at one key. */
  async look(wanted: Wanted): Promise<op.LookReply & op.KeyView> {
    const reply = await this.store.transact(Object.keys(wanted), { kind: "look", keys: Object.values(wanted) });
    return { ...reply, ...reply.keys[0] };
  }

  renew(wanted: Wanted, terms: Partial<op.RenewOperation>): Promise<op.RenewReply> {
    const rules = Object.values(wanted).map(({ rule }) => rule);
    const whole = { places: rules.map(() => []), completeBefore: 0, gone: [], isLeaving: false, ...terms };
    return this.#send(wanted, { kind: "renew", process: this.process, rules, ...whole });
  }

  record(wanted: Wanted, terms: Partial<op.RecordOperation>): Promise<op.SettleReply> {
    const whole = { agesUs: [], counts: [], meant: 0, random: 0, ...terms };
    return this.#send(wanted, { kind: "record", ...this.#next(wanted), ...whole });
  }

  lease(name: string, act: op.LeaseOperation["act"], terms: Partial<op.LeaseOperation> = {}): Promise<op.LeaseReply> {
    const whole = { ttlUs: 60_000_000, epochUs: Date.now() * 1000, label: `label of ${this.process}`, ...terms };
    return this.store.transact([name], { kind: "lease", act, holder: this.process, ...whole });
  }
}

/** A store that is ready for use, and a second client of the same data. */
export interface OpenStore {
  readonly store: Store;
  /** A client that shares nothing with the first but the data: a connection of its own at least. */
  another(): Promise<Store>;
  /** Writes a value under a key that is none of the library's. Absent where nobody else can write. */
  spoil?(key: string): Promise<void>;
  /** Ends every client. */
  close(): Promise<void>;
}

/** What a case plays in: two clients of one store, and names that no other case has. */
export interface StoreWorld {
  readonly a: Asker;
  readonly b: Asker;
  /** A new name of a key. */
  readonly name: (label?: string) => string;
  /** A new key under these limits. */
  readonly key: (limits: Limits, cost?: number) => Wanted;
  /** One more process, at the first or the second client. */
  readonly asker: (index?: number) => Asker;
  /** A time in which a few operations fit, however far the store's clocks differ. */
  readonly spanMs: number;
  readonly spoil: OpenStore["spoil"];
}

/** Things that every store does: what, and how it is tried. */
export type StoreCases = Readonly<Record<string, (world: StoreWorld) => Promise<void>>>;

const SPAN_MS = 200;
const LOOKS_MOST = 5_000;

let worldCount = 0;
/** Another one in each run, so that what is left in the store is never met again. */
const run = Math.trunc(Math.random() * 2 ** 40).toString(36);

/** Opens a store with two clients, lets `play` run, and closes it. */
export async function inStoreWorld(open: () => Promise<OpenStore>, play: StoreCases[string]): Promise<void> {
  const place = await open();
  try {
    const clients = [place.store, await place.another()];
    const prefix = `suite ${run} ${++worldCount}`;
    let count = 0;
    const asker = (index = 0): Asker => new Asker(clients[index % 2], `${prefix} ${++count}`);
    const name = (label = "key"): string => `${prefix} ${++count} ${label}`;
    const key = (limits: Limits, cost?: number): Wanted => ({ [name()]: keyOf(limits, cost) });
    const spanMs = SPAN_MS + (2 * (place.store.clockErrorUs ?? 0)) / 1000;
    await play({ a: asker(0), b: asker(1), asker, name, key, spanMs, spoil: place.spoil?.bind(place) });
  } finally {
    await place.close();
  }
}

/** Waits in real time until the clock of every client of a store has reached an instant. */
export async function reach(asker: Asker, instantUs: number): Promise<void> {
  let leftUs = 0;
  for (let look = 0; look < LOOKS_MOST; look++) {
    const { nowUs } = await asker.look({ [`suite ${run} clock`]: keyOf({}) });
    leftUs = instantUs + (asker.store.clockErrorUs ?? 0) - nowUs;
    if (leftUs <= 0) return;
    await pause(Math.max(1, Math.ceil(leftUs / 1000)));
  }
  throw new Error(`The clock of ${asker.store.name} stays ${leftUs} µs before ${instantUs}.`);
}

/** Fails unless a condition holds. */
export function holds(condition: boolean, sentence: string): void {
  if (!condition) throw new Error(`Expected ${sentence}.`);
}

/** Whether each number is above the one before. */
export function isGrowing(numbers: readonly number[]): boolean {
  return numbers.slice(1).every((number, index) => number > numbers[index]);
}
