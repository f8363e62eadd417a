import type { Start, Stop } from "../../core/shared/operation.js";
import type { LaneCost } from "../lane.js";
import type { Plan } from "./plan.js";

/** A start that the store has granted, until it is used or goes back. */
export interface Grant {
  readonly plan: Plan;
  /** The host, or what stands for it. */
  readonly key: string;
  readonly cost: LaneCost;
  readonly start: Start;
  /** Its place in the store. */
  readonly place: string;
  /** When it may be used, on this process's clock. */
  readonly readyUs: number;
  /** A place is kept for it. */
  readonly isFollowed: boolean;
  /** The store wants to hear of successes, too. */
  readonly isCooling: boolean;
  /** Where it came from: the store, or what stands in for it while it is away. */
  readonly origin: "store" | "share" | "open";
}

/** Where one lane stands with the store. */
export class Desk {
  /** Starts at hand, the first to be used first. */
  readonly pocket: Grant[] = [];
  isAsking = false;
  /** Nothing is asked before this instant of this process's clock. */
  askAtUs = Number.NEGATIVE_INFINITY;
  /** What the store said when it was last asked: why, and when to come back, on its own timeline. 0: nothing. */
  turnUs = 0;
  joinedUs = 0;
  stop: Stop | undefined = undefined;
  /** The instant of this process's clock at which the stop is over, at the earliest. */
  stopUntilUs = Number.NEGATIVE_INFINITY;

  constructor(
    readonly name: string,
    /** The host, or what stands for it. */
    readonly key: string,
    /** In the lines of the store. */
    readonly ticket: string,
    public plan: Plan,
  ) {}

  /** It stands in a line of the store. */
  get isInLine(): boolean {
    return this.turnUs > 0;
  }

  /** Forgets where it stood: nobody waits, or everything was granted. */
  leaveLine(): void {
    this.turnUs = 0;
    this.joinedUs = 0;
    this.stop = undefined;
    this.askAtUs = Number.NEGATIVE_INFINITY;
    this.stopUntilUs = Number.NEGATIVE_INFINITY;
  }
}
