import { type Ahead, NOBODY } from "../core/key.js";
import type { ResolvedTarget } from "../policy/types.js";
import type { AcquireOptions, Permit } from "../types.js";
import type { Dated } from "./deadlines.js";
import type { Gate } from "./gate.js";
import { Heap, type Positioned } from "./heap.js";
import { type InLine, Line } from "./line.js";
import type { Costs, Need } from "./need.js";
import type { SignalWatch, Watched } from "./signals.js";

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
    public costs: Costs,
    /** What it asked for, in case the policy changes. */
    readonly target: ResolvedTarget,
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
export class Terms implements Dated {
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
export class Level extends Line<Waiter> implements Positioned {
  /** In the order of effective priority. */
  position = -1;

  constructor(
    readonly lane: Lane,
    readonly priority: number,
  ) {
    super();
  }
}

/** The levels of a lane in which several priorities wait. */
interface Ranks {
  readonly byPriority: Map<number, Level>;
  readonly levels: Heap<Level>;
}

/** The queue of those who need the same keys. */
export class Lane implements Positioned {
  /** Among the lanes stopped at its gate. */
  position = -1;
  /** The key it is stopped at. */
  gate: Gate | undefined = undefined;
  /** The gates of all its keys. */
  gates: readonly Gate[] = [];
  /** Its place among the lanes that need several keys; undefined for one that needs a single one. */
  elder: Elder | undefined = undefined;
  /** Keeping its keys would not help it, as things stand. */
  isHeld = false;
  size = 0;
  /** When its last start was, and the number of that event; before the first, never. */
  startUs = Number.NEGATIVE_INFINITY;
  startSequence = 0;
  /** The only level there is, or undefined while there are several or none. */
  #only: Level | undefined = undefined;
  #ranks: Ranks | undefined = undefined;

  constructor(
    readonly need: Need,
    readonly ageingUs: number,
  ) {}

  get head(): Waiter | undefined {
    return this.#first?.first;
  }

  get headPriority(): number {
    return this.#first?.priority ?? 0;
  }

  /** When its turn came: at its last start, or when its head arrived. */
  get turnUs(): number {
    return Math.max(this.startUs, this.head?.askedUs ?? Number.NEGATIVE_INFINITY);
  }

  /** The number of that event, for ties. */
  get turnSequence(): number {
    return Math.max(this.startSequence, this.head?.sequence ?? 0);
  }

  /** Where the lane stands among others at a shared key: the instant of its last turn, earlier by `ageing` for each point of its head's priority. */
  get orderUs(): number {
    return this.turnUs - this.headPriority * this.ageingUs;
  }

  get #first(): Level | undefined {
    return this.#only ?? this.#ranks?.levels.peek();
  }

  /** Whoever has waited longest, head or not. Looks at each priority, of which there are few. */
  get oldest(): Waiter | undefined {
    let oldest: Waiter | undefined = this.#only?.first;
    for (const { first } of this.#ranks?.levels.items ?? []) {
      if (first !== undefined && (oldest === undefined || first.sequence < oldest.sequence)) oldest = first;
    }
    return oldest;
  }

  add(waiter: Waiter, priority: number): void {
    const level = this.#level(priority);
    waiter.level = level;
    level.push(waiter);
    this.size += 1;
    if (level === this.#only || level.count > 1 || this.#ranks === undefined) return;
    this.#ranks.levels.push(level);
  }

  #level(priority: number): Level {
    const only = this.#only;
    if (only?.priority === priority) return only;
    if (only === undefined && this.#ranks === undefined) {
      this.#only = new Level(this, priority);
      return this.#only;
    }
    this.#ranks ??= { byPriority: new Map(), levels: new Heap(isLevelBefore) };
    if (only !== undefined) {
      this.#only = undefined;
      this.#ranks.byPriority.set(only.priority, only);
      this.#ranks.levels.push(only);
    }
    let level = this.#ranks.byPriority.get(priority);
    if (level === undefined) {
      level = new Level(this, priority);
      this.#ranks.byPriority.set(priority, level);
    }
    return level;
  }

  remove(waiter: Waiter): void {
    const { level } = waiter;
    if (level === undefined) return;
    const wasFirst = level.first === waiter;
    level.remove(waiter);
    waiter.level = undefined;
    this.size -= 1;
    const ranks = this.#ranks;
    if (level === this.#only || ranks === undefined) {
      if (level.count === 0) this.#only = undefined;
      return;
    }
    if (level.count > 0) {
      if (wasFirst) ranks.levels.update(level);
      return;
    }
    ranks.levels.remove(level);
    ranks.byPriority.delete(level.priority);
    if (ranks.levels.size > 1) return;
    this.#only = ranks.levels.peek();
    this.#ranks = undefined;
    if (this.#only !== undefined) this.#only.position = -1;
  }

  /** Everybody, in no particular order, as a list that stays the same when they leave. */
  everybody(): Waiter[] {
    if (this.#only !== undefined) return this.#only.toArray();
    return (this.#ranks?.levels.items ?? []).flatMap((level) => level.toArray());
  }

  /** Those who certainly start before a newcomer of that priority. Costs that differ by key count as 1, so that this is a lower bound. */
  aheadOf(priority: number): Ahead {
    if (this.size === 0) return NOBODY;
    let requests = 0;
    const levels = this.#only === undefined ? (this.#ranks?.levels.items ?? []) : [this.#only];
    for (const level of levels) if (level.priority >= priority) requests += level.count;
    return { requests, units: { rate: requests, window: requests, quota: requests } };
  }
}

function isLevelBefore(a: Level, b: Level): boolean {
  const { first } = a;
  const other = b.first;
  if (first === undefined || other === undefined) return other === undefined;
  // Effective priority is priority + waited / ageing. The wait grows alike for all, so the order never changes:
  // one point of priority is worth having asked `ageing` earlier.
  const { ageingUs } = a.lane;
  const difference = first.askedUs - a.priority * ageingUs - (other.askedUs - b.priority * ageingUs);
  return difference === 0 ? first.sequence < other.sequence : difference < 0;
}

/** A lane that needs several keys, in the order of how long it has had somebody waiting. */
export class Elder implements Positioned {
  position = -1;

  constructor(readonly lane: Lane) {}

  get sinceUs(): number {
    return this.lane.oldest?.askedUs ?? Number.POSITIVE_INFINITY;
  }
}

/** The one in which somebody has waited longer first: they are numbered as they come. */
export function isElderBefore({ lane: a }: Elder, { lane: b }: Elder): boolean {
  return (a.oldest?.sequence ?? 0) < (b.oldest?.sequence ?? 0);
}

/** Whether the lane stands before another one at a key they share. */
export function isLaneBefore(a: Lane, b: Lane): boolean {
  const difference = a.orderUs - b.orderUs;
  return difference === 0 ? a.turnSequence < b.turnSequence : difference < 0;
}
