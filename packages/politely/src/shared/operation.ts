import type { AnswerKind } from "../core/answer.js";
import type { BackoffRule } from "../core/rule.js";

// What a shared store is asked to do, as data: a program in TypeScript and a script on a server can both carry it out.
// Instants are whole microseconds of the store's own timeline; every reply says what time it is there.

/** The limits of one key as a store needs them. 0 stands for "no such limit" where nothing else is said. */
export interface SharedRule {
  readonly gapUs: number;
  readonly rateCount: number;
  readonly ratePerUs: number;
  readonly burst: number;
  /** Count, length and grain of each window, one after the other. */
  readonly windows: readonly number[];
  /** Units of a calendar budget. */
  readonly quota: number;
  /** Which calendar it is: `"day UTC"`. Empty without a quota. */
  readonly calendar: string;
  readonly concurrency: number;
  /** Gap and windows run from the answer. */
  readonly fromAnswer: boolean;
}

/** Units taken from each kind of limit. */
export interface Units {
  readonly rate: number;
  readonly window: number;
  readonly quota: number;
}

/** The period of a calendar budget that is running now. */
export interface CalendarPeriod {
  /** Grows from period to period. */
  readonly index: number;
  readonly fromUs: number;
  readonly untilUs: number;
}

/** One key of a request that wants to start. */
export interface TakeKey {
  readonly rule: SharedRule;
  /** Tells rules apart: two processes with the same text have the same rule. */
  readonly ruleId: string;
  readonly cost: Units;
  /** A gap that this process keeps beyond its rule, since robots.txt or `adaptive` ask for it. 0: none. */
  readonly slowUs: number;
  /** Undefined without a quota. */
  readonly period: CalendarPeriod | undefined;
}

/** Who sends an operation. Each asker has one operation on the way at a time, so the last answer it got is all that has to be remembered. */
export interface Sender {
  /** `"<process>:<number>"`. */
  readonly asker: string;
  /** Grows with each operation of the asker. The same number again is the same operation, sent again since its reply was lost. */
  readonly sequence: number;
}

/** Wants up to `count` starts, each of one request with these keys. */
export interface TakeOperation extends Sender {
  readonly kind: "take";
  readonly keys: readonly TakeKey[];
  readonly count: number;
  /** A start that becomes possible within this time is granted ahead, for the instant at which it does. */
  readonly horizonUs: number;
  /** Its name in the lines of those who wait; empty: it does not wait. */
  readonly ticket: string;
  /** When it was told to come back; 0 when it comes for the first time. */
  readonly turnUs: number;
  /** What time it was when it was first told to come back, since its last start; 0 when it has not been. */
  readonly joinedUs: number;
  /** It will come back for more, though all it wants now should be granted. */
  readonly hasMore: boolean;
  /** How long a place is kept for a process that gives no sign of life. */
  readonly leaseUs: number;
  /** How long a place may be held at most. */
  readonly maxHoldUs: number;
  /** The process, when it wants to be counted as part of the fleet; empty else. */
  readonly member: string;
}

/** What limits a start. */
export type StopKind =
  | "minDelay"
  | "rate"
  | "window"
  | "quota"
  | "concurrency"
  | "cooldown"
  | "probe"
  | "headers"
  | "pause"
  | "queue";

/** One start. */
export interface Start {
  readonly startedUs: number;
  /** Grows with each start of the first key. */
  readonly token: number;
  /** For each key, the units taken in all once this start was counted, and the start before it (-1: none). For giving it back. */
  readonly unitsAfter: readonly number[];
  readonly previousUs: readonly number[];
}

/** Why no more was granted. */
export interface Stop {
  /** Which key. */
  readonly key: number;
  readonly kind: StopKind;
  /** When a lone asker could start. When only an answer can make room, an instant at which to look again. */
  readonly readyUs: number;
  /** When to ask again: the turn of this asker. */
  readonly turnUs: number;
  /** What was answered to cause it, for people. For a limit its numbers, see `limitNumbers`; for a pause the instant at which it ends; else empty. */
  readonly because: string;
}

/** The answer to a `take`. */
export interface TakeReply {
  readonly nowUs: number;
  readonly starts: readonly Start[];
  /** Undefined when everything that was wanted was granted and no more is wanted. */
  readonly stop: Stop | undefined;
  /** At least one key has a cooldown or an incident in memory: successes should be reported. */
  readonly isCooling: boolean;
  /** A rule of another process applied that allows less, at this key; -1: none. */
  readonly stricterAt: number;
  /** Processes seen lately, at the key where there were most; 0 when `member` was empty. */
  readonly fleet: number;
  /** The calendar period given is not the one that runs: give the right one. Nothing was done. */
  readonly isStalePeriod: boolean;
}

/** What a process learned from an answer, for one key. */
export interface AnswerNote {
  readonly kind: AnswerKind | "unused";
  readonly retryAfterUs: number;
  /** From 0 up to 1. */
  readonly random: number;
  readonly because: string;
  /** Requests the site says are left, and when its budget is full again; -1: it did not say. */
  readonly remaining: number;
  readonly resetUs: number;
}

/** One key of a start that comes back. */
export interface SettleKey {
  readonly ruleId: string;
  /** After the start, and before it; of several, after the last and before the first. */
  readonly unitsAfter: number;
  readonly previousUs: number;
  /** What goes back of each start; negative units are owed on top. */
  readonly back: Units;
  /** What was spent in windows that count from the answer. */
  readonly windowUnits: number;
  readonly answer: AnswerNote;
  readonly cooldownUs: readonly number[];
  readonly backoff: BackoffRule;
  /** False: answers hold nothing. */
  readonly isHeld: boolean;
}

/** Gives back a start, or reports its answer while it goes on. */
export interface SettleOperation extends Sender {
  readonly kind: "settle";
  readonly startedUs: number;
  /** Store time of the take that granted it, which may be before its instant; 0 for a start that was only recorded. */
  readonly grantedUs: number;
  /** The operation that took it, and which of its starts it was: `"<asker>#<sequence>#<number>"`. */
  readonly place: string;
  /** The place is free from now on. */
  readonly isOver: boolean;
  /** It was never sent: the gap goes back too, and it does not count as a start. */
  readonly isUnused: boolean;
  /** When it stands for several starts of one take, the last of them in `startedUs`: each instant and how many were to start at it, the oldest first. */
  readonly unusedAt?: readonly number[];
  /** It gives something back and may have been carried out already: it was sent before, and nobody knows whether it arrived. Absent: it is new. */
  readonly isAgain?: boolean;
  readonly keys: readonly SettleKey[];
}

/** The answer to a `settle`. */
export interface SettleReply {
  readonly nowUs: number;
  /** For each key: how long it is to be left alone from now on, and the step of the ladder; 0 when the answer did not make it cool down. */
  readonly cooldownUs: readonly number[];
  readonly steps: readonly number[];
}

/** Says that the process still holds these places. */
export interface RenewOperation extends Sender {
  readonly kind: "renew";
  readonly places: readonly string[];
  readonly leaseUs: number;
  /** The policy of the process for each key: who holds a place has not gone. Absent: it has another by now. */
  readonly ruleIds?: readonly string[];
}

/** The answer to a `renew`: the places that are gone. */
export interface RenewReply {
  readonly nowUs: number;
  readonly lost: readonly string[];
}

/** Leaves the lines of those who wait, or the fleet. */
export interface LeaveOperation extends Sender {
  readonly kind: "leave";
  /** Whose place in line it is; or the name of a process that ends: the last one to go takes the policies along. */
  readonly ticket: string;
}

/** Counts starts made without asking: recorded ones, and those of an outage. */
export interface RecordOperation extends Sender {
  readonly kind: "record";
  readonly keys: readonly TakeKey[];
  /** How long ago they were, in microseconds, the oldest first. */
  readonly agesUs: readonly number[];
  /** How many there were at each of these. Absent: one. */
  readonly counts?: readonly number[];
  /** What those at each of these took together, for each key. Absent: each of them took the cost of the key. */
  readonly units?: readonly (readonly Units[])[];
}

/** Changes what a person decides. */
export interface SetOperation extends Sender {
  readonly kind: "set";
  /** From now; Infinity until it is ended, 0 ends it, -1 leaves it as it is. */
  readonly pauseUs: number;
  readonly reset: "nothing" | "pacing" | "all";
}

/** Done, and nothing to say. */
export interface DoneReply {
  readonly nowUs: number;
}

/** Asks how things stand. Changes nothing. */
export interface LookOperation {
  readonly kind: "look";
  readonly keys: readonly TakeKey[];
}

/** How a key stands. */
export interface LookAtKey {
  /** What stops a start now, the latest first. */
  readonly stops: readonly { readonly kind: StopKind; readonly readyUs: number; readonly because: string }[];
  /** -1 before the first. */
  readonly lastUs: number;
  readonly starts: number;
  readonly throttled: number;
  /** Places held. */
  readonly held: number;
  /** Askers in line. */
  readonly waiting: number;
  readonly cooldownUs: number;
  /** Debt of the bucket, in unit-microseconds. */
  readonly owed: number;
  /** For each window: units in it, and when the next one fits. */
  readonly windows: readonly number[];
}

/** The answer to a `look`. */
export interface LookReply {
  readonly nowUs: number;
  readonly keys: readonly LookAtKey[];
}

/** Everything that can be asked of limits. Leases are apart: see `lease.ts`. */
export type LimitOperation =
  | TakeOperation
  | SettleOperation
  | RenewOperation
  | LeaveOperation
  | RecordOperation
  | SetOperation
  | LookOperation;

/** The reply that belongs to an operation. */
export type ReplyTo<Op> = Op extends { kind: "take" }
  ? TakeReply
  : Op extends { kind: "settle" }
    ? SettleReply
    : Op extends { kind: "renew" }
      ? RenewReply
      : Op extends { kind: "look" }
        ? LookReply
        : Op extends { kind: "lease" }
          ? LeaseReply
          : DoneReply;

/** Takes, keeps, gives back or looks at an exclusive lease. */
export interface LeaseOperation {
  readonly kind: "lease";
  readonly act: "take" | "renew" | "release" | "look";
  /** Tells holders apart, and is unique to one attempt: asking again with it is the same attempt. */
  readonly holder: string;
  /** Who it is, for people. */
  readonly label: string;
  readonly ttlUs: number;
  /** Store time as microseconds since 1970, for stores whose timeline is none; so that tokens grow beyond the life of the row. */
  readonly epochUs: number;
}

/** The answer to a lease operation. */
export interface LeaseReply {
  readonly nowUs: number;
  /** The asker holds it. */
  readonly isHeld: boolean;
  /** Grows with each holder; 0 when nobody holds it. */
  readonly token: number;
  /** Who holds it, for people; empty when nobody does. */
  readonly label: string;
  readonly remainingUs: number;
}

/** Everything that can be asked of a store. */
export type Operation = LimitOperation | LeaseOperation;
