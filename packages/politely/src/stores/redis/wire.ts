import type { Rule } from "../../core/rule.js";
import { StoreError } from "../../errors.js";
import type { LimitKind } from "../../observe/types.js";
import type {
  AskedKey,
  LimitOperation,
  LookOperation,
  LookReply,
  Operation,
  ReplyTo,
  SettleReply,
  TakeOperation,
  TakeReply,
  Told,
} from "../operations.js";
import { calendarName } from "./calendars.js";

// What goes to a script as JSON, and what comes back as lists. JSON has null for infinite numbers. In replies instants are distances from the time
// at which they were given first, and what is missing or infinite is null.

/** Rules as scripts read them: what is not limited is left out. */
const rules = new WeakMap<Rule, object>();

function ruleOf(rule: Rule): object {
  let known = rules.get(rule);
  if (known === undefined) {
    const { quota, concurrency, rateCount } = rule;
    known = {
      off: rule.enabled ? undefined : true,
      gap: rule.gapUs || undefined,
      ...(rateCount > 0 ? { count: rateCount, per: rule.ratePerUs, burst: rule.burst } : {}),
      windows: rule.windows.map(({ count, perUs, grainUs }) => ({ count, per: perUs, grain: grainUs })),
      quota: quota && { count: quota.count, calendar: calendarName(quota) },
      places: concurrency === Number.POSITIVE_INFINITY ? undefined : concurrency,
      fromAnswer: rule.fromAnswer || undefined,
      maxHold: rule.maxHoldUs,
      ttl: rule.permitTtlUs,
    };
    rules.set(rule, known);
  }
  return known;
}

/** The rules that an operation speaks of. */
export function rulesOf(operation: LimitOperation): readonly Rule[] {
  return operation.kind === "renew" ? operation.rules : operation.keys.map(({ rule }) => rule);
}

/**
 * What a script is told of an operation: the operation itself, with its rules as scripts read them, and where periods of calendars begin. What is as
 * usual is left out, since reading takes time.
 */
export function argumentOf(operation: LimitOperation, periods: object | undefined, channel: string): string {
  const isAsked = operation.kind === "take" || operation.kind === "look";
  const more = { kind: undefined, isAgain: undefined, periods, channel: isAsked ? undefined : channel };
  if (operation.kind === "renew") {
    const { rules: own, places, ...rest } = operation;
    const keys = own.map((rule, index) => ({ rule: ruleOf(rule), places: places[index] }));
    return JSON.stringify({ ...rest, ...more, keys });
  }
  const keys = operation.keys.map((key) => {
    const { backoff, cooldownUs } = key.rule;
    const cost = key.cost.rate === 1 && key.cost.window === 1 && key.cost.quota === 1 ? undefined : key.cost;
    const slowUs = ("slowUs" in key && key.slowUs) || undefined;
    return { ...key, rule: ruleOf(key.rule), cost, slowUs, ...(isAsked ? {} : { backoff, cooldownUs }) };
  });
  return JSON.stringify({ ...operation, ...more, keys });
}

/** Reads what a script answers. Throws `StoreError` for anything that none does. */
export function readReply(operation: Operation, reply: unknown): ReplyTo<Operation> {
  try {
    const [now, ...others] = listOf(reply);
    const nowUs = numberOf(now);
    if (operation.kind === "lease") {
      const [isHeld, token, remainingUs] = others.slice(0, 3).map((value) => numberOf(value));
      return { nowUs, isHeld: isHeld === 1, token, remainingUs, label: textOf(others[3]) };
    }
    const [age, moved, what] = others;
    const fromUs = nowUs + numberOf(age);
    const rest = listOf(what);
    switch (operation.kind) {
      case "take":
        return { nowUs, ...readTake(operation, fromUs, numberOf(moved), rest) };
      case "settle":
      case "record":
        return { nowUs, ...readSettle(fromUs, rest) };
      case "renew":
        return { nowUs, wake: listOf(rest[0]).map(textOf), members: numberOf(rest[1]) };
      case "look":
        return readLook(operation, nowUs, rest);
    }
  } catch (cause) {
    const text = JSON.stringify(reply) ?? typeof reply;
    throw new StoreError(
      `Redis answered something that the script never does: ${text.slice(0, 200)}. Give the store a client whose replies nobody changes.`,
      { cause, isLasting: true },
    );
  }
}

function readTake(
  { keys }: TakeOperation,
  fromUs: number,
  movedUs: number,
  [members, flags, some, last]: readonly unknown[],
): Omit<TakeReply, "nowUs"> {
  const grants = listOf(some).map((one) => {
    const [ahead, count, token, ...each] = listOf(one);
    const startedUs = fromUs + numberOf(ahead);
    const parts = keys.map((_, index) => ({
      previousUs: startedUs - numberOf(each[3 * index], Number.POSITIVE_INFINITY),
      unitsBefore: numberOf(each[3 * index + 1]),
      period: numberOf(each[3 * index + 2]),
    }));
    return { startedUs, count: numberOf(count), token: startedUs - movedUs + numberOf(token), parts };
  });
  const isStopped = last !== null && last !== undefined;
  const stop = isStopped ? { ...toldOf(last, fromUs, keys), turnUs: fromUs + numberOf(listOf(last)[6]) } : undefined;
  const [isHeld, isFollowed] = [numberOf(flags) % 2 === 1, numberOf(flags) >= 2];
  return { grants, stop, members: numberOf(members), isHeld, isFollowed };
}

function readSettle(fromUs: number, [wake, some]: readonly unknown[]): Omit<SettleReply, "nowUs"> {
  const holds = listOf(some).map((hold) => {
    const [index, aheadUs, step, because] = listOf(hold);
    return {
      index: numberOf(index),
      untilUs: fromUs + numberOf(aheadUs),
      step: numberOf(step),
      because: textOf(because),
    };
  });
  return { holds, wake: listOf(wake).map(textOf) };
}

function readLook({ keys }: LookOperation, nowUs: number, [members, told, views]: readonly unknown[]): LookReply {
  const past = (value: unknown): number => nowUs + numberOf(value, Number.NEGATIVE_INFINITY);
  return {
    nowUs,
    members: numberOf(members),
    told: listOf(told).map((one) => toldOf(one, nowUs, keys)),
    keys: listOf(views).map((view) => {
      const [last, starts, throttled, inFlight, waiting, held, tokens, windows] = listOf(view);
      return {
        lastUs: past(last),
        starts: numberOf(starts),
        throttled: numberOf(throttled),
        inFlight: numberOf(inFlight),
        waiting: numberOf(waiting),
        heldUntilUs: past(held),
        tokens: numberOf(tokens),
        windows: listOf(windows).map((window) => {
          const [used, free, leaves] = listOf(window);
          const freeUs = nowUs + numberOf(free, Number.POSITIVE_INFINITY);
          return { used: numberOf(used), freeUs, leavesUs: past(leaves) };
        }),
      };
    }),
  };
}

/** A limit in the way, in the words of `core/limits/`. */
function toldOf(told: unknown, fromUs: number, keys: readonly AskedKey[]): Told {
  const [index, limit, at, awaited, cause, which] = listOf(told);
  const because = cause === null ? undefined : textOf(cause);
  const { text } = keys[numberOf(index)].rule;
  const words: Readonly<Record<string, string>> = {
    minDelay: `at least ${text.minDelay} between starts`,
    rate: `rate ${text.rate}`,
    window: `window ${text.windows[numberOf(which) - 1]}`,
    quota: `quota ${text.quota}`,
    concurrency: `concurrency ${text.concurrency}, all in flight`,
    pause: "paused",
    cooldown: `cooling down after ${because}`,
    probe: `one probe is out after ${because}`,
    headers: `the site says ${because}`,
    robots: `robots.txt says ${because}`,
    queue: "others are ahead",
  };
  const kind = textOf(limit) as LimitKind;
  const atUs = fromUs + numberOf(at, Number.POSITIVE_INFINITY);
  const awaitedUntilUs = awaited === null ? undefined : fromUs + numberOf(awaited);
  return { index: numberOf(index), limit: kind, atUs, words: words[kind], awaitedUntilUs, because };
}

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new TypeError("no list");
}

/** Clients may be set to give numbers as text. */
function numberOf(value: unknown, missing = Number.NaN): number {
  const number = value === null ? missing : Number(value ?? Number.NaN);
  if (Number.isNaN(number)) throw new TypeError("no number");
  return number;
}

/** Clients may be set to give bytes. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  throw new TypeError("no text");
}
