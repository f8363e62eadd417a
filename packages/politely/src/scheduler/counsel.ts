import type { LimitKind } from "../observe/types.js";
import type { Permit, Target } from "../types.js";
import type { Demand } from "./demand.js";
import type { Lane, LaneCost, LaneSpec, Waiter } from "./lane.js";
import type { HeldPermit } from "./permit.js";

/** What stops a lane, as far as is known here. */
export interface Outlook {
  readonly limit: LimitKind;
  /** Which of the lane's keys. */
  readonly index: number;
  /** At the earliest. */
  readonly atUs: number;
  /** What was answered to cause it; empty where nothing was. */
  readonly because: string;
  /** Which of the rule's windows, when it is one. */
  readonly windowIndex: number;
  /** The limit in words, where it is none of this process's policy. */
  readonly words?: string | undefined;
}

/** Told why somebody waits: by a start that is granted for an instant to come, or, with undefined, by what `outlook` says. */
export type TellWhy = (grantedForUs: number | undefined) => void;

/** Starts beside the queue. */
export interface StartsAside {
  /** The permit of a start that is possible now. Rejects with a `DeadlineError` when there is none, and with the signal's reason. */
  start(target: Target, demand: Demand, cost: LaneCost, signal: AbortSignal | undefined): Promise<Permit>;
}

/** Who is let in beyond `maxQueue`, since it is not known yet whether they have to wait. */
export interface GuestList {
  /** Whether a newcomer may ask, though as many wait at its key number `index` as are allowed to. */
  mayAsk(demand: Demand, index: number, nowUs: number): boolean;
  /** Somebody was let in: it is refused once it is told to wait while too many are. */
  add(waiter: Waiter): void;
}

/**
 * Whoever has the last word on starts: a store that several processes share.
 *
 * The queue asks it about the head of a lane when nothing else stops that one. It never keeps the queue waiting: while it has to
 * find out, the answer is Infinity, and it calls `Queue.touch` and `run` when it knows.
 */
export interface Counsel {
  /** When the head of a lane, with that cost, may start. At or before `nowUs` means that a start is at hand. */
  readyAt(lane: Lane, cost: LaneCost, nowUs: number): number;
  /** Whether a start is at hand for a request that nobody is ahead of. */
  hasStart(spec: LaneSpec, cost: LaneCost, nowUs: number): boolean;
  /** A start at hand was used. Returns the permit for the caller. */
  started(spec: LaneSpec, permit: HeldPermit): Permit;
  /** Nobody waits in the lane any more. */
  emptied(lane: Lane): void;
  /** Another policy is in force; lanes are about to be built anew. */
  configured(): void;
  /** What stops a request of that cost in the lane; undefined when nothing is known to. */
  outlook(spec: LaneSpec, cost: LaneCost, nowUs: number): Outlook | undefined;
  /** Whether somebody in this process was told to wait for the lane's key number `index`. */
  isWaitedFor(spec: LaneSpec, index: number): boolean;
  /** For those who do not wait. */
  readonly aside: StartsAside;
  /** Those who wait though their queue is full. */
  readonly guests: GuestList;
  /** Calls `tell` once it is known why a waiter of the lane does not start; never if it starts or leaves before. */
  tellWhy(spec: LaneSpec, waiter: Waiter, tell: TellWhy): void;
}
