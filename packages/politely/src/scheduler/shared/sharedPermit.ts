import type { Reported } from "../../engine/permit.js";
import type { SharedPermit as PublicPermit } from "../../sharedTypes.js";
import type { Outcome, ReleaseOptions } from "../../types.js";
import type { HeldPermit } from "../permit.js";
import type { Grant } from "./run.js";

/** Who takes shared permits back. */
export interface SharedPermitOwner {
  settle(permit: SharedPermit, outcome: Outcome | undefined, options: ReleaseOptions | undefined): Promise<void>;
  report(permit: SharedPermit, outcome: Outcome): Promise<void>;
  begun(permit: SharedPermit): void;
}

const DISPOSE: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");
const ASYNC_DISPOSE: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/** A start that the store has granted. */
export class SharedPermit implements PublicPermit {
  /** When its place was found gone, on the clock of this process; undefined while it has one, and once it is released. */
  lapsedAtMs: number | undefined = undefined;
  /** The last answer that was told while it was in flight. */
  reported: Reported | undefined = undefined;
  /** Ends when the store has heard the last hold that was told while it was in flight, or it is kept for later. */
  telling: Promise<void> | undefined = undefined;

  constructor(
    readonly owner: SharedPermitOwner,
    /** The same start in the books of this process. */
    readonly local: HeldPermit,
    /** Undefined where the store has no say: a host that is exempt. */
    readonly grant: Grant | undefined,
  ) {
    owner.begun(this);
  }

  get key(): string {
    return this.local.key;
  }

  get startedAtMs(): number {
    return this.grant === undefined ? this.local.startedAtMs : this.grant.start.startedUs / 1000;
  }

  /** When it was granted, on the clock of this process. */
  get localStartedAtMs(): number {
    return this.local.startedAtMs;
  }

  get waitedMs(): number {
    return this.local.waitedMs;
  }

  get token(): number | undefined {
    return this.grant?.facts.origin === "store" ? this.grant.start.token : undefined;
  }

  toJSON(): Record<string, unknown> {
    return { ...this.local.toJSON(), startedAtMs: this.startedAtMs, token: this.token };
  }

  release(outcome?: Outcome, options?: ReleaseOptions): Promise<void> {
    return this.owner.settle(this, outcome, options);
  }

  report(outcome: Outcome): Promise<void> {
    return this.owner.report(this, outcome);
  }

  [DISPOSE](): void {
    this.release().catch(() => undefined);
  }

  async [ASYNC_DISPOSE](): Promise<void> {
    await this.release();
  }
}
