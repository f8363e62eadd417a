import type { LimitKind } from "../observe/types.js";
import type { Permit } from "../types.js";
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
  /** What stops the lane; undefined when nothing is known to. */
  outlook(spec: LaneSpec, nowUs: number): Outlook | undefined;
  /** Calls `tell` once it is known why a waiter of the lane does not start; never if it starts or leaves before. */
  tellWhy(spec: LaneSpec, waiter: Waiter, tell: TellWhy): void;
}
