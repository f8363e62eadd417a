import { checkNames } from "./core/checkNames.js";
import { systemClock } from "./engine/systemClock.js";
import { StoreError } from "./errors.js";
import { delay } from "./http/delay.js";
import { waitFor } from "./http/waitFor.js";
import { durationUs } from "./policy/duration.js";
import { isName, nameForm } from "./policy/name.js";
import { showValue } from "./policy/showValue.js";
import { keepLease, type Lease } from "./stores/lease.js";
import {
  answerWithinMs,
  askStore,
  askTwice,
  type LeaseAnswer,
  type LeaseClaim,
  trustedUntilMs,
} from "./stores/leaseClaim.js";
import type { Store } from "./stores/store.js";
import type { Clock, Duration } from "./types.js";

export { type Lease, type LeaseLoss, LeaseLostError } from "./stores/lease.js";

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
    if (reply.isHeld) return keepLease(claim, reply.token, sentMs);
    const leftMs = lastMs - clock.now();
    const remainingMs = reply.remainingUs / 1_000;
    if (leftMs <= 0) return { held: false, heldBy: reply.label, remainingMs };
    await delay(clock, Math.min(leftMs, pauseMs(remainingMs, claim)), { signal, woken: never });
  }
}

/** Asks for the lease, and gives it back where nobody is left who wants it. */
async function take(claim: LeaseClaim, signal: AbortSignal | undefined): Promise<LeaseAnswer> {
  const { clock, name, store } = claim;
  const maxWaitMs = answerWithinMs(claim);
  const late = (): StoreError =>
    new StoreError(
      `The store ${store.name} did not answer within ${maxWaitMs} ms, so the lease "${name}" was not taken. See what slows the store down, or raise ttl.`,
    );
  const asked = lookAndTake(claim);
  try {
    const answer = await waitFor(asked, clock, { signal, woken: never, maxWaitMs, late });
    if (answer === undefined || (answer.reply.isHeld && clock.now() >= trustedUntilMs(claim, answer.sentMs)))
      throw late();
    return answer;
  } catch (error) {
    // It may have been taken, or be taken yet. Nobody waits for this: the lease would end by itself.
    void giveUp(claim, asked);
    throw error;
  }
}

async function giveUp(claim: LeaseClaim, asked: Promise<unknown>): Promise<void> {
  await asked.catch(() => undefined);
  await askStore(claim, "release").catch(() => undefined);
}

async function lookAndTake(claim: LeaseClaim): Promise<LeaseAnswer> {
  if (claim.store.timeline === "machine") return askTwice(claim, "take", Math.floor(claim.clock.wall() * 1_000));
  // Tokens begin at the store's own date where it has one, since a client's may be years off.
  const look = await askTwice(claim, "look");
  const { isHeld, remainingUs, nowUs } = look.reply;
  return remainingUs > 0 && !isHeld ? look : askTwice(claim, "take", nowUs);
}

/** How long to wait before asking again: the holder may release it any time, and its end is known. */
function pauseMs(remainingMs: number, { ttlUs, random }: LeaseClaim): number {
  const usualMs = Math.min(MOST_PAUSE_MS, Math.max(LEAST_PAUSE_MS, ttlUs / 1_000 / LOOKS));
  return Math.min(usualMs * (0.75 + random() / 2), remainingMs + random() * END_JITTER_MS);
}

interface Arguments extends Omit<LeaseClaim, "label"> {
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

/** Says who asks, and when, as well as the platform knows. Never throws. */
function defaultLabel(clock: Clock): string {
  const { process } = globalThis as unknown as { readonly process?: HostProcess };
  const known = [
    quietly(() => process?.getBuiltinModule?.("node:os")?.hostname().slice(0, MOST_HOST_LENGTH)),
    quietly(() => (process?.pid === undefined ? undefined : `process ${process.pid}`)),
    quietly(() => `since ${new Date(clock.wall()).toISOString()}`),
  ];
  return known.filter((part) => part !== undefined && part !== "").join(", ") || "somebody";
}

/** A platform that imitates Node in part, or forbids to ask, has no answer. */
function quietly(read: () => string | undefined): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
