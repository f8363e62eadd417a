import { type Calendar, WallCalendar } from "../../core/calendar.js";
import { isNothing } from "../../core/key.js";
import type { Rule } from "../../core/rule.js";
import { StoreError } from "../../errors.js";
import type { LimitKind } from "../../observe/types.js";
import type { Operation, ReplyTo, Told } from "../operations.js";
import { processOf } from "../storedKey.js";

// What goes to the script as JSON, and what comes back as lists. JSON has null for infinite numbers. In replies instants are distances from the time
// at which they were given first, and what is missing or infinite is null.

/** Rules as the script reads them, in JSON: what is not limited is left out. */
const ruleTexts = new WeakMap<Rule, string>();

function ruleText(rule: Rule): string {
  const { quota, concurrency, rateCount, ratePerUs: per, burst } = rule;
  const text = JSON.stringify({
    off: rule.enabled ? undefined : true,
    gap: rule.gapUs || undefined,
    ...(rateCount > 0 ? { count: rateCount, per, burst } : {}),
    windows: rule.windows.map(({ count, perUs, grainUs }) => ({ count, per: perUs, grain: grainUs })),
    quota: quota && { count: quota.count, calendar: calendarName(quota) },
    places: concurrency === Number.POSITIVE_INFINITY ? undefined : concurrency,
    fromAnswer: rule.fromAnswer || undefined,
    maxHold: rule.maxHoldUs,
    ttl: rule.permitTtlUs,
  });
  ruleTexts.set(rule, text);
  return text;
}

/** How the script names a calendar. */
function calendarName({ per, timeZone }: Calendar): string {
  return `${per} ${timeZone}`;
}

/** Where periods of calendars begin, which the script does not know: the one before, the present and the next one of each calendar, in milliseconds. */
export class Calendars {
  readonly #bounds = new Map<string, readonly number[]>();

  /** Learns a calendar, or its periods around another time than this process takes it to be. */
  add(name: string, wallMs: number): void {
    const [per, timeZone] = name.split(" ") as [Calendar["per"], string];
    const at = (ms: number): ReturnType<WallCalendar["periodAt"]> =>
      new WallCalendar(Date.now).periodAt({ per, timeZone }, ms);
    const { startsAtMs, endsAtMs } = at(wallMs);
    this.#bounds.set(name, [at(startsAtMs - 1).startsAtMs, startsAtMs, endsAtMs, at(endsAtMs).endsAtMs]);
  }

  /** All that were needed so far. */
  text(needed: Iterable<Rule>): string {
    for (const { quota } of needed) {
      if (quota !== undefined && !this.#bounds.has(calendarName(quota))) this.add(calendarName(quota), Date.now());
    }
    return JSON.stringify(Object.fromEntries(this.#bounds));
  }
}

/** What the script is told: operations, and once each the rules that they speak of. What is as usual is left out, since reading takes time. */
export function argumentOf(operations: readonly Operation[], calendars: Calendars, channel: string): string {
  const numbers = new Map<Rule, number>();
  const numberOfRule = (rule: Rule): number => {
    const number = numbers.get(rule) ?? numbers.size + 1;
    numbers.set(rule, number);
    return number;
  };
  const ops = operations.map((operation) => JSON.stringify(written(operation, numberOfRule)));
  const rules = Array.from(numbers.keys(), (rule) => ruleTexts.get(rule) ?? ruleText(rule));
  const periods = calendars.text(numbers.keys());
  return `{"ops":[${ops.join()}],"rules":[${rules.join()}],"periods":${periods},"channel":${JSON.stringify(channel)}}`;
}

function written(operation: Operation, numberOfRule: (rule: Rule) => number): object {
  if (operation.kind === "lease") return operation;
  if (operation.kind === "renew") {
    const { rules, places, ...others } = operation;
    return { ...others, keys: rules.map((rule, index) => ({ rule: numberOfRule(rule), places: places[index] })) };
  }
  const { kind } = operation;
  const keys = operation.keys.map((key) => {
    const { cost, rule } = key;
    const isOne = cost.rate === 1 && cost.window === 1 && cost.quota === 1;
    const own = { ...key, rule: numberOfRule(rule), cost: isOne ? undefined : cost };
    if ("slowUs" in own) Object.assign(own, { slowUs: own.slowUs || undefined });
    else if (isNothing(own.unused)) Object.assign(own, { unused: undefined });
    return kind === "take" || kind === "look" ? own : { ...own, backoff: rule.backoff, cooldownUs: rule.cooldownUs };
  });
  // What gives nothing back may be carried out twice.
  const isFree =
    kind === "settle" ? keys.every((key) => !("unused" in key) || key.unused === undefined) : kind === "look";
  const sender = kind === "look" ? undefined : processOf(kind === "settle" ? operation.place : operation.asker);
  return { ...operation, isAgain: undefined, process: sender, isFree: isFree || undefined, keys };
}

/** Reads a part of a reply. Instants are distances from `from`. */
type Read = (value: unknown, from: number) => unknown;

const list =
  (read: Read): Read =>
  (value, from) =>
    listOf(value).map((one) => read(one, from));
const object = (fields: Readonly<Record<string, Read>>): Read => {
  const all = Object.entries(fields);
  return (value, from) => {
    const parts = listOf(value);
    return Object.fromEntries(all.map(([name, read], index) => [name, read(parts[index], from)]));
  };
};
const or =
  (read: Read, missing: unknown): Read =>
  (value, from) =>
    value === null ? missing : read(value, from);

/** Clients may be set to give numbers as text. */
const number = (value: unknown): number => {
  const read = value === null ? Number.NaN : Number(value ?? Number.NaN);
  if (Number.isNaN(read)) throw new TypeError("no number");
  return read;
};
const flag: Read = (value) => number(value) === 1;
const instant: Read = (value, from) => from + number(value);
/** Clients may be set to give bytes. */
const text = (value: unknown): string => {
  if (!isText(value)) throw new TypeError("no text");
  return typeof value === "string" ? value : new TextDecoder().decode(value);
};
const [early, late] = [or(instant, Number.NEGATIVE_INFINITY), or(instant, Number.POSITIVE_INFINITY)];

const told = {
  index: number,
  limit: text,
  atUs: late,
  awaitedUntilUs: or(instant, undefined),
  because: or(text, undefined),
  which: number,
};
const part = object({ previousUs: early, unitsBefore: number, period: number });
const grant = object({ startedUs: instant, count: number, token: number, parts: list(part) });
const hold = object({ index: number, untilUs: instant, step: number, because: text });
const counts = { starts: number, throttled: number, inFlight: number, waiting: number, tokens: number };
const window = object({ used: number, freeUs: late, leavesUs: early });
const view = object({ ...counts, lastUs: early, heldUntilUs: early, windows: list(window) });
const settled = object({ wake: list(text), holds: list(hold) });

/** What the lists are that a script answers with: the fields of each reply, in order. */
const REPLIES: Readonly<Record<Operation["kind"], Read>> = {
  take: object({
    members: number,
    isHeld: flag,
    isFollowed: flag,
    grants: list(grant),
    stop: or(object({ ...told, turnUs: instant }), undefined),
  }),
  settle: settled,
  record: settled,
  renew: object({ wake: list(text), members: number }),
  look: object({ members: number, told: list(object(told)), keys: list(view) }),
  lease: object({ isHeld: flag, token: number, remainingUs: number, label: text }),
};

/** A limit in the way, as the script tells it. */
type Coded = Omit<Told, "words"> & { readonly which: number };

/** Reads what the script answers to an operation. Throws `StoreError` for anything that it never does, and `Error` with its own words. */
export function readReply(operation: Operation, reply: unknown): ReplyTo<Operation> {
  if (Array.isArray(reply) && reply.length === 1 && isText(reply[0])) throw new Error(text(reply[0]));
  try {
    const [now, age, what] = listOf(reply);
    const nowUs = number(now);
    const read = { nowUs, ...(REPLIES[operation.kind](what, nowUs + number(age)) as object) };
    const worded = ({ which, ...one }: Coded): Told =>
      "keys" in operation
        ? { ...one, words: wordsOf(one, which, operation.keys[one.index].rule) }
        : { ...one, words: "" };
    if ("stop" in read && read.stop !== undefined) read.stop = worded(read.stop as Coded);
    if ("told" in read) read.told = (read.told as Coded[]).map(worded);
    return read as ReplyTo<Operation>;
  } catch (cause) {
    const got = JSON.stringify(reply) ?? typeof reply;
    throw new StoreError(
      `Redis answered something that the script never does: ${got.slice(0, 200)}. Give the store a client whose replies nobody changes.`,
      { cause, isLasting: true },
    );
  }
}

/** A limit in the way, in the words of `core/limits/`. */
function wordsOf({ limit, because }: Pick<Told, "limit" | "because">, which: number, { text: written }: Rule): string {
  const words: Partial<Record<LimitKind, string>> = {
    minDelay: `at least ${written.minDelay} between starts`,
    rate: `rate ${written.rate}`,
    window: `window ${written.windows[which - 1]}`,
    quota: `quota ${written.quota}`,
    concurrency: `concurrency ${written.concurrency}, all in flight`,
    pause: "paused",
    cooldown: `cooling down after ${because}`,
    probe: `one probe is out after ${because}`,
    headers: `the site says ${because}`,
    robots: `robots.txt says ${because}`,
    queue: "others are ahead",
  };
  return words[limit] ?? "";
}

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new TypeError("no list");
}

function isText(value: unknown): value is string | Uint8Array {
  return typeof value === "string" || value instanceof Uint8Array;
}
