import fc, { type Arbitrary } from "fast-check";
import type { LookAtKey, SharedRule, TakeKey, TakeOperation, TakeReply } from "../../../src/shared/operation.js";
import {
  keyOf,
  type SettleTerms,
  settleOf,
  startsOf,
  type TakenStart,
  takeOf,
} from "../../../src/testing/store/operations.js";
import { spanUs } from "../../laws/arbitraries.js";
import { pickFrom } from "../../oracle/script.js";
import { defaultHoldUs, hourUs, type LimitSpec } from "../../oracle/spec.js";
import type { Start } from "../../oracle/trace.js";
import { Place, type Wanted } from "./place.js";

/** Something a fleet does. `by` is a process; `pick` counts from the oldest and wraps around. */
export type Deed =
  | { readonly do: "wait"; readonly us: number }
  | {
      readonly do: "take";
      readonly by: number;
      readonly names: readonly string[];
      readonly cost: number;
      readonly count: number;
      readonly horizonUs: number;
      readonly hasMore: boolean;
      /** It stands in line, and comes with what it was told last. */
      readonly inLine: boolean;
    }
  | { readonly do: "settle"; readonly pick: number; readonly how: "neutral" | "unused" | number }
  /** The last operation of a process arrives again. */
  | { readonly do: "again"; readonly by: number }
  /** The process is gone, and another takes its number. */
  | { readonly do: "kill"; readonly by: number }
  | { readonly do: "renew"; readonly by: number }
  | { readonly do: "leave"; readonly by: number };

/** How deeds are drawn. */
export interface DeedRange {
  readonly names: readonly string[];
  readonly maxCost: number;
  /** Default 0. */
  readonly horizonMs?: number;
  /** Default true. */
  readonly returns?: boolean;
  /** Default 60. */
  readonly maxLength?: number;
}

/** Random deeds of three processes. */
export function anyDeeds(range: DeedRange): Arbitrary<Deed[]> {
  const by = fc.nat({ max: 2 });
  const pick = fc.nat({ max: 9 });
  const take = fc.record({
    do: fc.constant("take" as const),
    by,
    names: fc.shuffledSubarray([...range.names], { minLength: 1 }),
    cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: range.maxCost })),
    count: fc.constantFrom(1, 1, 1, 2, 5),
    horizonUs: fc.constantFrom(0, (range.horizonMs ?? 0) * 1000, (range.horizonMs ?? 0) * 137),
    hasMore: fc.boolean(),
    inLine: fc.boolean(),
  });
  const endings: Arbitrary<"neutral" | "unused" | number> =
    range.returns === false
      ? fc.constant("neutral")
      : fc.oneof(fc.constantFrom("neutral" as const, "unused" as const), fc.integer({ min: 0, max: range.maxCost }));
  const deeds: { readonly weight: number; readonly arbitrary: Arbitrary<Deed> }[] = [
    { weight: 9, arbitrary: fc.record({ do: fc.constant("wait" as const), us: fc.oneof(spanUs(40), spanUs(2_000)) }) },
    { weight: 12, arbitrary: take },
    { weight: 5, arbitrary: fc.record({ do: fc.constant("settle" as const), pick, how: endings }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("again" as const), by }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("kill" as const), by }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("renew" as const), by }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("leave" as const), by }) },
  ];
  return fc.array(fc.oneof(...deeds), { minLength: 5, maxLength: range.maxLength ?? 60 });
}

/** A start as it was granted, and all that became of it. */
export interface PlayedStart {
  readonly taken: TakenStart;
  readonly names: readonly string[];
  readonly by: string;
  readonly cost: number;
  /** When its place lapses, unless it is renewed. */
  lapsesUs: number;
  settledUs?: number;
  how?: "neutral" | "unused" | number;
}

/** A take that was refused or cut short, for those who check that it had to be. */
export interface Refusal {
  readonly names: readonly string[];
  readonly operation: TakeOperation;
  readonly readyUs: number;
  /** Somebody waited then at one of the keys. */
  readonly hadLine: boolean;
  readonly nowUs: number;
}

interface Process {
  name: string;
  sequence: number;
  readonly turns: Map<string, { readonly turnUs: number; readonly joinedUs: number }>;
  /** Sends its last operation again. */
  last: (() => void) | undefined;
}

/** Plays deeds on one place, with the same limits for all processes. */
export class Fleet {
  readonly place = new Place();
  readonly starts: PlayedStart[] = [];
  readonly refusals: Refusal[] = [];
  /** What went wrong on the way: a repeated operation that was answered otherwise, a refusal that took something. */
  readonly oddities: string[] = [];
  readonly leaseUs: number;
  readonly #specs: ReadonlyMap<string, LimitSpec>;
  readonly #processes: Process[] = [];
  #born = 0;

  constructor(specs: Readonly<Record<string, LimitSpec>>, leaseUs = 5_000_000) {
    this.#specs = new Map(Object.entries(specs));
    this.leaseUs = leaseUs;
    for (let index = 0; index < 3; index++) this.#processes.push(this.#newProcess());
  }

  play(deeds: readonly Deed[]): this {
    for (const deed of deeds) this.#do(deed);
    return this;
  }

  /** What was started at a key, as the oracle wants it. What was returned before its time never started. */
  traceOf(name: string): Start[] {
    const maxHoldUs = this.specOf(name).maxHoldUs ?? defaultHoldUs;
    return this.starts
      .filter(({ names }) => names.includes(name))
      .map(({ taken, cost, lapsesUs, settledUs, how }) => {
        const atUs = taken.start.startedUs;
        const endUs = Math.min(settledUs ?? Number.POSITIVE_INFINITY, lapsesUs, atUs + maxHoldUs);
        const spent = typeof how === "number" ? how : cost;
        return { atUs, cost: spent, releasedUs: endUs, unused: how === "unused" || spent === 0 };
      })
      .filter(({ atUs, releasedUs, unused }) => !unused || releasedUs > atUs);
  }

  specOf(name: string): LimitSpec {
    return this.#specs.get(name) ?? {};
  }

  #newProcess(): Process {
    this.#born += 1;
    return { name: `process-${this.#born}`, sequence: 0, turns: new Map(), last: undefined };
  }

  #do(deed: Deed): void {
    if (deed.do === "wait") this.place.wait(deed.us);
    else if (deed.do === "take") this.#take(deed);
    else if (deed.do === "settle") this.#settle(deed.pick, deed.how);
    else if (deed.do === "again") this.#processes[deed.by].last?.();
    else if (deed.do === "kill") this.#processes[deed.by] = this.#newProcess();
    else if (deed.do === "renew") this.#renew(this.#processes[deed.by]);
    else this.#leave(this.#processes[deed.by]);
  }

  #from(process: Process): { readonly asker: string; readonly sequence: number } {
    process.sequence += 1;
    return { asker: `${process.name}:0`, sequence: process.sequence };
  }

  #take({ by, names, cost, count, horizonUs, hasMore, inLine }: Extract<Deed, { do: "take" }>): void {
    const process = this.#processes[by];
    const wanted = this.wanted(names, cost);
    const line = names.join("+");
    const told = inLine ? process.turns.get(line) : undefined;
    const operation = takeOf(this.#from(process), Object.values(wanted), {
      count,
      horizonUs,
      hasMore,
      ticket: inLine ? `${process.name}/${line}` : "",
      turnUs: told?.turnUs ?? 0,
      joinedUs: told?.joinedUs ?? 0,
      leaseUs: this.leaseUs,
    });
    const send = (): TakeReply => this.#sendTake(process, names, operation, told?.joinedUs ?? 0);
    let reply = send();
    process.last = () => {
      if (reply.starts.length === 0) reply = send();
      else this.#expectSame(reply, this.place.send(names, operation), "a take sent again");
    };
  }

  #sendTake(process: Process, names: readonly string[], operation: TakeOperation, joinedUs: number): TakeReply {
    const cost = operation.keys[0].cost.rate;
    const wanted = this.wanted(names, cost);
    const before = this.place.look(wanted);
    const hadLine = before.some(({ waiting }) => waiting > 0);
    const reply = this.place.send(names, operation);
    const isStopped = before.some(({ stops }) => stops.length > 0);
    if (operation.horizonUs === 0 && !hadLine && !reply.isStalePeriod && isStopped === reply.starts.length > 0) {
      this.oddities.push(`a look at ${reply.nowUs} said otherwise than a take`);
    }
    if (reply.starts.length === 0)
      this.#expectSame(withoutLine(before), withoutLine(this.place.look(wanted)), "a refusal");
    for (const taken of startsOf(operation, reply)) {
      const lapsesUs = taken.start.startedUs + this.leaseUs;
      this.starts.push({ taken, names, by: process.name, cost, lapsesUs });
    }
    const { stop } = reply;
    const line = names.join("+");
    if (stop === undefined) process.turns.delete(line);
    else if (operation.ticket !== "") {
      const isNew = joinedUs === 0 || reply.starts.length > 0;
      process.turns.set(line, { turnUs: stop.turnUs, joinedUs: isNew ? reply.nowUs : joinedUs });
    }
    if (stop !== undefined && reply.starts.length < operation.count) {
      this.refusals.push({ names, operation, readyUs: stop.readyUs, hadLine, nowUs: reply.nowUs });
    }
    return reply;
  }

  /** What a take asks for, of the period that runs now. */
  wanted(names: readonly string[], cost: number): Wanted {
    return Object.fromEntries(names.map((name) => [name, sharedKey(this.specOf(name), cost, this.place.nowUs)]));
  }

  #settle(pick: number, how: "neutral" | "unused" | number): void {
    const nowUs = this.place.nowUs;
    // Nobody reports the answer to a request that has not begun; it can only be returned.
    const open = this.starts.filter(
      ({ settledUs, taken }) => settledUs === undefined && (how === "unused" || taken.start.startedUs <= nowUs),
    );
    const start = pickFrom(open, pick);
    if (start === undefined) return;
    const process = this.#processes.find(({ name }) => name === start.by);
    if (process === undefined) return;
    const spent = typeof how === "number" ? Math.min(how, start.cost) : how;
    const terms: SettleTerms = spent === "unused" ? { isUnused: true } : spent === "neutral" ? {} : { spent };
    const operation = settleOf(this.#from(process), start.taken, terms);
    this.place.send(start.names, operation);
    process.last = () => this.#expectNothing(() => this.place.send(start.names, operation));
    start.settledUs = nowUs;
    start.how = spent;
  }

  #expectNothing(send: () => void): void {
    const names = [...this.#specs.keys()];
    const before = this.place.look(this.wanted(names, 1));
    send();
    const after = this.place.look(this.wanted(names, 1));
    this.#expectSame(withoutLine(before), withoutLine(after), "an operation sent again");
  }

  #renew(process: Process): void {
    const nowUs = this.place.nowUs;
    const own = this.starts.filter(({ by, settledUs }) => by === process.name && settledUs === undefined);
    for (const start of own) {
      const operation = {
        kind: "renew",
        ...this.#from(process),
        places: [start.taken.place],
        leaseUs: this.leaseUs,
      } as const;
      const { lost } = this.place.send(start.names, operation);
      if (lost.length === 0) start.lapsesUs = Math.max(start.lapsesUs, nowUs + this.leaseUs);
      const isFollowed = start.names.some((name) => {
        const { concurrency = 0, fromAnswer = false } = this.specOf(name);
        return concurrency > 0 || fromAnswer;
      });
      const isLapsed = start.lapsesUs <= nowUs;
      if (isFollowed && isLapsed !== lost.length > 0) this.oddities.push(`place of ${start.lapsesUs} at ${nowUs}`);
    }
  }

  #leave(process: Process): void {
    for (const line of process.turns.keys()) {
      const operation = { kind: "leave", ...this.#from(process), ticket: `${process.name}/${line}` } as const;
      this.place.send(line.split("+"), operation);
    }
    process.turns.clear();
  }

  #expectSame(before: unknown, after: unknown, what: string): void {
    const [was, is] = [before, after].map((value) => JSON.stringify(value));
    if (was !== is) this.oddities.push(`${what} changed ${was} into ${is}`);
  }
}

function withoutLine(looks: readonly LookAtKey[]): unknown {
  return looks.map(({ stops: _stops, waiting: _waiting, ...rest }) => rest);
}

/** A spec of the oracle in the form that stores take. */
export function sharedKey(spec: LimitSpec, cost: number, nowUs: number): TakeKey {
  const { gapUs = 0, rate, windows = [], hourQuota = 0, concurrency = 0, fromAnswer = false } = spec;
  const rule: Partial<SharedRule> = {
    gapUs,
    rateCount: rate?.count ?? 0,
    ratePerUs: rate?.perUs ?? 0,
    burst: rate?.burst ?? 1,
    windows: windows.flatMap(({ count, perUs }) => [count, perUs, 1]),
    quota: hourQuota,
    calendar: hourQuota === 0 ? "" : "hour UTC",
    concurrency,
    fromAnswer,
  };
  const index = Math.floor(nowUs / hourUs);
  const period = { index, fromUs: index * hourUs, untilUs: (index + 1) * hourUs };
  return keyOf(rule, { cost, period: hourQuota === 0 ? undefined : period });
}
