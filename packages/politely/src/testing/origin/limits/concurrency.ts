import { InFlight } from "../inFlight.js";
import type { LimitState } from "./limitState.js";

/** Lets in a request while fewer than `count` of those it let in are in flight. How long a refused one should wait, nobody can tell. */
export class Concurrency implements LimitState {
  /** Where the requests that are let in have to be counted. */
  readonly inFlight = new InFlight();
  readonly #count: number;

  constructor(count: number) {
    this.#count = count;
  }

  waitUs(nowUs: number): number {
    return this.inFlight.countAt(nowUs) < this.#count ? 0 : Number.POSITIVE_INFINITY;
  }

  take(): number {
    return 0;
  }

  quota(): undefined {
    return undefined;
  }

  isFresh(nowUs: number): boolean {
    return this.inFlight.countAt(nowUs) === 0;
  }
}
