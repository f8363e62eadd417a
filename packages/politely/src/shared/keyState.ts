import type { Headroom } from "../core/headroom.js";
import type { CooldownState } from "./cooldown.js";
import type { SharedRule, Units } from "./operation.js";

/** Stands for an instant that never was. Timelines begin at 0. */
export const NEVER_US = -1;

/** Stands for "until somebody ends it". */
export const ALWAYS_US = Number.MAX_SAFE_INTEGER;

/** All that a store remembers of one key. Instants are microseconds of the store's timeline. */
export interface KeyState {
  /** The latest time it was looked at. */
  seenUs: number;
  /** The last start, possibly granted ahead. */
  lastUs: number;
  /** The last answer, where gaps and windows run from answers. */
  answeredUs: number;
  /** Units taken in all, by which a start that comes back knows whether others came after it. */
  units: number;
  starts: number;
  throttled: number;
  token: number;
  /** The longest gap that a process has kept here beyond its rule: how long the last start matters to somebody. */
  slowUs: number;
  /** How long a place is held, by those given back lately; 0: not known. */
  heldUs: number;
  pausedUntilUs: number;
  cooldown: CooldownState | undefined;
  /** The place of the one request that went first after a hold; empty when none is out. */
  probe: string;
  headroom: Headroom | undefined;
  /** One for each policy that was seen lately, or has counted what still matters. Each counts every start, so the strictest in use decides. */
  readonly tracks: Track[];
  readonly places: Place[];
  /** Askers that were told to come back. */
  readonly line: Ticket[];
  /** Processes seen lately. */
  readonly members: Member[];
  /** What each asker was last answered. */
  readonly memos: Memo[];
}

/** What one policy's limits have counted. */
export interface Track {
  readonly ruleId: string;
  readonly rule: SharedRule;
  /** Until then some process is taken to use this policy: one lease after it did, or after the turn it waits for. From then on it binds nobody else. */
  usedUs: number;
  /** Starts before this instant are not known one by one: nothing of them can be given back. */
  sinceUs: number;
  /** Debt of the bucket in unit-microseconds, as it was at `owedUs`. */
  owed: number;
  owedUs: number;
  /** One log for each window; see `windowLog.ts`. */
  readonly logs: Float64Array[];
  quotaIndex: number;
  quotaUsed: number;
  /** When the period was first counted in. */
  quotaSinceUs: number;
  /** When it ends; -1 when another has begun and nobody has said which. */
  quotaUntilUs: number;
}

/** A start in flight, where somebody has to know. */
export interface Place {
  readonly id: string;
  /** Gone without a sign of life. */
  expiresUs: number;
  /** Held for too long. */
  readonly holdUntilUs: number;
  /** Units that windows count once it is answered. */
  readonly units: number;
}

/** A place in the line of those who wait, and when its turn is. */
export interface Ticket {
  readonly name: string;
  readonly turnUs: number;
  /** Since when it waits: who came before goes first. */
  readonly joinedUs: number;
  /** What it wants to take here. */
  readonly cost: Units;
  readonly stands: Stand;
}

/**
 * How somebody stands in the line of a key: because that stops it longest; `"firm"`, since it has waited for long and for several keys at once, and
 * each of them is kept for it before its turn, too; or `"aside"`, since another key stops it for longer, and it saves up here until then.
 */
export type Stand = "inLine" | "firm" | "aside";

/** A process, and when it was last seen. */
export interface Member {
  readonly name: string;
  readonly seenUs: number;
}

/** The last answer to an asker. */
export interface Memo {
  readonly asker: string;
  readonly sequence: number;
  readonly atUs: number;
  readonly reply: string;
}

/** A key that nobody has used. */
export function freshKey(nowUs: number): KeyState {
  return {
    seenUs: nowUs,
    lastUs: NEVER_US,
    answeredUs: NEVER_US,
    units: 0,
    starts: 0,
    throttled: 0,
    token: 0,
    slowUs: 0,
    heldUs: 0,
    pausedUntilUs: NEVER_US,
    cooldown: undefined,
    probe: "",
    headroom: undefined,
    tracks: [],
    places: [],
    line: [],
    members: [],
    memos: [],
  };
}
