import type {
  LeaseOperation,
  LeaseReply,
  LimitOperation,
  LookAtKey,
  LookOperation,
  LookReply,
  RenewReply,
  SettleKey,
  SettleOperation,
  SettleReply,
  Units,
} from "../../shared/operation.js";
import { STOP_KINDS } from "./blocksLua.js";
import { listAt, numberAt, type Reply, textAt } from "./reply.js";
import { ANSWER_KINDS, BACKOFF_KINDS } from "./settleLua.js";
import { keyWords, takeArguments } from "./takeWire.js";

const RESETS = { nothing: 0, pacing: 1, all: 2 } as const;

/** The arguments of an operation on `keyCount` keys, in the order in which its script reads them. */
export function limitArguments(operation: LimitOperation, keyCount: number): string[] {
  switch (operation.kind) {
    case "take":
      return takeArguments(operation);
    case "look":
      return operation.keys.map(keyWords);
    case "settle":
      return settleArguments(operation, keyCount);
    case "renew": {
      const { sequence, leaseUs, places, ruleIds = [] } = operation;
      return [String(sequence), `[${keyCount},${leaseUs},${ruleIds.length}]`, ...ruleIds, ...places];
    }
    case "leave":
      return [String(operation.sequence), `[${keyCount}]${operation.ticket}`];
    case "record": {
      const { sequence, keys, agesUs, counts, units } = operation;
      const groups = [keyCount, ...agesUs.flatMap((ageUs, group) => [ageUs, counts?.[group] ?? 1])];
      const spent = units === undefined ? [] : keys.map((_, index) => unitsWords(units.map((each) => each[index])));
      return [String(sequence), `[${groups.join(",")}]`, ...keys.map(keyWords), ...spent];
    }
    case "set": {
      const pauseUs = Math.min(operation.pauseUs, Number.MAX_SAFE_INTEGER);
      return [String(operation.sequence), `[${keyCount},${pauseUs},${RESETS[operation.reset]}]`];
    }
  }
}

/** The arguments of an operation on a lease. */
export function leaseArguments({ act, ttlUs, epochUs, holder, label }: LeaseOperation): string[] {
  return [act, String(ttlUs), String(epochUs), holder, label];
}

function unitsWords(units: readonly Units[]): string {
  return `[${units.flatMap(({ rate, window, quota }) => [rate, window, quota]).join(",")}]`;
}

function settleArguments(operation: SettleOperation, keyCount: number): string[] {
  const { sequence, startedUs, isOver, isUnused, unusedAt, grantedUs, place, keys } = operation;
  const instants = isUnused && unusedAt !== undefined ? unusedAt : [startedUs, 1];
  const terms = [keyCount, startedUs, isOver ? 1 : 0, isUnused ? 1 : 0, grantedUs, ...instants].join(",");
  return [String(sequence), `[${terms}]${place}`, ...keys.map(settleWords)];
}

function settleWords(key: SettleKey): string {
  const { back, answer, backoff } = key;
  const numbers = [
    key.unitsAfter,
    key.previousUs,
    back.rate,
    back.window,
    back.quota,
    key.windowUnits,
    ANSWER_KINDS[answer.kind],
    answer.retryAfterUs,
    answer.random,
    answer.remaining,
    answer.resetUs,
    key.isHeld ? 1 : 0,
    BACKOFF_KINDS[backoff.kind],
    backoff.baseUs,
    backoff.maxUs,
    backoff.jitter,
    ...key.cooldownUs,
  ];
  return `[${numbers.join(",")}]${answer.because}`;
}

/** The reply to a settle: the time, and for each key how long it cools down and the step. */
export function readSettle(reply: Reply, keyCount: number): SettleReply {
  const cooldownUs: number[] = [];
  const steps: number[] = [];
  for (let key = 0; key < keyCount; key++) {
    cooldownUs.push(numberAt(reply, 1 + 2 * key, 0));
    steps.push(numberAt(reply, 2 + 2 * key, 0));
  }
  return { nowUs: numberAt(reply, 0), cooldownUs, steps };
}

/** The reply to a renew: the time, and the numbers of the places that are lost. */
export function readRenew(reply: Reply, places: readonly string[]): RenewReply {
  const lost: string[] = [];
  for (let index = 1; index < reply.length; index++) lost.push(places[numberAt(reply, index)]);
  return { nowUs: numberAt(reply, 0), lost };
}

/** The reply to a look: the time, and a list for each key. */
export function readLook(reply: Reply, { keys }: LookOperation): LookReply {
  return { nowUs: numberAt(reply, 0), keys: keys.map((_, index) => readKey(listAt(reply, index + 1))) };
}

function readKey(list: readonly unknown[]): LookAtKey {
  const windows = listAt(list, 7);
  const stops = listAt(list, 8).map((_, index) => listAt(listAt(list, 8), index));
  return {
    stops: stops.map((stop) => ({
      kind: STOP_KINDS[numberAt(stop, 0)],
      readyUs: numberAt(stop, 1),
      because: textAt(stop, 2),
    })),
    lastUs: numberAt(list, 0),
    starts: numberAt(list, 1),
    throttled: numberAt(list, 2),
    held: numberAt(list, 3),
    waiting: numberAt(list, 4),
    cooldownUs: numberAt(list, 5),
    owed: numberAt(list, 6),
    windows: windows.map((_, index) => numberAt(windows, index)),
  };
}

/** The reply to an operation on a lease. */
export function readLease(reply: Reply): LeaseReply {
  return {
    nowUs: numberAt(reply, 0),
    isHeld: numberAt(reply, 1) === 1,
    token: numberAt(reply, 2),
    remainingUs: numberAt(reply, 3),
    label: textAt(reply, 4),
  };
}
