import type { Outcome, Permit, ReleaseOptions } from "../types.js";
import type { Hold } from "./flight.js";
import { type Cost, ONE, type Taken } from "./ledger.js";

/** Who takes permits back. */
export interface PermitOwner {
  releasePermit(permit: HeldPermit, outcome: Outcome | undefined, options: ReleaseOptions | undefined): void;
}

// Older engines have no Symbol.dispose; the permit is then simply not disposable by `using`.
const DISPOSE: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");

const HOST_ONLY: readonly string[] = ["host"];

/**
 * A granted start. It is its own record of what was taken when that was one unit of one simple key, so that the common
 * grant makes one object; otherwise `parts` has a record for each key.
 */
export class HeldPermit implements Permit, Taken {
  isReleased = false;

  constructor(
    readonly owner: PermitOwner,
    readonly key: string,
    readonly slot: number,
    readonly startedUs: number,
    readonly waitedUs: number,
    readonly unitsAfter: number,
    readonly previousUs: number | undefined,
    readonly parts: readonly Taken[] | undefined,
    /** What the records in `parts` stand for. */
    readonly partNames: readonly string[] | undefined,
  ) {}

  get startedAtMs(): number {
    return this.startedUs / 1000;
  }

  get waitedMs(): number {
    return this.waitedUs / 1000;
  }

  get scopeNames(): readonly string[] {
    return this.partNames ?? HOST_ONLY;
  }

  get cost(): Cost {
    return ONE;
  }

  get hold(): Hold | undefined {
    return undefined;
  }

  get period(): number {
    return -1;
  }

  release(outcome?: Outcome, options?: ReleaseOptions): void {
    this.owner.releasePermit(this, outcome, options);
  }

  [DISPOSE](): void {
    this.release();
  }
}
