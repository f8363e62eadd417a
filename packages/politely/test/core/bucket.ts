import { rateOwedAt, rateOwedWithout, rateReadyAt } from "../../src/shared/rate.js";

/** A bucket in whole numbers: `count` units come back each `perUs`. */
export interface BucketNumbers {
  readonly count: number;
  readonly perUs: number;
  readonly burst: number;
}

/** A start that is still spent, with all that giving it back needs. */
export interface SpentStart {
  readonly atUs: number;
  cost: number;
  /** Units ever taken, this start included. */
  readonly unitsAfter: number;
}

/** Keeps the two numbers of one bucket through the functions of the core, as a row of the engine does. */
export class Bucket {
  owed = 0;
  seenUs = Number.NEGATIVE_INFINITY;
  readonly starts: SpentStart[] = [];
  #units = 0;

  constructor(readonly numbers: BucketNumbers) {}

  readyAt(cost: number): number {
    const { count, perUs, burst } = this.numbers;
    return rateReadyAt(count, this.owed, this.seenUs, (burst - cost) * perUs);
  }

  owedAt(nowUs: number): number {
    return rateOwedAt(this.numbers.count, this.owed, this.seenUs, nowUs);
  }

  take(nowUs: number, cost: number): SpentStart {
    this.owed = this.owedAt(nowUs) + cost * this.numbers.perUs;
    this.seenUs = Math.max(this.seenUs, nowUs);
    this.#units += cost;
    const start = { atUs: this.seenUs, cost, unitsAfter: this.#units };
    this.starts.push(start);
    return start;
  }

  /** Takes `units` back from a start. */
  giveBack(start: SpentStart, units: number, nowUs: number): void {
    const { perUs } = this.numbers;
    const later = this.#units - start.unitsAfter;
    this.owed = rateOwedWithout(this.owedAt(nowUs), units * perUs, later * perUs);
    this.seenUs = Math.max(this.seenUs, nowUs);
    start.cost -= units;
  }
}
