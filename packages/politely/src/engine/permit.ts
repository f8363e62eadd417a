import type { Answer } from "../core/answer.js";
import { ONE, type Taken } from "../core/key.js";
import type { Outcome, ReleaseOptions } from "../types.js";
import { HOST_ONLY, type KeysOf } from "./arbiter.js";

/** Who takes permits back. */
export interface PermitOwner {
  reportAnswer(permit: HeldPermit, outcome: Outcome): void | Promise<void>;
  releasePermit(
    permit: HeldPermit,
    outcome: Outcome | undefined,
    options: ReleaseOptions | undefined,
  ): void | Promise<void>;
  /** What a store knows of a start: its instant there, and its token. Absent without one. */
  sharedStart?(permit: HeldPermit): { readonly startedUs: number; readonly token: number | undefined };
}

/** The keys of a start, and what was taken from each; nothing for a start that was recorded. */
export interface Grant {
  readonly need: KeysOf;
  readonly taken: readonly Taken[];
}

// Older engines have no Symbol.dispose; the permit is then simply not disposable by `using`.
const DISPOSE: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");
const ASYNC_DISPOSE: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/**
 * A granted start. It is its own record of what was taken when that was one unit of one key without places or quota, so that the
 * common grant makes one small object.
 */
export class HeldPermit {
  constructor(
    readonly owner: PermitOwner,
    readonly key: string,
    /** The row; its complement once released. */
    public mark: number,
    readonly startedUs: number,
    /** For one unit of one key just `UNITS` of its block after the start. */
    readonly detail: number | Grant,
    /** How long after the start before; undefined when there was none. A difference, since V8 keeps small whole numbers without an object of their own. */
    readonly sinceUs: number | undefined,
    /** Undefined for a start that did not wait, so that no number is made for it. */
    readonly waitedUs?: number,
  ) {}

  get isReleased(): boolean {
    return this.mark < 0;
  }

  get startedAtMs(): number {
    return (this.owner.sharedStart?.(this).startedUs ?? this.startedUs) / 1000;
  }

  get token(): number | undefined {
    return this.owner.sharedStart?.(this).token;
  }

  /** When its place was free again, since it was held for longer than `maxHold`; undefined while it has one, and once released. */
  get lapsedAtMs(): number | undefined {
    if (typeof this.detail === "number" || this.isReleased) return undefined;
    const lapsedUs = this.detail.taken.find(({ place }) => place?.lapsedUs !== undefined)?.place?.lapsedUs;
    return lapsedUs === undefined ? undefined : lapsedUs / 1000;
  }

  get waitedMs(): number {
    return (this.waitedUs ?? 0) / 1000;
  }

  get grant(): Grant {
    const { key, mark, startedUs, detail, sinceUs = Number.POSITIVE_INFINITY } = this;
    if (typeof detail !== "number") return detail;
    const previousUs = startedUs - sinceUs;
    const taken = { startedUs, previousUs, unitsAfter: detail, cost: ONE, place: undefined, period: -1 };
    return { need: { slots: [mark < 0 ? ~mark : mark], rowNames: [key], scopeNames: HOST_ONLY }, taken: [taken] };
  }

  /** What a log should show of it. */
  toJSON(): Record<string, unknown> {
    return { key: this.key, startedAtMs: this.startedAtMs, waitedMs: this.waitedMs, isReleased: this.isReleased };
  }

  release(outcome?: Outcome, options?: ReleaseOptions): void | Promise<void> {
    return this.owner.releasePermit(this, outcome, options);
  }

  report(outcome: Outcome): void | Promise<void> {
    return this.owner.reportAnswer(this, outcome);
  }

  [DISPOSE](): void {
    void this.release();
  }

  async [ASYNC_DISPOSE](): Promise<void> {
    await this.release();
  }
}

/** Whether an answer says no more than the one that was reported before: the same word, and no longer wait. */
export function isReported(before: Answer | undefined, { kind, scope, retryAfterUs }: Answer): boolean {
  return before?.kind === kind && before.scope === scope && retryAfterUs <= before.retryAfterUs;
}
