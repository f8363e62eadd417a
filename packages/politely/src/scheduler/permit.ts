import type { Outcome, Permit, ReleaseOptions } from "../types.js";
import { type Cost, ONE } from "./cost.js";
import type { Taken } from "./ledger.js";

/** Who takes permits back. */
export interface PermitOwner {
  reportAnswer(permit: HeldPermit, outcome: Outcome): void;
  releasePermit(permit: HeldPermit, outcome: Outcome | undefined, options: ReleaseOptions | undefined): void;
}

// Older engines have no Symbol.dispose; the permit is then simply not disposable by `using`.
const DISPOSE: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");

/** The scope names of a request that needs its host alone. */
export const HOST_ONLY: readonly string[] = ["host"];

/** The same for a host that is exempt from everything, whatever scopes were named. */
export const EXEMPT_ONLY: readonly string[] = ["host"];

/** What a permit remembers beyond the least. */
export interface PermitDetail {
  readonly unitsAfter: number;
  /** What was taken from each key; undefined when it was one unit of one simple key. */
  readonly parts: readonly Taken[] | undefined;
  /** What the records in `parts` stand for. */
  readonly partNames: readonly string[];
}

/**
 * A granted start. It is its own record of what was taken when that was one unit of one simple key, so that the common
 * grant makes one small object; otherwise `parts` has a record for each key.
 */
export class HeldPermit implements Permit, Taken {
  constructor(
    readonly owner: PermitOwner,
    readonly key: string,
    /** The row; its complement once released. */
    public place: number,
    readonly startedUs: number,
    /** For one unit of one simple key just the units that were taken there, this one included. */
    readonly detail: number | PermitDetail,
    /** How long after the start before; undefined when there was none. A difference, since V8 keeps small whole numbers without an object of their own. */
    readonly sinceUs: number | undefined,
    /** Undefined for a start that did not wait, so that no number is made for it. */
    readonly waitedUs?: number,
  ) {}

  get slot(): number {
    return this.place < 0 ? ~this.place : this.place;
  }

  get isReleased(): boolean {
    return this.place < 0;
  }

  get startedAtMs(): number {
    return this.startedUs / 1000;
  }

  get waitedMs(): number {
    return (this.waitedUs ?? 0) / 1000;
  }

  get unitsAfter(): number {
    return typeof this.detail === "number" ? this.detail : this.detail.unitsAfter;
  }

  get previousUs(): number {
    return this.startedUs - (this.sinceUs ?? Number.POSITIVE_INFINITY);
  }

  get parts(): readonly Taken[] | undefined {
    return typeof this.detail === "number" ? undefined : this.detail.parts;
  }

  get scopeNames(): readonly string[] {
    return typeof this.detail === "number" ? HOST_ONLY : this.detail.partNames;
  }

  get cost(): Cost {
    return ONE;
  }

  /** What a log should show of it. */
  toJSON(): Record<string, unknown> {
    return { key: this.key, startedAtMs: this.startedAtMs, waitedMs: this.waitedMs, isReleased: this.isReleased };
  }

  release(outcome?: Outcome, options?: ReleaseOptions): void {
    this.owner.releasePermit(this, outcome, options);
  }

  report(outcome: Outcome): void {
    this.owner.reportAnswer(this, outcome);
  }

  [DISPOSE](): void {
    this.release();
  }
}
