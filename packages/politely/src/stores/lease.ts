/// <reference lib="esnext.disposable" preserve="true" />

import { PolitelyError, StoreError } from "../errors.js";
import { answerWithinMs, askStore, askTwice, type LeaseClaim, trustedUntilMs } from "./leaseClaim.js";
import type { LeaseReply } from "./operations.js";

/** How a lease was lost. `"expired"`: its ttl ran out before a renewal came through. `"taken"`: the store says that somebody else has it. */
export type LeaseLoss = "expired" | "taken";

/** The lease is no longer yours. The reason of its signal. Stop what it protects: somebody else may be at it. */
export class LeaseLostError extends PolitelyError {
  override readonly name = "LeaseLostError";
  readonly code = "POLITELY_LEASE_LOST";

  constructor(
    /** The name of the lease. */
    readonly lease: string,
    readonly token: number,
    readonly loss: LeaseLoss,
    /** What happened, in a few words. */
    what: string,
    options?: { readonly cause?: unknown },
  ) {
    super(`The lease "${lease}" (token ${token}) is lost: ${what}. Stop what it protects.`, options);
  }
}

/** An exclusive hold on a name. It renews itself until it is released or lost. */
export interface Lease extends AsyncDisposable {
  readonly held: true;
  readonly name: string;
  /** Larger than that of every holder before. Pass it to what you write to, and let that refuse a smaller one than it has seen. */
  readonly token: number;
  /**
   * Aborts with a `LeaseLostError` once the lease can no longer be relied on, which is before the store gives it to somebody else.
   *
   * It judges by the clock whenever it is looked at, so a process that was stopped sees it aborted at once. Releasing does not abort it.
   */
  readonly signal: AbortSignal;
  /**
   * Gives the lease back, if it is still this holder's; does nothing if it is lost. Only the first call counts, others wait for it.
   *
   * Resolves when the store has it back, or the ttl has run out meanwhile. Rejects with `StoreError` when the store
   * fails twice in a row or says nothing for 30 s; the lease then ends by itself.
   */
  release(): Promise<void>;
}

/** When to renew, and when to ask again after silence and after a failure, as shares of the ttl. Some 50 tries at most until it is lost. */
const RENEW_SHARE = 1 / 3;
const SILENCE_SHARE = 1 / 9;
const FAILURE_SHARE = 1 / 36;
/** Timers of a lease need not be sharp. */
const SLACK_MS = 2;

// Older engines have no Symbol.asyncDispose; the lease is then simply not disposable by `await using`.
const ASYNC_DISPOSE: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/** Keeps a lease that was taken by asking at `sentMs`: renews it until it is released or lost. Its timers let the process end. */
export function keepLease(claim: LeaseClaim, token: number, sentMs: number): Lease {
  return new KeptLease(claim, token, sentMs);
}

class KeptLease implements Lease {
  readonly held = true;
  readonly name: string;
  readonly signal: AbortSignal;
  readonly #claim: LeaseClaim;
  readonly #loss = new AbortController();
  #trustedUntilMs = Number.NEGATIVE_INFINITY;
  #isOver = false;
  #renewal: unknown;
  #end: unknown;
  #failure: unknown;
  #release: Promise<void> | undefined;

  constructor(
    claim: LeaseClaim,
    readonly token: number,
    sentMs: number,
  ) {
    this.#claim = claim;
    this.name = claim.name;
    this.signal = judgedSignal(this.#loss.signal, () => this.#judge());
    this.#confirm(sentMs);
  }

  release(): Promise<void> {
    this.#release ??= this.#giveBack();
    return this.#release;
  }

  [ASYNC_DISPOSE](): Promise<void> {
    return this.release();
  }

  /** The store said yes to what was asked at `sentMs`. That counts though trust had run out meanwhile: nobody else had the lease before. */
  #confirm(sentMs: number): void {
    this.#trustedUntilMs = Math.max(this.#trustedUntilMs, trustedUntilMs(this.#claim, sentMs));
    this.#failure = undefined;
    this.#renewAt(sentMs + this.#share(RENEW_SHARE));
    this.#judgeAtEnd();
  }

  #renewAt(atMs: number): void {
    this.#claim.clock.clearTimer(this.#renewal);
    this.#renewal = this.#setTimer(atMs, () => void this.#renew());
  }

  #judgeAtEnd(): void {
    this.#claim.clock.clearTimer(this.#end);
    this.#end = this.#setTimer(this.#trustedUntilMs, () => {
      this.#judge();
      // A timer may be early.
      if (!this.#isOver) this.#judgeAtEnd();
    });
  }

  #setTimer(atMs: number, act: () => void): unknown {
    const { clock } = this.#claim;
    const timer = clock.setTimer(atMs, act, SLACK_MS);
    clock.unref?.(timer);
    return timer;
  }

  #share(share: number): number {
    return (this.#claim.ttlUs / 1_000) * share;
  }

  async #renew(): Promise<void> {
    this.#judge();
    if (this.#isOver) return;
    const { clock, random } = this.#claim;
    // A request that nobody answers does not keep the next one from being sent, on another connection perhaps.
    this.#renewAt(clock.now() + this.#share(SILENCE_SHARE));
    try {
      const { reply, sentMs } = await askStore(this.#claim, "renew");
      if (this.#isOver) return;
      if (reply.isHeld) this.#confirm(sentMs);
      else this.#lose(reply.label === "" ? "expired" : "taken", lossText(reply));
    } catch (error) {
      if (this.#isOver) return;
      this.#failure = error;
      this.#renewAt(clock.now() + this.#share(FAILURE_SHARE) * (0.5 + random()));
    }
  }

  #judge(): void {
    const { clock, ttlUs } = this.#claim;
    if (this.#isOver || clock.now() < this.#trustedUntilMs) return;
    const why = this.#failure === undefined ? "no renewal came through" : "the store failed";
    this.#lose("expired", `${why} within its ttl of ${ttlUs / 1_000} ms`);
  }

  #lose(loss: LeaseLoss, what: string): void {
    this.#stop();
    this.#loss.abort(new LeaseLostError(this.name, this.token, loss, what, { cause: this.#failure }));
  }

  #stop(): void {
    this.#isOver = true;
    this.#claim.clock.clearTimer(this.#renewal);
    this.#claim.clock.clearTimer(this.#end);
  }

  async #giveBack(): Promise<void> {
    this.#judge();
    if (this.#isOver) return;
    this.#stop();
    try {
      await this.#soon(askTwice(this.#claim, "release"));
    } catch (error) {
      const leftMs = Math.ceil(this.#trustedUntilMs - this.#claim.clock.now());
      // Free by itself, so nobody has to be told.
      if (leftMs <= 0) return;
      throw new StoreError(
        `The lease "${this.name}" could not be given back. It ends by itself in about ${leftMs} ms; until then nobody else gets it.`,
        { cause: error },
      );
    }
  }

  /** Rejects when the promise takes too long. The timer keeps the process, since somebody waits for this. */
  #soon(promise: Promise<unknown>): Promise<void> {
    const { clock, store } = this.#claim;
    const withinMs = answerWithinMs(this.#claim);
    return new Promise((resolve, reject) => {
      const late = (): void => reject(new StoreError(`The store ${store.name} did not answer within ${withinMs} ms.`));
      const timer = clock.setTimer(clock.now() + withinMs, late, SLACK_MS);
      promise.then(() => resolve(), reject).finally(() => clock.clearTimer(timer));
    });
  }
}

function lossText({ label, remainingUs }: LeaseReply): string {
  if (label === "") return "it had run out at the store, or was removed there";
  return `${label} has it, for ${Math.ceil(remainingUs / 1_000)} ms at least`;
}

/**
 * Makes a signal call `judge` whenever somebody looks at it.
 *
 * A timer alone would be late: a process that was stopped and goes on may look before its timers are called.
 */
function judgedSignal(signal: AbortSignal, judge: () => void): AbortSignal {
  for (const name of ["aborted", "reason", "throwIfAborted"] as const) {
    Object.defineProperty(signal, name, {
      get(): unknown {
        judge();
        return Reflect.get(AbortSignal.prototype, name, signal);
      },
    });
  }
  return signal;
}
