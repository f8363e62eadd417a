import { StoreError } from "../errors.js";
import type { Clock } from "../types.js";
import type { LeaseOperation, LeaseReply } from "./operations.js";
import type { Store } from "./store.js";

/** One attempt at a lease: who asks for what. All it asks of the store is safe to send again. */
export interface LeaseClaim {
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
export interface LeaseAnswer {
  readonly reply: LeaseReply;
  readonly sentMs: number;
}

/** Clocks are slewed by 0.05 % at most. This is for two of them, one that runs fast and one that runs slow. */
const TRUSTED_SHARE = 0.999;
/** A store that says nothing for so long has failed. */
const ANSWER_MOST_MS = 30_000;

/**
 * Asks the store one thing about the lease. Rejects with `StoreError` only.
 *
 * `epochUs` counts when a lease is taken: see `LeaseOperation`.
 */
export async function askStore(claim: LeaseClaim, act: LeaseOperation["act"], epochUs = 0): Promise<LeaseAnswer> {
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
export async function askTwice(claim: LeaseClaim, act: LeaseOperation["act"], epochUs = 0): Promise<LeaseAnswer> {
  try {
    return await askStore(claim, act, epochUs);
  } catch {
    return askStore(claim, act, epochUs);
  }
}

/** How long to wait for the store's answer: not beyond the life of the lease, and 30 s at most. */
export function answerWithinMs({ ttlUs }: LeaseClaim): number {
  return Math.min(ttlUs / 1_000, ANSWER_MOST_MS);
}

/**
 * Until when a lease that was asked for at `sentMs` can be relied on, on the claim's own clock.
 *
 * It is before anybody else can get it: by a thousandth of its life, and by as much as the store says that another client's time may be ahead. A
 * client that knows the time less well than that makes the lease longer in the store: see `decideLease`.
 */
export function trustedUntilMs({ ttlUs, store }: LeaseClaim, sentMs: number): number {
  return sentMs + (ttlUs * TRUSTED_SHARE - (store.clockErrorUs ?? 0)) / 1_000;
}
