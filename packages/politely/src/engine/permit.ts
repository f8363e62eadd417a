import type { Answer } from "../core/answer.js";
import { type Cost, ONE, type Place, type Taken } from "../core/key.js";
import type { Outcome, Permit, ReleaseOptions } from "../types.js";
import { HOST_ONLY } from "./arbiter.js";

/** Who takes permits back. */
export interface PermitOwner {
  reportAnswer(permit: HeldPermit, outcome: Outcome): void;
  releasePermit(permit: HeldPermit, outcome: Outcome | undefined, options: ReleaseOptions | undefined): void;
}

/** What a start took from one key, and which. */
export interface Part extends Taken {
  readonly slot: number;
  readonly rowName: string;
}

/** What a permit remembers beyond the least. */
export interface PermitDetail {
  readonly parts: readonly Part[];
  readonly scopeNames: readonly string[];
}

// Older engines have no Symbol.dispose; the permit is then simply not disposable by `using`.
const DISPOSE: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");

/**
 * A granted start. It is its own record of what was taken when that was one unit of one key without places or quota, so that the
 * common grant makes one small object.
 */
export class HeldPermit implements Permit, Part {
  constructor(
    readonly owner: PermitOwner,
    readonly key: string,
    /** The row; its complement once released. */
    public mark: number,
    readonly startedUs: number,
    /** For one unit of one key just `UNITS` of its block after the start. */
    readonly detail: number | PermitDetail,
    /** How long after the start before; undefined when there was none. A difference, since V8 keeps small whole numbers without an object of their own. */
    readonly sinceUs: number | undefined,
    /** Undefined for a start that did not wait, so that no number is made for it. */
    readonly waitedUs?: number,
  ) {}

  get slot(): number {
    return this.mark < 0 ? ~this.mark : this.mark;
  }

  get isReleased(): boolean {
    return this.mark < 0;
  }

  get startedAtMs(): number {
    return this.startedUs / 1000;
  }

  get waitedMs(): number {
    return (this.waitedUs ?? 0) / 1000;
  }

  get parts(): readonly Part[] {
    return typeof this.detail === "number" ? [this] : this.detail.parts;
  }

  get scopeNames(): readonly string[] {
    return typeof this.detail === "number" ? HOST_ONLY : this.detail.scopeNames;
  }

  // What follows is its own record.
  get rowName(): string {
    return this.key;
  }

  get unitsAfter(): number {
    return typeof this.detail === "number" ? this.detail : this.detail.parts[0].unitsAfter;
  }

  get previousUs(): number {
    return this.startedUs - (this.sinceUs ?? Number.POSITIVE_INFINITY);
  }

  get cost(): Cost {
    return ONE;
  }

  get place(): Place | undefined {
    return undefined;
  }

  get period(): number {
    return -1;
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

/** What was last said about a start before its end. */
export interface Reported {
  readonly kind: Answer["kind"];
  readonly scope: string | undefined;
  /** The very thing that has the details: what an outcome says beyond its kind. */
  readonly detail: unknown;
}

/** What is to be remembered of an answer, to know it again. A response that is given twice has the same headers both times, whatever was made of it between. */
export function reportedOf({ kind, scope }: Answer, outcome: Outcome | undefined): Reported {
  const details = typeof outcome === "object" ? outcome : { headers: undefined };
  return { kind, scope, detail: "kind" in details ? details.retryAfterMs : details.headers };
}

/** Whether an answer is the one reported before: of the same kind, and with nothing in it that was not in that one. */
export function isReported(before: Reported | undefined, answer: Answer, outcome: Outcome | undefined): boolean {
  if (before === undefined) return false;
  const { kind, scope, detail } = reportedOf(answer, outcome);
  return before.kind === kind && before.scope === scope && (detail === undefined || detail === before.detail);
}
