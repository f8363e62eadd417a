import type { Start } from "../../shared/operation.js";
import { placeName } from "../../shared/take.js";
import type { LaneCost } from "../lane.js";
import type { Plan } from "./plan.js";

/** What all starts of one reply have in common. */
export interface RunFacts {
  readonly plan: Plan;
  /** The host, or what stands for it. */
  readonly key: string;
  readonly cost: LaneCost;
  /** A place is kept for each. */
  readonly isFollowed: boolean;
  /** The store wants to hear of successes, too. */
  readonly isCooling: boolean;
  /** Where they came from: the store, or what stands in for it while it is away. */
  readonly origin: "store" | "share" | "open";
  /** When they were granted, on the store's timeline. */
  readonly grantedUs: number;
  /** Who asked for them, and in which operation. */
  readonly asker: { readonly asker: string; readonly sequence: number };
}

/** One start that the store has granted. */
export interface Grant {
  readonly facts: RunFacts;
  readonly start: Start;
  /** Its place in the store. */
  readonly place: string;
}

/** A start that is used later than this after its instant puts off those after it, so that they do not bunch up. */
const BUNCH_US = 10_000;

/** A start that is not used for so long after its instant goes back: this process stood still, and others have started since. With what may be granted ahead, 100 ms. */
const STALE_US = 50_000;

/** The starts of one reply that are at hand, the first to be used first. */
export class Run {
  #next = 0;
  #lateUs = 0;

  constructor(
    readonly facts: RunFacts,
    readonly starts: readonly Start[],
    /** From the store's timeline to this process's: such that nothing is used before its instant. */
    readonly offsetUs: number,
    /** They have been on the way for so long that they are not to be used: a place may be lost, and the starts be too close to others. */
    readonly isLate: boolean,
  ) {}

  get left(): number {
    return this.starts.length - this.#next;
  }

  /** When the next one may be used, on this process's clock. */
  get readyUs(): number {
    return this.dueUs + this.#lateUs;
  }

  /** The instant for which the next one was granted, on this process's clock: how old it is, whatever those before it put off. */
  get dueUs(): number {
    return this.starts[this.#next].startedUs + this.offsetUs;
  }

  /** Not used in time: it has to be counted anew. */
  isStale(nowUs: number, isBatch: boolean): boolean {
    return this.isLate || this.dueUs + (isBatch ? this.facts.plan.batchUs : STALE_US) < nowUs;
  }

  /** Takes the next one, at this instant of this process's clock. */
  take(nowUs: number): Grant {
    this.#lateUs += Math.max(0, nowUs - this.readyUs - BUNCH_US);
    const number = this.#next;
    this.#next += 1;
    return { facts: this.facts, start: this.starts[number], place: placeName(this.facts.asker, number) };
  }

  /** Takes all that are left as one, to be given back: the last, with what was before the first; and how many there were at each instant. */
  takeRest(): { readonly grant: Grant; readonly unusedAt: readonly number[] } {
    const unusedAt = instantsOf(this.starts, this.#next);
    const { previousUs } = this.starts[this.#next];
    this.#next = this.starts.length - 1;
    const last = this.take(this.readyUs);
    return { grant: { ...last, start: { ...last.start, previousUs } }, unusedAt };
  }
}

/** The instants of the starts from `first` on, each followed by how many there are at it. */
function instantsOf(starts: readonly Start[], first: number): number[] {
  const instants: number[] = [];
  for (let index = first; index < starts.length; index++) {
    const { startedUs } = starts[index];
    if (instants.at(-2) === startedUs) instants[instants.length - 1] += 1;
    else instants.push(startedUs, 1);
  }
  return instants;
}
