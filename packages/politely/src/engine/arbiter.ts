import type { Ahead, Cost, Obstacle } from "../core/key.js";
import type { LimitKind } from "../observe/types.js";
import type { Costs, Need } from "./need.js";
import type { HeldPermit } from "./permit.js";

/** What keeps a request from starting now: the one of its keys that lets it start last. */
export interface Stop {
  /** The number of that key among those of the request. */
  index: number;
  /** When to look again; Infinity: only an answer or a person can tell. */
  atUs: number;
  /** How much later costs nothing, since a bucket saves up meanwhile. */
  slackUs: number;
  /** The limit that says so. */
  limit: LimitKind | undefined;
}

/** One obstacle of a request, and at which of its keys. */
export interface Found extends Obstacle {
  readonly index: number;
}

/**
 * Says who may start. The queue asks nobody else: in one process the arbiter is the rows of all keys and answers at once.
 *
 * All keys of a request are taken in one step or none is, and a refusal changes nothing.
 */
export interface Arbiter {
  /** What stops a request now; undefined: nothing does. The answer is valid until the next question. */
  stopOf(need: Need, costs: Costs, nowUs: number): Readonly<Stop> | undefined;
  /** Takes all keys and grants, or says what stops the request. */
  take(need: Need, costs: Costs, askedUs: number, nowUs: number): HeldPermit | Readonly<Stop>;
  /** When one key allows a start, after those `ahead`. */
  readyAt(slot: number, cost: Cost, nowUs: number, ahead: Ahead): number;
  /** Everything that stands in the way after those `ahead`, key by key. */
  look(need: Need, costs: Costs, nowUs: number, ahead: Ahead): Found[];
}
