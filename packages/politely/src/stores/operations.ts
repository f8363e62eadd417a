import type { Answer } from "../core/answer.js";
import type { Cost } from "../core/key.js";
import type { Rule } from "../core/rule.js";
import type { LimitKind } from "../observe/types.js";

// Read this file before the rest of `stores/` and `fleet/`. It says what a process asks of a store: five operations on the keys of
// a request, and the lease. An operation is data. It is carried out in one atomic step, on all its keys or on none, by
// `decide.ts` inside a cell of a store, or by a script with the same arithmetic on a Redis server. Times are whole microseconds;
// instants are of the store's timeline, and every reply says what time it is there.

/**
 * Who sends an operation. A process has an asker for each of its lanes, and one for everything else; an asker has one operation under way at a time.
 *
 * A store remembers the last reply of each asker for `MEMORY_US`. The same number again is the same operation, sent again since its reply was
 * lost, and gets the same reply.
 */
export interface Sender {
  /** `"<process>.<lane>"`. */
  readonly asker: string;
  readonly number: number;
  /** It may have been carried out already. */
  readonly isAgain: boolean;
}

/** One key of a request: the rule of the process that asks, and what it takes there. */
export interface AskedKey {
  readonly rule: Rule;
  readonly cost: Cost;
  /** A gap that this process keeps beyond its rule, since robots.txt or `adaptive` ask for it. 0: none. */
  readonly slowUs: number;
}

/** Wants up to `count` starts, each taking from all keys. */
export interface TakeOperation extends Sender {
  readonly kind: "take";
  readonly keys: readonly AskedKey[];
  readonly count: number;
  /** A start that becomes possible within this time is granted now, for the instant at which it does. */
  readonly horizonUs: number;
  /** So many starts make up one turn of those who stand in line. Default 1; more where the way is so long that a turn is rare. */
  readonly inTurn?: number | undefined;
  /** Starts are granted for multiples of this, so that many share one instant. 1: for the exact instant. */
  readonly grainUs: number;
  /** Whoever gets less than it wants stands in line at the key that stops it. */
  readonly doesWait: boolean;
  /** The asker is told when its turn has come, and need not look. */
  readonly isTold: boolean;
}

/** Starts at one instant, `count` of them. */
export interface Grant {
  readonly startedUs: number;
  readonly count: number;
  /** Of the first of them; grows by one with each. */
  readonly token: number;
  /** For each key. */
  readonly parts: readonly GrantPart[];
}

/** What a key was like before a start, for giving the start back. */
export interface GrantPart {
  /** The start before; minus Infinity: none. */
  readonly previousUs: number;
  /** Units ever taken before the first of these starts, modulo 2^32. */
  readonly unitsBefore: number;
  /** The quota's period; -1 without a quota. */
  readonly period: number;
}

/** A limit that stands in the way at one key. */
export interface Told {
  /** Which of the keys. */
  readonly index: number;
  readonly limit: LimitKind;
  /** When a lone asker could start; where only an answer can tell, the earliest instant. */
  readonly atUs: number;
  /** Only an answer or a person can tell when; from then on nobody waits for it any more. */
  readonly awaitedUntilUs?: number | undefined;
  /** The limit in words, without a time. */
  readonly words: string;
  /** What was answered or read, where that is the cause. */
  readonly because?: string | undefined;
}

/** Why no more was granted. */
export interface TakeStop extends Told {
  /** When to ask again. Until a second later the asker keeps its place in line. */
  readonly turnUs: number;
}

/** The answer to a `take`. */
export interface TakeReply {
  readonly nowUs: number;
  readonly grants: readonly Grant[];
  /** Undefined when everything wanted was granted. */
  readonly stop: TakeStop | undefined;
  /** Processes seen lately at the key where there were most, this one included. */
  readonly members: number;
  /** A key remembers an incident: successes are to be reported. */
  readonly isHeld: boolean;
  /** A key knows its starts in flight: releases are to be reported. */
  readonly isFollowed: boolean;
}

/** One key of a start that comes back. */
export interface SettleKey {
  readonly rule: Rule;
  readonly cost: Cost;
  readonly previousUs: number;
  readonly unitsAfter: number;
  readonly period: number;
  /** What it took and did not use; negative: what it used on top. */
  readonly unused: Cost;
  /** The answer speaks of this key. */
  readonly isMeant: boolean;
}

/** Gives back a start, or reports its answer while it goes on. */
export interface SettleOperation extends Sender {
  readonly kind: "settle";
  readonly startedUs: number;
  /** When it was granted, which may be before its instant. */
  readonly grantedUs: number;
  /** The place that it has: `"<asker>#<number>#<which>"`. */
  readonly place: string;
  /** The place is free from now on. */
  readonly isOver: boolean;
  readonly keys: readonly SettleKey[];
  /** `unused`: it was never sent, and counts as if it had never been. */
  readonly answer: Answer;
  /** From 0 up to 1, for jitter. */
  readonly random: number;
}

/** A hold that an answer has begun or lengthened at one key. */
export interface Hold {
  readonly index: number;
  readonly untilUs: number;
  readonly step: number;
  readonly because: string;
}

/** The answer to a `settle` or a `record`. */
export interface SettleReply {
  readonly nowUs: number;
  readonly holds: readonly Hold[];
  /** Askers who should ask now, since a place is free. */
  readonly wake: readonly string[];
}

/** Says what a process still has at some keys: which places, and which of its askers still wait. */
export interface RenewOperation {
  readonly kind: "renew";
  readonly process: string;
  /** For each key, the rule of the process. */
  readonly rules: readonly Rule[];
  /** For each key, the places that it holds there; a store that has forgotten one takes it again. */
  readonly places: readonly (readonly RenewedPlace[])[];
  /** Places of operations with a smaller number that are not named are free. */
  readonly completeBefore: number;
  /** Askers who wait no longer. */
  readonly gone: readonly string[];
  /** The process ends: it has no places, and is no member any more. */
  readonly isLeaving: boolean;
}

/** Whose place it is, and for how long at most. */
export interface HeldPlace {
  /** `"<asker>#<number>#<which>"`. */
  readonly id: string;
  readonly maxHoldUs: number;
  /** Free from then on, if its process does not name it before. */
  readonly aliveUntilUs: number;
}

/** A place that a process says it has. */
export interface RenewedPlace extends Omit<HeldPlace, "aliveUntilUs"> {
  /** How long it is kept from now on, if it is not named again. */
  readonly ttlUs: number;
  readonly startedUs: number;
  readonly units: number;
  readonly pendingUnits: number;
}

/** The answer to a `renew`. */
export interface RenewReply {
  readonly nowUs: number;
  readonly wake: readonly string[];
  readonly members: number;
}

/** Tells what happened without asking: starts that were recorded by hand or made while the store was away, an answer, a pause, a reset. */
export interface RecordOperation extends Sender {
  readonly kind: "record";
  readonly keys: readonly AskedKey[];
  /** How long ago starts were made, and how many at each of these times, the oldest first. */
  readonly agesUs: readonly number[];
  readonly counts: readonly number[];
  /** What they cost together at each of these times in windows and quotas; undefined: a unit each. */
  readonly units?: readonly number[] | undefined;
  /** For each key, units that its bucket still owes for them; undefined: what they cost. */
  readonly owed?: readonly number[] | undefined;
  /** What was answered, and which key that speaks of. */
  readonly answer?: Answer | undefined;
  readonly meant: number;
  readonly random: number;
  /** Hold the keys for so long; Infinity: until that is ended, 0 ends it. */
  readonly pauseUs?: number | undefined;
  readonly reset?: "pacing" | "all" | undefined;
}

/** Asks how things stand, and changes nothing. */
export interface LookOperation {
  readonly kind: "look";
  readonly keys: readonly AskedKey[];
}

/** How a key stands. */
export interface KeyView {
  /** Minus Infinity before the first. */
  readonly lastUs: number;
  readonly starts: number;
  readonly throttled: number;
  readonly inFlight: number;
  readonly waiting: number;
  /** Minus Infinity: not held. */
  readonly heldUntilUs: number;
  /** Units that the bucket has now. */
  readonly tokens: number;
  /** For each window of the rule: units in it, when the next one fits, and when the oldest leaves. */
  readonly windows: readonly { readonly used: number; readonly freeUs: number; readonly leavesUs: number }[];
}

/** The answer to a `look`. */
export interface LookReply {
  readonly nowUs: number;
  /** Everything in the way of a start. */
  readonly told: readonly Told[];
  readonly keys: readonly KeyView[];
  readonly members: number;
}

/** Takes, renews, gives back or looks at an exclusive lease; its only key is the lease's name. */
export interface LeaseOperation {
  readonly kind: "lease";
  readonly act: "take" | "renew" | "release" | "look";
  /** Tells holders apart, and is unique to one attempt. */
  readonly holder: string;
  /** Who it is, for people. */
  readonly label: string;
  readonly ttlUs: number;
  /** The process's time since 1970, for stores whose timeline is none. */
  readonly epochUs: number;
}

/** The answer to a lease operation. */
export interface LeaseReply {
  readonly nowUs: number;
  readonly isHeld: boolean;
  /** Grows with each holder; 0 when nobody holds it. */
  readonly token: number;
  readonly label: string;
  readonly remainingUs: number;
}

/** Everything that can be asked of the limits in a store. */
export type LimitOperation = TakeOperation | SettleOperation | RenewOperation | RecordOperation | LookOperation;

/** Everything that can be asked of a store. */
export type Operation = LimitOperation | LeaseOperation;

interface Replies {
  readonly take: TakeReply;
  readonly settle: SettleReply;
  readonly renew: RenewReply;
  readonly record: SettleReply;
  readonly look: LookReply;
  readonly lease: LeaseReply;
}

/** The reply that belongs to an operation. */
export type ReplyTo<Op extends { readonly kind: keyof Replies }> = Replies[Op["kind"]];

/** How long a reply is remembered, in case its asker did not get it. */
export const MEMORY_US = 10_000_000;
/** A place is kept for at least so long, however short `permitTtl` is: it is named three times in that. */
export const PLACE_LEAST_US = 1_000_000;
/** How long a process counts as one of the fleet after it was last seen. */
export const MEMBER_US = 300_000_000;

/** The name of the place of one start of an operation. */
export function placeName(asker: string, number: number, which: number): string {
  return `${asker}#${number}#${which}`;
}
