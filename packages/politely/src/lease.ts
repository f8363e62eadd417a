/// <reference lib="esnext.disposable" preserve="true" />

import { checkNames } from "./core/checkNames.js";
import { systemClock } from "./engine/systemClock.js";
import { PolitelyError, StoreError } from "./errors.js";
import { delay } from "./http/delay.js";
import { waitFor } from "./http/waitFor.js";
import { durationUs } from "./policy/duration.js";
import { isName, nameForm } from "./policy/names.js";
import { showValue } from "./policy/showValue.js";
import type { LeaseOperation, LeaseReply } from "./stores/operations.js";
import type { Store } from "./stores/store.js";
import type { Clock, Duration } from "./types.js";

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

/** How a lease is asked for. */
export interface LeaseOptions {
  /**
   * How long the lease lives without a sign of its holder: 10 ms to 100 years. It is renewed at a third of it. When the holder dies, the next
   * one gets the lease within this time, so several seconds at least are sensible; too short a life is lost to a slow store.
   */
  readonly ttl: Duration;
  /** How long to wait for somebody else's lease to end. Default 0: not at all. First come is not promised to be first served. */
  readonly wait?: Duration | undefined;
  /** Aborting it ends the wait; the promise rejects with `signal.reason`. A lease that is held already does not listen to it. */
  readonly signal?: AbortSignal | undefined;
  /** Who you are, for those who find the lease held: 1 to 200 characters. Default: host name, process id, and since when. */
  readonly label?: string | undefined;
  /** Default: the machine's monotonic clock. Tests pass a `VirtualClock`. */
  readonly clock?: Clock | undefined;
  /** Numbers from 0 up to but not including 1, for jitter. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** Somebody else holds the lease. */
export interface LeaseRefusal {
  readonly held: false;
  /** The label of the holder. */
  readonly heldBy: string;
  /** How long until it could be had, unless the holder releases it before. It may renew it meanwhile. */
  readonly remainingMs: number;
}

const KNOWN_OPTIONS = ["ttl", "wait", "signal", "label", "clock", "random"];
const LEAST_TTL_US = 10_000;
/** A ttl is at least so many times what the clocks of the store's clients may differ by, since that much of it is lost. */
const LEAST_CLOCK_ERRORS = 4;
/** Whoever waits asks about ten times in a ttl, with pauses not shorter and not longer than this. */
const LOOKS = 10;
const LEAST_PAUSE_MS = 100;
const MOST_PAUSE_MS = 5_000;
/** How much later than at its end those who wait come for a lease, so that they do not come all at once. */
const END_JITTER_MS = 10;
const MOST_HOST_LENGTH = 100;
/** Clocks are slewed by 0.05 % at most. This is for two of them, one that runs fast and one that runs slow. */
const TRUSTED_SHARE = 0.999;
/** A store that says nothing for so long has failed. */
const ANSWER_MOST_MS = 30_000;
/** When to renew, and when to ask again after silence and after a failure, as shares of the ttl. Some 50 tries at most until it is lost. */
const RENEW_SHARE = 1 / 3;
const SILENCE_SHARE = 1 / 9;
const FAILURE_SHARE = 1 / 36;
/** Timers of a lease need not be sharp. */
const SLACK_MS = 2;

// Older engines have no Symbol.asyncDispose; the lease is then simply not disposable by `await using`.
const ASYNC_DISPOSE: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

const never = new AbortController().signal;

/**
 * Takes the lease `name` of the store, which at most one holder in the whole fleet has at any time, or says who has it.
 *
 * Tell the two apart by `held`. Release the lease when done; until then it renews itself. Neither a lease nor its
 * timers keep the process alive. Whether a lease has run out is judged when it is asked for, on the store's own time.
 *
 * Rejects with `StoreError` when the store fails twice in a row or does not answer within `ttl` (30 s at most), with `signal.reason` on abort, and with
 * `TypeError` or `RangeError` for arguments that make no sense.
 */
export async function exclusive(store: Store, name: string, options: LeaseOptions): Promise<Lease | LeaseRefusal> {
  const { signal, waitUs, label, ...asker } = readArguments(store, name, options);
  const { clock } = asker;
  signal?.throwIfAborted();
  const lastMs = clock.now() + waitUs / 1_000;
  for (;;) {
    const claim = { ...asker, label: label ?? defaultLabel(clock) };
    const { reply, sentMs } = await take(claim, signal);
    if (reply.isHeld) return new KeptLease(claim, reply.token, sentMs);
    const leftMs = lastMs - clock.now();
    const remainingMs = reply.remainingUs / 1_000;
    if (leftMs <= 0) return { held: false, heldBy: reply.label, remainingMs };
    await delay(clock, Math.min(leftMs, pauseMs(remainingMs, claim)), { signal, woken: never });
  }
}

/** One attempt at a lease: who asks for what. All it asks of the store is safe to send again. */
interface Claim {
  readonly store: Store;
  readonly name: string;
  /** Unique to this attempt. */
  readonly holder: string;
  /** Who it is, for people. */
  readonly label: string;
  readonly ttlUs: number;
  readonly clock: Clock;
  readonly random: () => number;
}

/** A reply of the store, and when it was asked for on the claim's own clock. */
interface LeaseAnswer {
  readonly reply: LeaseReply;
  readonly sentMs: number;
}

/** Asks for the lease, and gives it back where nobody is left who wants it. */
async function take(claim: Claim, signal: AbortSignal | undefined): Promise<LeaseAnswer> {
  const asked = lookAndTake(claim);
  try {
    const answer = await answered(claim, asked, signal);
    if (answer.reply.isHeld && claim.clock.now() >= trustedUntilMs(claim, answer.sentMs)) throw lateError(claim);
    return answer;
  } catch (error) {
    // It may have been taken, or be taken yet. Nobody waits for this: the lease would end by itself.
    const giveUp = (): Promise<unknown> => ask(claim, "release");
    void asked.then(giveUp, giveUp).catch(() => undefined);
    throw error;
  }
}

async function lookAndTake(claim: Claim): Promise<LeaseAnswer> {
  if (claim.store.timeline === "machine") return askTwice(claim, "take", Math.floor(claim.clock.wall() * 1_000));
  // Tokens begin at the store's own date where it has one, since a client's may be years off.
  const look = await askTwice(claim, "look");
  const { isHeld, remainingUs, nowUs } = look.reply;
  return remainingUs > 0 && !isHeld ? look : askTwice(claim, "take", nowUs);
}

/**
 * Asks the store one thing about the lease. Rejects with `StoreError` only.
 *
 * `epochUs` counts when a lease is taken: see `LeaseOperation`.
 */
async function ask(claim: Claim, act: LeaseOperation["act"], epochUs = 0): Promise<LeaseAnswer> {
  const { store, name, holder, label, ttlUs, clock } = claim;
  // Before the request leaves: what the store counts from its arrival on cannot have begun earlier.
  const sentMs = clock.now();
  try {
    const reply = await store.transact([`lease:${name}`], { kind: "lease", act, holder, label, ttlUs, epochUs });
    return { reply, sentMs };
  } catch (error) {
    if (error instanceof StoreError) throw error;
    throw new StoreError(`The store ${store.name} failed with the lease "${name}". See the cause.`, { cause: error });
  }
}

/** The same, and again at once if it fails: a connection that was cut is often back by then, and a reply that got lost is given again. */
function askTwice(...asked: Parameters<typeof ask>): Promise<LeaseAnswer> {
  return ask(...asked).catch(() => ask(...asked));
}

/** Waits for the store's answer: not beyond the life of the lease, and 30 s at most. The timer keeps the process, since somebody waits for this. */
async function answered(claim: Claim, asked: Promise<LeaseAnswer>, signal?: AbortSignal): Promise<LeaseAnswer> {
  const late = (): StoreError => lateError(claim);
  const answer = await waitFor(asked, claim.clock, { signal, woken: never, maxWaitMs: answerWithinMs(claim), late });
  return answer as LeaseAnswer;
}

function lateError(claim: Claim): StoreError {
  return new StoreError(
    `The store ${claim.store.name} did not answer within ${answerWithinMs(claim)} ms when it was asked for the lease "${claim.name}". See what slows the store down, or raise ttl.`,
  );
}

function answerWithinMs({ ttlUs }: Claim): number {
  return Math.min(ttlUs / 1_000, ANSWER_MOST_MS);
}

/**
 * Until when a lease that was asked for at `sentMs` can be relied on, on the claim's own clock.
 *
 * It is before anybody else can get it: by a thousandth of its life, and by as much as the store says that another client's time may be ahead. A
 * client that knows the time less well than that makes the lease longer in the store: see `decideLease`.
 */
function trustedUntilMs({ ttlUs, store }: Claim, sentMs: number): number {
  return sentMs + (ttlUs * TRUSTED_SHARE - (store.clockErrorUs ?? 0)) / 1_000;
}

/** Keeps a lease: renews it until it is released or lost. Its timers let the process end. */
class KeptLease implements Lease {
  readonly held = true;
  readonly name: string;
  readonly signal: AbortSignal;
  readonly #claim: Claim;
  readonly #loss = new AbortController();
  #trustedUntilMs = Number.NEGATIVE_INFINITY;
  #isOver = false;
  #renewal: unknown;
  #end: unknown;
  #failure: unknown;
  #release: Promise<void> | undefined;

  constructor(
    claim: Claim,
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
      const { reply, sentMs } = await ask(this.#claim, "renew");
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
      await answered(this.#claim, askTwice(this.#claim, "release"));
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

/** How long to wait before asking again: the holder may release it any time, and its end is known. */
function pauseMs(remainingMs: number, { ttlUs, random }: Claim): number {
  const usualMs = Math.min(MOST_PAUSE_MS, Math.max(LEAST_PAUSE_MS, ttlUs / 1_000 / LOOKS));
  return Math.min(usualMs * (0.75 + random() / 2), remainingMs + random() * END_JITTER_MS);
}

interface Arguments extends Omit<Claim, "label"> {
  readonly label: string | undefined;
  readonly signal: AbortSignal | undefined;
  readonly waitUs: number;
}

function readArguments(store: Store, name: string, options: LeaseOptions): Arguments {
  if (typeof store?.transact !== "function") {
    throw new TypeError(`store must be a store of politely, as redisStore(client) is; got ${showValue(store)}`);
  }
  checkName(name, "name");
  checkNames(options, KNOWN_OPTIONS, "options");
  const { ttl, wait = 0, signal, label, clock = systemClock(), random = Math.random } = options;
  const ttlUs = durationUs(ttl, "ttl");
  const leastUs = Math.max(LEAST_TTL_US, LEAST_CLOCK_ERRORS * (store.clockErrorUs ?? 0));
  if (ttlUs < leastUs)
    throw new RangeError(`ttl must be at least ${leastUs / 1_000} ms with ${store.name}; got ${showValue(ttl)}`);
  const waitUs = durationUs(wait, "wait", { allowZero: true });
  if (label !== undefined) checkName(label, "label");
  if (signal !== undefined && typeof signal?.throwIfAborted !== "function") {
    throw new TypeError(`signal must be an AbortSignal; got ${showValue(signal)}`);
  }
  if (typeof random !== "function") throw new TypeError(`random must be a function; got ${showValue(random)}`);
  for (const method of ["now", "wall", "setTimer", "clearTimer"] as const) {
    if (typeof clock?.[method] === "function") continue;
    throw new TypeError(`clock must be an object with now, wall, setTimer and clearTimer; ${method} is missing.`);
  }
  return { store, name, holder: newHolder(), label, ttlUs, waitUs, signal, clock, random };
}

function checkName(value: unknown, what: string): void {
  if (typeof value !== "string") throw new TypeError(`${what} must be a text ${nameForm}; got ${showValue(value)}`);
  if (!isName(value)) throw new RangeError(`${what} must be a text ${nameForm}; got ${showValue(value)}`);
}

function newHolder(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(36)).join("-");
}

interface HostProcess {
  readonly pid?: number;
  getBuiltinModule?(name: "node:os"): { hostname(): string } | undefined;
}

/** Says who asks, and when, as well as the platform knows. Never throws: a platform that imitates Node in part, or forbids to ask, has no answer. */
function defaultLabel(clock: Clock): string {
  const { process } = globalThis as unknown as { readonly process?: HostProcess };
  const parts = [
    () => process?.getBuiltinModule?.("node:os")?.hostname().slice(0, MOST_HOST_LENGTH),
    () => process?.pid && `process ${process.pid}`,
    () => `since ${new Date(clock.wall()).toISOString()}`,
  ];
  const known = parts.map((read) => {
    try {
      return read();
    } catch {
      return undefined;
    }
  });
  return known.filter(Boolean).join(", ") || "somebody";
}
