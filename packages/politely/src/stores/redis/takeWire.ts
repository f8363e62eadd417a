import type { SharedRule, Start, TakeKey, TakeOperation, TakeReply } from "../../shared/operation.js";
import { STOP_KINDS } from "./blocksLua.js";
import { numberAt, type Reply, textAt } from "./reply.js";

/** What a rule was last sent as. Rules stay the same for as long as a policy does, and so does most of what is asked about them. */
interface Sent {
  readonly ruleId: string;
  /** The rule itself. */
  readonly words: string;
  /** The last take of one start with nothing special, and its words. */
  plain: {
    readonly key: TakeKey["cost"];
    readonly leaseUs: number;
    readonly maxHoldUs: number;
    readonly words: string;
  };
}

const sent = new WeakMap<SharedRule, Sent>();

/** Where the starts begin in a reply. */
const RUN_AT = 5;

/** The arguments of a take, in the order in which the script reads them: `numbers of the operation and its first key, rule`, and the like for other keys. */
export function takeArguments(operation: TakeOperation): string[] {
  const { keys, horizonUs, turnUs, joinedUs, asker, ticket, member } = operation;
  const args = [
    String(operation.sequence),
    firstWords(operation),
    `${horizonUs} ${turnUs} ${joinedUs} ${asker}\n${ticket}\n${member}`,
  ];
  for (let index = 1; index < keys.length; index++) args.push(keyWords(keys[index]));
  return args;
}

/** One key as a script reads it: its numbers, then its rule. */
export function keyWords(key: TakeKey): string {
  return `[${keyNumbers(key)}]${sentOf(key).words}`;
}

function firstWords(operation: TakeOperation): string {
  const { keys, leaseUs, maxHoldUs } = operation;
  const [key] = keys;
  const before = sentOf(key);
  if (!isPlain(operation)) return firstText(operation, before);
  const { plain } = before;
  const isSame =
    plain.leaseUs === leaseUs &&
    plain.maxHoldUs === maxHoldUs &&
    plain.key.rate === key.cost.rate &&
    plain.key.window === key.cost.window &&
    plain.key.quota === key.cost.quota;
  if (isSame) return plain.words;
  const words = firstText(operation, before);
  before.plain = { key: key.cost, leaseUs, maxHoldUs, words };
  return words;
}

/** Whether it is a take of one start at one key with nothing special: its words are those of all others like it. */
export function isPlain({ keys, count, hasMore, member }: TakeOperation): boolean {
  return keys.length === 1 && count === 1 && !hasMore && member === "" && keys[0].slowUs === 0 && !keys[0].period;
}

function firstText({ keys, count, hasMore, member, leaseUs, maxHoldUs }: TakeOperation, { words }: Sent): string {
  const terms = `${keys.length},${count},${hasMore ? 1 : 0},${member === "" ? 0 : 1},${leaseUs},${maxHoldUs}`;
  return `[${terms},${keyNumbers(keys[0])}]${words}`;
}

function keyNumbers({ cost, slowUs, period }: TakeKey): string {
  const calendar = period === undefined ? "0,0,0" : `${period.index},${period.fromUs},${period.untilUs}`;
  return `${cost.rate},${cost.window},${cost.quota},${slowUs},${calendar}`;
}

function sentOf({ rule, ruleId }: TakeKey): Sent {
  const known = sent.get(rule);
  if (known?.ruleId === ruleId) return known;
  const { gapUs, rateCount, ratePerUs, burst, quota, concurrency, fromAnswer, windows, calendar } = rule;
  const numbers = [gapUs, rateCount, ratePerUs, burst, quota, concurrency, fromAnswer ? 1 : 0, ...windows];
  const words = `[${numbers.join(",")}]${calendar}\n${ruleId}`;
  const made = { ruleId, words, plain: { key: { rate: 0, window: 0, quota: 0 }, leaseUs: 0, maxHoldUs: 0, words: "" } };
  sent.set(rule, made);
  return made;
}

/**
 * The reply to a take: a string from the short way (seconds, microseconds, units, time since the last start), else a list: time, flags (1: cooling,
 * 2: wrong period), the key with a stricter rule, fleet, number of starts; for each start its instant, its token, and for each key units and the
 * start before; then, if there is more to say, what stops the next one.
 *
 * A negative number of starts stands for a run at one key with nothing but a rate: first token, units after the first, units of each, the start
 * before, number of pairs, and each pair: an instant, and how many start then.
 */
export function readTake(reply: Reply, keyCount: number): TakeReply {
  if (typeof reply === "string") return readShortTake(reply);
  const flags = numberAt(reply, 1, 0);
  const startCount = numberAt(reply, 4, 0);
  const starts = startCount < 0 ? readRun(reply) : readStarts(reply, startCount, keyCount);
  const at = startCount < 0 ? RUN_AT + 5 + 2 * numberAt(reply, RUN_AT + 4) : RUN_AT + startCount * (2 + 2 * keyCount);
  const stop =
    reply.length <= at
      ? undefined
      : {
          key: numberAt(reply, at),
          kind: STOP_KINDS[numberAt(reply, at + 1)],
          readyUs: numberAt(reply, at + 2),
          turnUs: numberAt(reply, at + 3),
          because: textAt(reply, at + 4),
        };
  return {
    nowUs: numberAt(reply, 0),
    starts,
    stop,
    isCooling: (flags & 1) === 1,
    stricterAt: numberAt(reply, 2, -1),
    fleet: numberAt(reply, 3, 0),
    isStalePeriod: (flags & 2) === 2,
  };
}

function readStarts(reply: Reply, count: number, keyCount: number): Start[] {
  const starts: Start[] = [];
  for (let number = 0; number < count; number++) {
    const at = RUN_AT + number * (2 + 2 * keyCount);
    const unitsAfter: number[] = [];
    const previousUs: number[] = [];
    for (let key = 0; key < keyCount; key++) {
      unitsAfter.push(numberAt(reply, at + 2 + 2 * key));
      previousUs.push(numberAt(reply, at + 3 + 2 * key));
    }
    starts.push({ startedUs: numberAt(reply, at), token: numberAt(reply, at + 1), unitsAfter, previousUs });
  }
  return starts;
}

/** Starts at one key of which only the instants were sent, and how many are at each. */
function readRun(reply: Reply): Start[] {
  let token = numberAt(reply, RUN_AT);
  let units = numberAt(reply, RUN_AT + 1);
  const rate = numberAt(reply, RUN_AT + 2);
  let previousUs = numberAt(reply, RUN_AT + 3);
  const starts: Start[] = [];
  for (let pair = 0; pair < numberAt(reply, RUN_AT + 4); pair++) {
    const startedUs = numberAt(reply, RUN_AT + 5 + 2 * pair);
    for (let left = numberAt(reply, RUN_AT + 6 + 2 * pair); left > 0; left--) {
      starts.push({ startedUs, token, unitsAfter: [units], previousUs: [previousUs] });
      token += 1;
      units += rate;
      previousUs = Math.max(previousUs, startedUs);
    }
  }
  return starts;
}

function readShortTake(reply: string): TakeReply {
  const [seconds, microseconds, units, sinceUs] = reply.split(" ");
  const nowUs = Number(seconds) * 1_000_000 + Number(microseconds);
  const unitsAfter = [Number(units)];
  const previousUs = [nowUs - Number(sinceUs)];
  return {
    nowUs,
    starts: [{ startedUs: nowUs, token: nowUs, unitsAfter, previousUs }],
    stop: undefined,
    isCooling: false,
    stricterAt: -1,
    fleet: 0,
    isStalePeriod: false,
  };
}
