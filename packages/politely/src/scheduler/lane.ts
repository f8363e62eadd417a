import { Heap, type Positioned } from "../engine/heap.js";
import type { ResolvedTarget } from "../policy/types.js";
import type { AcquireOptions, Permit } from "../types.js";
import type { Cost } from "./cost.js";
import type { Gate } from "./gate.js";
import { type InLine, Line } from "./line.js";
import type { SignalWatch, Watched } from "./signals.js";

/** Which lane a request belongs to. */
export interface LaneSpec {
  readonly name: string;
  readonly key: string;
  readonly intent: string | undefined;
  /** Whose intent it is, where the key is shared with hosts beyond `maxKeys`; else undefined. */
  readonly intentOwner?: string | undefined;
  readonly slots: readonly number[];
  /** `"host"`, `"intent"`, a scope's name or `"global"` for each of `slots`. */
  readonly scopeNames: readonly string[];
}

/** One cost for every key of a lane, or one for each. */
export type LaneCost = Cost | readonly Cost[];

/** The cost at the lane's key number `index`. */
export function costAt(cost: LaneCost, index: number): Cost {
  return "rate" in cost ? cost : cost[index];
}

/** A request that waits. It holds a place in its lane, never a time. */
export class Waiter implements InLine, Watched {
  /** In the line of its level. */
  place: number;
  /** Undefined once it no longer waits. */
  level: Level | undefined;
  watch: SignalWatch | undefined;
  watchPlace: number;

  constructor(
    readonly askedUs: number,
    readonly sequence: number,
    public cost: LaneCost,
    /** What it asked for, in case the policy changes; under its new key when it has. */
    public target: ResolvedTarget,
    /** Undefined for one that waits for as long as it takes, and costs one unit. */
    public terms: Terms | undefined,
    readonly resolve: (permit: Permit) => void,
    readonly reject: (reason: unknown) => void,
  ) {
    this.place = -1;
    this.level = undefined;
    this.watch = undefined;
    this.watchPlace = -1;
  }

  get lane(): Lane | undefined {
    return this.level?.lane;
  }

  /** Infinity: none. */
  get deadlineUs(): number {
    return this.terms?.deadlineUs ?? Number.POSITIVE_INFINITY;
  }
}

/** What only some waiters have: a deadline or a cost of their own. Apart, so that the others stay small. */
export class Terms implements Positioned {
  /** In the heap of deadlines. */
  position = -1;
  waiter: Waiter | undefined = undefined;

  constructor(
    public deadlineUs: number,
    readonly cost: AcquireOptions["cost"],
    /** The caller set the deadline, and no change of policy moves it. */
    readonly isOwnDeadline: boolean,
  ) {}

  get isWaiting(): boolean {
    return this.waiter?.level !== undefined;
  }
}

/** Those of one priority, in order of arrival. */
export class Level implements Positioned {
  position = -1;
  readonly line = new Line<Waiter>();
  /** Its place by arrival among the levels of its lane; undefined while it is the only one. */
  arrival: Arrival | undefined = undefined;

  constructor(
    readonly lane: Lane,
    readonly priority: number,
  ) {}
}

/** A level in the order in which the first of each arrived. */
class Arrival implements Positioned {
  position = -1;

  constructor(readonly level: Level) {}
}

/** The queue of those who need the same keys. */
export class Lane implements Positioned {
  /** In the queue of its gate. */
  position = -1;
  /** The key it is stopped at. */
  gate: Gate | undefined = undefined;
  /** Where it stands while it waits for whoever has the last word; undefined until it does. */
  aside: Gate | undefined = undefined;
  size = 0;
  /** When its last start was, and the number of that event; before the first, never. */
  startUs = Number.NEGATIVE_INFINITY;
  startSequence = 0;
  readonly #levels: Heap<Level>;
  /** The levels by arrival; empty while there is only one, which is by far the usual case. */
  readonly #arrivals = new Heap<Arrival>(cameBefore);
  readonly #byPriority = new Map<number, Level>();

  readonly name: string;
  readonly key: string;
  readonly intent: string | undefined;
  readonly intentOwner: string | undefined;
  readonly slots: readonly number[];
  readonly scopeNames: readonly string[];
  /** The gates of its slots. */
  gates: readonly Gate[] = [];

  constructor(
    spec: LaneSpec,
    readonly ageingUs: number,
  ) {
    this.name = spec.name;
    this.key = spec.key;
    this.intent = spec.intent;
    this.intentOwner = spec.intentOwner;
    this.slots = spec.slots;
    this.scopeNames = spec.scopeNames;
    this.#levels = new Heap((a, b) => isBefore(a, b, ageingUs));
  }

  get head(): Waiter | undefined {
    return this.#levels.peek()?.line.first;
  }

  get headPriority(): number {
    return this.#levels.peek()?.priority ?? 0;
  }

  /** When its turn came: at its last start, or when the first of those who wait arrived. Who has left does not count. */
  get turnUs(): number {
    return Math.max(this.startUs, this.#firstComer?.askedUs ?? Number.NEGATIVE_INFINITY);
  }

  /** The number of that event, for ties. */
  get turnSequence(): number {
    return Math.max(this.startSequence, this.#firstComer?.sequence ?? 0);
  }

  get #firstComer(): Waiter | undefined {
    return (this.#arrivals.peek()?.level ?? this.#levels.peek())?.line.first;
  }

  /** Where the lane stands among others at a shared key: the instant of its last turn, earlier by `ageing` for each point of its head's priority. */
  get orderUs(): number {
    return this.turnUs - this.headPriority * this.ageingUs;
  }

  add(waiter: Waiter, priority: number): void {
    let level = this.#byPriority.get(priority);
    if (level === undefined) {
      level = new Level(this, priority);
      this.#byPriority.set(priority, level);
    }
    waiter.level = level;
    level.line.push(waiter);
    this.size += 1;
    if (level.line.count > 1) return;
    this.#levels.push(level);
    if (this.#levels.size === 2) for (const each of this.#levels.items) this.#arrive(each);
    else if (this.#levels.size > 2) this.#arrive(level);
  }

  remove(waiter: Waiter): void {
    const { level } = waiter;
    if (level === undefined) return;
    const wasFirst = level.line.first === waiter;
    level.line.remove(waiter);
    waiter.level = undefined;
    this.size -= 1;
    if (level.line.count === 0) {
      this.#levels.remove(level);
      this.#byPriority.delete(level.priority);
      this.#depart(level);
      if (this.#levels.size === 1) this.#depart(this.#levels.items[0]);
    } else if (wasFirst && this.#levels.size > 1) {
      this.#levels.update(level);
      if (level.arrival !== undefined) this.#arrivals.update(level.arrival);
    }
  }

  #arrive(level: Level): void {
    level.arrival = new Arrival(level);
    this.#arrivals.push(level.arrival);
  }

  #depart(level: Level): void {
    if (level.arrival !== undefined) this.#arrivals.remove(level.arrival);
    level.arrival = undefined;
  }

  /** Everybody, in no particular order, as a list that stays the same when they leave. */
  everybody(): Waiter[] {
    return this.#levels.items.flatMap(({ line }) => line.toArray());
  }

  /** How many certainly start before a newcomer of that priority. */
  aheadOf(priority: number): number {
    let requests = 0;
    for (const level of this.#levels.items) if (level.priority >= priority) requests += level.line.count;
    return requests;
  }
}

/** Whether the lane stands before another one at a key they share. */
export function isLaneBefore(a: Lane, b: Lane): boolean {
  const difference = a.orderUs - b.orderUs;
  return difference === 0 ? a.turnSequence < b.turnSequence : difference < 0;
}

function cameBefore({ level: a }: Arrival, { level: b }: Arrival): boolean {
  const first = a.line.first;
  const other = b.line.first;
  return first === undefined || other === undefined ? other === undefined : first.sequence < other.sequence;
}

function isBefore(a: Level, b: Level, ageingUs: number): boolean {
  const first = a.line.first;
  const other = b.line.first;
  if (first === undefined || other === undefined) return other === undefined;
  // Effective priority is priority + waited / ageing. The wait grows alike for all, so the order never changes:
  // one point of priority is worth having asked `ageing` earlier.
  const difference = first.askedUs - a.priority * ageingUs - (other.askedUs - b.priority * ageingUs);
  return difference === 0 ? first.sequence < other.sequence : difference < 0;
}
