import { StoreError } from "../errors.js";
import type { LeaseOperation, LeaseReply } from "./operations.js";

/** What is kept of a lease: its last holder. */
interface LeaseState {
  readonly holder: string;
  readonly label: string;
  readonly token: number;
  readonly untilUs: number;
  /** How long it was to last from when it was taken or renewed. */
  readonly ttlUs: number;
}

/** The outcome of a lease operation: the reply, and what to keep; undefined when nothing changes. */
export interface LeaseDecision {
  readonly reply: LeaseReply;
  readonly text: string | undefined;
  readonly keepForUs: number;
}

/** What whoever decides knows of the time. */
export interface LeaseTime {
  /** `nowUs` counts from 1970, as tokens do. */
  readonly isDate: boolean;
  /** How far `nowUs` may be behind the store's true time. It is never ahead. */
  readonly errorUs: number;
  /** What the store states as its `clockErrorUs`. A holder gives its lease up that much before its end. */
  readonly statedUs: number;
}

/** How long a lease that is over is remembered, so that its token is known to the next holder. */
const MEMORY_US = 3_600_000_000;
const VERSION = 1;

/**
 * Takes, renews, gives back or looks at a lease. At most one holder at any instant of the store's timeline.
 *
 * Whether it has run out is judged when somebody asks. A token is larger than all before it: while the lease is remembered it is one more at least, and it
 * is forgotten only once the store's time is past the token, which the next one is not below. A store whose time is no date sees to it by `epochUs`, which
 * is above all tokens that it ever gave.
 *
 * Where the time may be behind, a lease lasts longer by what its holder does not give up anyway, since that counts the life of the lease from a later
 * instant than `nowUs`; and a clock that may be right is not taken for one that was set back.
 */
export function decideLease(
  text: string | undefined,
  operation: LeaseOperation,
  nowUs: number,
  name: string,
  { isDate, errorUs, statedUs }: LeaseTime,
): LeaseDecision {
  const kept = text === undefined ? undefined : readLease(text, name);
  // A clock that was set back must not make a lease longer than it ever was. Nor may one that is only behind make it shorter than its holder thinks.
  const latestUs = nowUs + errorUs;
  const isMoved = kept !== undefined && kept.untilUs - latestUs > kept.ttlUs;
  const before = isMoved ? { ...kept, untilUs: latestUs + kept.ttlUs } : kept;
  const isLive = before !== undefined && before.untilUs > nowUs;
  const isOwn = isLive && before.holder === operation.holder;
  const { act, holder, label } = operation;
  const keep = (forUs: number, token: number): number => Math.max(forUs, isDate ? token - nowUs : 0) + MEMORY_US;
  if (act === "look" || (act !== "take" && !isOwn) || (act === "take" && isLive && !isOwn)) {
    const reply = replyOf(isLive ? before : undefined, isOwn, nowUs);
    if (!isMoved || before === undefined || act === "look") return { reply, text: undefined, keepForUs: 0 };
    return { reply, text: leaseText(before), keepForUs: keep(errorUs + before.ttlUs, before.token) };
  }
  if (act === "release" && before !== undefined) {
    // Not the time of this one: for those whose clock is behind, it would be held until they come to that.
    const over = { ...before, untilUs: 0 };
    return { reply: replyOf(undefined, false, nowUs), text: leaseText(over), keepForUs: keep(0, over.token) };
  }
  const token = isOwn
    ? before.token
    : Math.max((before?.token ?? 0) + 1, Math.floor(isDate ? nowUs : operation.epochUs));
  const ttlUs = operation.ttlUs + Math.max(0, errorUs - statedUs);
  const after: LeaseState = { holder, label, token, untilUs: nowUs + ttlUs, ttlUs };
  return { reply: replyOf(after, true, nowUs), text: leaseText(after), keepForUs: keep(ttlUs, token) };
}

function replyOf(state: LeaseState | undefined, isHeld: boolean, nowUs: number): LeaseReply {
  if (state === undefined) return { nowUs, isHeld: false, token: 0, label: "", remainingUs: 0 };
  return { nowUs, isHeld, token: state.token, label: state.label, remainingUs: state.untilUs - nowUs };
}

function leaseText({ holder, label, token, untilUs, ttlUs }: LeaseState): string {
  return JSON.stringify(["lease", VERSION, holder, label, token, untilUs, ttlUs]);
}

function readLease(text: string, name: string): LeaseState {
  try {
    const [kind, version, holder, label, token, untilUs, ttlUs] = JSON.parse(text) as readonly [
      string,
      number,
      string,
      string,
      number,
      number,
      number,
    ];
    const isKnown = kind === "lease" && version <= VERSION && [token, untilUs, ttlUs].every(Number.isFinite);
    if (isKnown && typeof holder === "string" && typeof label === "string") {
      return { holder, label, token, untilUs, ttlUs };
    }
  } catch {
    // Said below.
  }
  throw new StoreError(
    `The value stored for the lease "${name}" is not one of politely's, or of a newer version. Choose another name, or remove it.`,
    { isLasting: true },
  );
}
