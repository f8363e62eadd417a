import { type Ahead, NOBODY } from "../core/key.js";
import type { ResolvedTarget } from "../policy/types.js";
import type { AcquireOptions, Permit } from "../types.js";
import type { Costs, Need } from "./arbiter.js";
import { Heap, type Positioned } from "./heap.js";

// Who waits, and in what order. A waiter stands in a level (those of one priority), a level in a lane (those who need the same keys),
// and a lane at the gate of each of its keys.

/** A request that waits. It holds a place in its lane, never a time. */
export class Waiter implements Positioned {
  /** Among the deadlines; -1 without one, and once it no longer waits. */
  position = -1;
  /** Undefined once it no longer waits. */
  level: Level | undefined = undefined;
  previous: Waiter | undefined = undefined;
  next: Waiter | undefined = undefined;

  constructor(
    readonly askedUs: number,
    readonly sequence: number,
    public costs: Costs,
    /** What it asked for, in case the policy changes. */
    readonly target: ResolvedTarget,
    readonly options: AcquireOptions,
    /** Infinity: none. */
    public deadlineUs: number,
    readonly resolve: (permit: Permit) => void,
    readonly reject: (reason: unknown) => void,
  ) {}

  get lane(): Lane | undefined {
    return this.level?.lane;
  }
}

/** Those of one priority, in order of arrival. Anybody may leave from the middle. */
export class Level implements Positioned {
  position = -1;
  count = 0;
  first: Waiter | undefined = undefined;
  #last: Waiter | undefined = undefined;

  constructor(
    readonly lane: Lane,
    readonly priority: number,
  ) {}

  push(waiter: Waiter): void {
    waiter.level = this;
    waiter.previous = this.#last;
    if (this.#last === undefined) this.first = waiter;
    else this.#last.next = waiter;
    this.#last = waiter;
    this.count += 1;
  }

  remove(waiter: Waiter): void {
    const { previous, next } = waiter;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    waiter.previous = undefined;
    waiter.next = undefined;
    waiter.level = undefined;
    this.count -= 1;
  }
}

/** The queue of those who need the same keys. */
export class Lane implements Positioned {
  /** Among the lanes parked at its gate. */
  position = -1;
  /** The gate it is parked at, and those of all its keys. */
  gate: Gate | undefined = undefined;
  gates: readonly Gate[] = [];
  /** Where it waits for its own turn alone, with limits that others share. */
  own: Gate | undefined = undefined;
  /** Its place among the lanes that need several keys; undefined for one that needs a single one. */
  elder: Elder | undefined = undefined;
  /** Keeping its keys would not help it, as things stand. */
  isHeld = false;
  size = 0;
  /** When its last start was, and the number of that event; before the first, never. */
  startUs = Number.NEGATIVE_INFINITY;
  startSequence = 0;
  readonly #levels = new Heap<Level>(isLevelBefore);
  /** Made once there are several. */
  #byPriority: Map<number, Level> | undefined = undefined;

  constructor(
    readonly need: Need,
    readonly ageingUs: number,
  ) {}

  get head(): Waiter | undefined {
    return this.#levels.peek()?.first;
  }

  /** The instant of its last turn, or of its head's arrival, earlier by `ageing` for each point of its head's priority. */
  get orderUs(): number {
    const { first, priority = 0 } = this.#levels.peek() ?? {};
    return Math.max(this.startUs, first?.askedUs ?? Number.NEGATIVE_INFINITY) - priority * this.ageingUs;
  }

  /** The number of that event, for ties. */
  get orderSequence(): number {
    return Math.max(this.startSequence, this.head?.sequence ?? 0);
  }

  add(waiter: Waiter, priority: number): void {
    const level = this.#level(priority);
    level.push(waiter);
    this.size += 1;
    if (level.count === 1) this.#levels.push(level);
  }

  remove(waiter: Waiter, level: Level): void {
    const wasFirst = level.first === waiter;
    level.remove(waiter);
    this.size -= 1;
    if (level.count === 0) {
      this.#levels.remove(level);
      this.#byPriority?.delete(level.priority);
    } else if (wasFirst) this.#levels.update(level);
  }

  /** Everybody in no particular order, as a list that stays the same when they leave. */
  everybody(): Waiter[] {
    const all: Waiter[] = [];
    for (const { first } of this.#levels.items) {
      for (let waiter = first; waiter !== undefined; waiter = waiter.next) all.push(waiter);
    }
    return all;
  }

  /** Those who certainly start before a newcomer of that priority. Costs that differ by key count as 1, so that this is a lower bound. */
  aheadOf(priority: number): Ahead {
    let requests = 0;
    for (const level of this.#levels.items) if (level.priority >= priority) requests += level.count;
    return requests === 0 ? NOBODY : { requests, units: { rate: requests, window: requests, quota: requests } };
  }

  #level(priority: number): Level {
    const first = this.#levels.peek();
    if (first?.priority === priority) return first;
    if (first !== undefined) this.#byPriority ??= new Map(this.#levels.items.map((each) => [each.priority, each]));
    let level = this.#byPriority?.get(priority);
    if (level !== undefined) return level;
    level = new Level(this, priority);
    this.#byPriority?.set(priority, level);
    return level;
  }
}

/** A key that lanes need: who waits for it, and when the first of them may go on. */
export class Gate implements Positioned {
  /** Among the gates; -1 while there is nothing to wake up for. */
  position = -1;
  /** When the first parked lane is to be looked at again, and how much later it may be without losing anything. */
  readyUs = Number.POSITIVE_INFINITY;
  slackUs = 0;
  /** Lanes stopped at this key, in order of their turns. */
  readonly parked = new Heap<Lane>(isLaneBefore);
  /** Every lane that needs this key, wherever it is parked, and how many wait in them. */
  readonly lanes = new Set<Lane>();
  waiting = 0;

  constructor(readonly slot: number) {}
}

/** A lane that needs several keys, in the order of how long its head has waited. */
export class Elder implements Positioned {
  position = -1;

  constructor(readonly lane: Lane) {}
}

// Effective priority is priority + waited / ageing. The wait grows alike for all, so the order never changes: one point of
// priority is worth having asked `ageing` earlier.
function isLevelBefore({ first: a, priority, lane }: Level, { first: b, priority: otherPriority }: Level): boolean {
  if (a === undefined || b === undefined) return b === undefined;
  const difference = a.askedUs - priority * lane.ageingUs - (b.askedUs - otherPriority * lane.ageingUs);
  return difference === 0 ? a.sequence < b.sequence : difference < 0;
}

/** Whether the lane stands before another one at a key they share. */
export function isLaneBefore(a: Lane, b: Lane): boolean {
  const difference = a.orderUs - b.orderUs;
  return difference === 0 ? a.orderSequence < b.orderSequence : difference < 0;
}

/** The sooner first; of two that are ready at the same instant, the one whose first lane has the better claim. */
export function isGateBefore(a: Gate, b: Gate): boolean {
  if (a.readyUs !== b.readyUs) return a.readyUs < b.readyUs;
  const lane = a.parked.peek();
  const other = b.parked.peek();
  return lane !== undefined && other !== undefined && isLaneBefore(lane, other);
}

/** The one whose head has waited longer first: they are numbered as they come. */
export function isElderBefore({ lane: a }: Elder, { lane: b }: Elder): boolean {
  return (a.head?.sequence ?? 0) < (b.head?.sequence ?? 0);
}

/** The sooner deadline first. */
export function isDueBefore(a: Waiter, b: Waiter): boolean {
  return a.deadlineUs < b.deadlineUs;
}
