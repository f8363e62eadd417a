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
    const instant = (value: unknown, missing?: number): number => nowUs + numberOf(age) + numberOf(value, missing);
    const rest = listOf(what);
    switch (operation.kind) {
      case "take":
        return { nowUs, ...readTake(operation, instant, numberOf(moved), rest) };
      case "settle":
      case "record":
        return { nowUs, ...readSettle(instant, rest) };
      case "renew":
        return { nowUs, wake: listOf(rest[0]).map(textOf), members: numberOf(rest[1]) };
      case "look":
        return { nowUs, ...readLook(operation, instant, rest) };
    }
  } catch (cause) {
    const text = JSON.stringify(reply) ?? typeof reply;
    throw new StoreError(
      `Redis answered something that the script never does: ${text.slice(0, 200)}. Give the store a client whose replies nobody changes.`,
      { cause, isLasting: true },
    );
  }
}

/** The instant at a distance; `missing` is that of one that is not there. */
type Instant = (distance: unknown, missing?: number) => number;
type List = readonly unknown[];

function readTake(
  { keys }: TakeOperation,
  instant: Instant,
  movedUs: number,
  [members, flags, some, last]: List,
): Omit<TakeReply, "nowUs"> {
  const grants = listOf(some).map((one) => {
    const [ahead, count, token, ...each] = listOf(one);
    const startedUs = instant(ahead);
    const parts = keys.map((_, index) => ({
      previousUs: startedUs - numberOf(each[3 * index], Number.POSITIVE_INFINITY),
      unitsBefore: numberOf(each[3 * index + 1]),
      period: numberOf(each[3 * index + 2]),
    }));
    return { startedUs, count: numberOf(count), token: startedUs - movedUs + numberOf(token), parts };
  });
  const isStopped = last !== null && last !== undefined;
  const stop = isStopped ? { ...toldOf(last, instant, keys), turnUs: instant(listOf(last)[6]) } : undefined;
  const [isHeld, isFollowed] = [numberOf(flags) % 2 === 1, numberOf(flags) >= 2];
  return { grants, stop, members: numberOf(members), isHeld, isFollowed };
}

function readSettle(instant: Instant, [wake, some]: List): Omit<SettleReply, "nowUs"> {
  const holds = listOf(some).map((hold) => {
    const [index, until, step, because] = listOf(hold);
    return { index: numberOf(index), untilUs: instant(until), step: numberOf(step), because: textOf(because) };
  });
  return { holds, wake: listOf(wake).map(textOf) };
}

function readLook({ keys }: LookOperation, instant: Instant, [members, told, views]: List): Omit<LookReply, "nowUs"> {
  return {
    members: numberOf(members),
    told: listOf(told).map((one) => toldOf(one, instant, keys)),
    keys: listOf(views).map((view) => {
      const [last, held, windows, ...numbers] = listOf(view);
      const [starts, throttled, inFlight, waiting, tokens] = numbers.map((value) => numberOf(value));
      return {
        starts,
        throttled,
        inFlight,
        waiting,
        tokens,
        lastUs: instant(last, Number.NEGATIVE_INFINITY),
        heldUntilUs: instant(held, Number.NEGATIVE_INFINITY),
        windows: listOf(windows).map((window) => {
          const [used, free, leaves] = listOf(window);
          const freeUs = instant(free, Number.POSITIVE_INFINITY);
          return { used: numberOf(used), freeUs, leavesUs: instant(leaves, Number.NEGATIVE_INFINITY) };
        }),
      };
    }),
  };
}

/** A limit in the way, in the words of `core/limits/`. */
function toldOf(told: unknown, instant: Instant, keys: readonly AskedKey[]): Told {
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
  const awaitedUntilUs = awaited === null ? undefined : instant(awaited);
  const atUs = instant(at, Number.POSITIVE_INFINITY);
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
