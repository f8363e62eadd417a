import type { Stop } from "../../shared/operation.js";
import { ONE } from "../cost.js";
import type { LaneCost, LaneSpec } from "../lane.js";
import type { Chance } from "./chances.js";
import type { Plan } from "./plan.js";
import type { Run } from "./run.js";

/** Where one lane stands with the store. */
export class Desk {
  /** Starts at hand. None of the runs is used up. */
  readonly pocket: Run[] = [];
  isAsking = false;
  /** Something was given back in this process while it asked. */
  isFreed = false;
  /** What it asks for was reset by this process while it asked. */
  isForgiven = false;
  /** Nothing is asked before this instant of this process's clock. */
  askAtUs = Number.NEGATIVE_INFINITY;
  /** What the store said when it was last asked: why, and when to come back, on its own timeline. 0: nothing. */
  turnUs = 0;
  joinedUs = 0;
  stop: Stop | undefined = undefined;
  /** The instant of this process's clock at which the stop is over, at the earliest. */
  stopUntilUs = Number.NEGATIVE_INFINITY;
  /** What it was last told came from what stands in for the store. */
  isByStandby = false;
  /** The key that stops it, and whether an answer or a release may end that; empty when it does not wait. */
  awaits = "";
  awaitsEvent = false;
  /** The keys at which it is known to wait. */
  awaitsAt: readonly string[] = [];
  /** What it is called for before its turn. */
  chance: Chance | undefined = undefined;
  /** What each start of the last question was to cost. */
  cost: LaneCost = ONE;
  /** How many starts it was for, when it was asked, and how many were used since. */
  lastCount = 0;
  lastAskUs = Number.NEGATIVE_INFINITY;
  used = 0;

  constructor(
    readonly spec: LaneSpec,
    /** In the lines of the store. */
    readonly ticket: string,
    public plan: Plan,
  ) {}

  get name(): string {
    return this.spec.name;
  }

  /** It stands in a line of the store. */
  get isInLine(): boolean {
    return this.turnUs > 0;
  }

  /** It was told to come later than it could start by itself, since others are ahead. */
  get isBehind(): boolean {
    return this.stop !== undefined && this.turnUs > this.stop.readyUs;
  }

  /** How many of so many in the lane were told to wait. */
  toldOf(size: number): number {
    return this.stop === undefined ? 0 : Math.max(0, size - this.left);
  }

  /** How many starts are at hand. */
  get left(): number {
    let left = 0;
    for (const run of this.pocket) left += run.left;
    return left;
  }

  /** Takes out the starts at hand that are for one of these keys. */
  takeHeld(storeKeys: readonly string[]): readonly Run[] {
    const held = this.pocket.filter(({ facts }) => facts.plan.storeKeys.some((key) => storeKeys.includes(key)));
    for (const run of held) this.pocket.splice(this.pocket.indexOf(run), 1);
    return held;
  }

  /** How many starts will be used in a time as long as `spanUs` if it goes on as since the last question; at most twice as many as that was for. */
  usedWithin(spanUs: number, nowUs: number): number {
    const sinceUs = nowUs - this.lastAskUs;
    return sinceUs > 2 * spanUs
      ? 0
      : Math.min(2 * this.lastCount, Math.ceil((this.used * spanUs) / Math.max(1, sinceUs)));
  }

  /** A question for so many of that cost is asked. */
  asks(cost: LaneCost, count: number, nowUs: number): void {
    this.isAsking = true;
    this.isForgiven = false;
    this.chance = undefined;
    this.cost = cost;
    this.lastCount = count;
    this.lastAskUs = nowUs;
    this.used = 0;
  }

  /** What it was told does not count any more. It keeps its place in line. */
  forgive(): void {
    this.isForgiven = this.isAsking;
    this.stop = undefined;
    this.askAtUs = Number.NEGATIVE_INFINITY;
    this.stopUntilUs = Number.NEGATIVE_INFINITY;
  }

  /** Forgets where it stood: nobody waits, or everything was granted. */
  leaveLine(): void {
    this.turnUs = 0;
    this.joinedUs = 0;
    this.forgive();
  }
}
