import type { Stop } from "../../shared/operation.js";
import { ASK_AGAIN_US } from "../../shared/take.js";
import type { Plan } from "./plan.js";

/** The shortest time between two questions of a lane. */
const ASK_LEAST_US = 200;
/** Two looks for a change that only an answer can bring are at least so many round trips apart. */
const LOOK_TRIPS = 3;
/** Between two looks for a place while this process holds all of them: it knows by itself when one is given back. */
const ALL_HELD_US = 1_000_000;

/** What a lane that was told to wait knows. */
export interface Told {
  readonly stop: Stop;
  /** The store's time when it said so. */
  readonly saidUs: number;
  /** How long before its turn a question is asked, so that it is there in time. */
  readonly leadUs: number;
  readonly roundTripUs: number;
  /** How many places of the key that stops it this process holds. */
  readonly held: number;
}

/** How long a lane waits before it asks again. */
export function askAgainAfterUs(plan: Plan, { stop, saidUs, leadUs, roundTripUs, held }: Told): number {
  const waitUs = Math.min(stop.turnUs - saidUs, ASK_AGAIN_US);
  if (!isEvent(stop, plan)) return Math.max(ASK_LEAST_US, waitUs - leadUs);
  // A store that answers slowly has enough to do: looking for a change more often than it answers would only add to that.
  const lookUs = Math.max(waitUs, LOOK_TRIPS * roundTripUs);
  const { concurrency } = plan.keys[stop.key].shared;
  return stop.kind === "concurrency" && concurrency > 0 && held >= concurrency ? Math.max(lookUs, ALL_HELD_US) : lookUs;
}

/** Whether an answer or a release may end what stops a lane. */
export function isEvent({ kind, key }: Stop, plan: Plan): boolean {
  return kind === "concurrency" || kind === "probe" || kind === "pause" || plan.keys[key].shared.fromAnswer;
}
