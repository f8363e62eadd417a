import { checkNames } from "../../core/checkNames.js";
import { readRate, readRefill, readWindow, type WrittenRate } from "../../policy/rate.js";
import { unwrap } from "../../policy/reading.js";
import { showValue } from "../../policy/showValue.js";
import type { OriginAnswerer, OriginRetryAfter } from "./types.js";

/** Reads an option: gives what it means, or throws `TypeError` (wrong form) or `RangeError` (wrong value) that begins with the field. */
export type Reader<Value> = (value: unknown, field: string) => Value;

/** What a reader gives. */
type ValueOf<Read> = Read extends Reader<infer Value> ? Value : never;

type Table = Readonly<Record<string, Reader<unknown>>>;
type Values<Fields extends Table> = { readonly [Name in keyof Fields]: ValueOf<Fields[Name]> };

/** The longest time an option may say: 1,000 days. */
const maxMs = 86_400_000_000;

/** The same, but nothing for an option that is left out. */
function optional<Value>(read: Reader<Value>): Reader<Value | undefined> {
  return (value, field) => (value === undefined ? undefined : read(value, field));
}

/** The same, with what stands for an option that is left out. */
export function usually<Value>(usual: unknown, read: Reader<Value>): Reader<Value> {
  return (value, field) => read(value === undefined ? usual : value, field);
}

/** The same, and what is made of it. */
function derived<Value, Next>(read: Reader<Value>, next: (value: Value, field: string) => Next): Reader<Next> {
  return (value, field) => next(read(value, field), field);
}

/** The same, but throws unless a value is fine. `says` ends the sentence that begins with the field. */
function must<Value>(
  read: Reader<Value>,
  isFine: (value: Value) => boolean,
  says: (value: Value) => string,
  Problem: typeof RangeError | typeof TypeError = RangeError,
): Reader<Value> {
  return derived(read, (value, field) => {
    if (isFine(value)) return value;
    throw new Problem(`${field} ${says(value)}.`);
  });
}

const ofType = <Value>(type: string, what: string): Reader<Value> =>
  must(
    (value) => value as Value,
    (value) => typeof value === type,
    (value) => `must be ${what}; got ${showValue(value)}`,
    TypeError,
  );

/** True or false. */
const flag = ofType<boolean>("boolean", "true or false");

/** A number from `least` to `most`. */
export function numberFrom(least: number, most: number, what: "whole" | "decimal" = "decimal"): Reader<number> {
  return must(
    ofType<number>("number", "a number"),
    (value) => value >= least && value <= most && (what === "decimal" || Number.isInteger(value)),
    (value) => `must be ${what === "whole" ? "a whole number " : ""}from ${least} to ${most}; got ${value}`,
  );
}

/** Milliseconds from 0 to 1,000 days. */
const milliseconds = numberFrom(0, maxMs);

/** One of the given texts. */
function oneOf<const Text extends string>(...known: readonly Text[]): Reader<Text> {
  return must(
    (value) => value as Text,
    (value) => known.includes(value),
    (value) => `must be one of ${known.map(showValue).join(", ")}; got ${showValue(value)}`,
    TypeError,
  );
}

/** Text of at most `most` characters. */
function textUpTo(most: number): Reader<string> {
  return must(
    ofType<string>("string", "text"),
    ({ length }) => length <= most,
    ({ length }) => `must have at most ${most} characters; got ${length}`,
  );
}

/** A list of at most `most` entries. */
function listOf<Value>(read: Reader<Value>, most: number): Reader<readonly Value[]> {
  return (value, field) => {
    if (!Array.isArray(value)) throw new TypeError(`${field} must be a list; got ${showValue(value)}.`);
    if (value.length > most) throw new RangeError(`${field} must have at most ${most} entries; got ${value.length}.`);
    return value.map((each, index) => read(each, `${field}[${index}]`));
  };
}

/** An object with these fields and no others. `of` says which object it is where the field has no name. */
export function record<Fields extends Table>(fields: Fields, of = ""): Reader<Values<Fields>> {
  return (value, field) => {
    const given = value as Readonly<Record<string, unknown>>;
    checkNames(given, Object.keys(fields), field === "" ? of : field);
    const at = field === "" ? "" : `${field}.`;
    const read = Object.entries(fields).map(([name, each]) => [name, each(given[name], at + name)]);
    return Object.fromEntries(read) as Values<Fields>;
  };
}

/** An object whose `kind` says which fields it has. */
function byKind<Kinds extends Readonly<Record<string, Table>>>(
  kinds: Kinds,
): Reader<{ [Kind in keyof Kinds & string]: { readonly kind: Kind } & Values<Kinds[Kind]> }[keyof Kinds & string]> {
  const names = Object.keys(kinds) as (keyof Kinds & string)[];
  return (value, field) => {
    if (typeof value !== "object" || value === null) {
      throw new TypeError(`${field} must be an object; got ${showValue(value)}.`);
    }
    const kind = oneOf(...names)((value as { readonly kind?: unknown }).kind, `${field}.kind`);
    return record({ kind: oneOf(kind), ...kinds[kind] })(value, field) as never;
  };
}

/** An object of values by name. `name` gives the name by which each is known, or throws. */
export function namedValues<Value>(
  what: string,
  name: (given: string, field: string) => string,
  read: Reader<Value>,
): Reader<ReadonlyMap<string, Value>> {
  return (value, field) => {
    if (typeof value !== "object" || value === null) {
      throw new TypeError(`${field} must be an object of ${what}; got ${showValue(value)}.`);
    }
    const values = new Map<string, Value>();
    for (const [given, each] of Object.entries(value)) {
      const key = name(given, field);
      if (values.has(key)) throw new TypeError(`${field} names ${key} twice.`);
      values.set(key, read(each, `${field}[${showValue(given)}]`));
    }
    return values;
  };
}

/** Text that a header field can carry as its value, or, given the name, a field as a whole. */
const headerValue = (value: unknown, field: string, name = "x"): string => {
  const text = textUpTo(8_192)(value, field);
  try {
    new Headers([[name, text]]);
  } catch {
    throw new TypeError(`${field} must be a field that HTTP can carry; got ${showValue(name === "x" ? text : name)}.`);
  }
  return text;
};

/** Text that can name a header field, in lower case. */
const headerName = (value: unknown, field: string): string => {
  const name = textUpTo(256)(value, field);
  headerValue("x", field, name);
  return name.toLowerCase();
};

const maxCount = 1_000_000;
/** A window keeps the instant of every request in it, so it is shorter. */
const maxLogged = 100_000;
const maxTextLength = 64 * 1_024 * 1_024;
/** A slow body is pushed whether or not somebody reads, so it has to fit in memory. */
const maxSlowBytes = 16 * 1_024 * 1_024;
const maxFillerBytes = 1_024 * 1_024 * 1_024;

const rate: Reader<WrittenRate> = (value, field) => unwrap(readRate(value), field);
const windowUpTo = (most: number) =>
  must(
    derived(rate, (written, field) => unwrap(readWindow(written), field)),
    ({ count }) => count <= most,
    ({ count }) => `must count at most ${most} in its time; got ${count}`,
  );
/** Thousandths of a request in a second, in which nginx counts. */
const nginxRate = must(
  derived(rate, ({ count, perUs }) => Number((count.top * 1_000_000_000n) / (count.bottom * BigInt(perUs)))),
  (perSecond) => perSecond >= 1 && perSecond <= 1_000_000_000,
  (perSecond) => `must be from 0.001 to 1,000,000 a second, which is what nginx can count; got ${perSecond / 1_000}`,
);
const limitName = must(
  textUpTo(64),
  // What a quoted string of a structured field can carry without escapes.
  (name) => /^[ !#-[\]-~]+$/.test(name),
  (name) => `must be printable ASCII without quotes and backslashes; got ${showValue(name)}`,
  TypeError,
);

/** The field by whose value clients are told apart; undefined: all of the host count together. */
const countBy: Reader<string | undefined> = (value, field) =>
  value === undefined || value === "host" ? undefined : record({ header: headerName })(value, field).header;

const everyLimit = { name: optional(limitName), countBy };
const count = numberFrom(1, maxCount, "whole");

const limit = byKind({
  "leaky-bucket": {
    ...everyLimit,
    rate: nginxRate,
    burst: usually(0, numberFrom(0, maxCount, "whole")),
    nodelay: usually(false, flag),
  },
  concurrency: { ...everyLimit, count },
  "fixed-window": { ...everyLimit, rate: windowUpTo(maxCount) },
  "sliding-window": { ...everyLimit, rate: windowUpTo(maxLogged) },
  "token-bucket": {
    ...everyLimit,
    rate: derived(rate, (written, field) => unwrap(readRefill(written), field)),
    burst: usually(1, count),
  },
  "penalty-box": {
    ...everyLimit,
    rate: windowUpTo(maxLogged),
    banMs: numberFrom(1, maxMs),
    lengthenMs: optional(milliseconds),
  },
});

/** A bucket whose units are too small to be counted in whole numbers is none. */
const countable: typeof limit = (value, field) => {
  const rule = limit(value, field);
  if (rule.kind !== "token-bucket" || (rule.burst + 1) * rule.rate.ratePerUs <= Number.MAX_SAFE_INTEGER) return rule;
  const tokens = `${rule.burst} tokens of ${rule.rate.ratePerUs} microseconds`;
  throw new RangeError(`${field}.burst is too large for so slow a rate: ${tokens}.`);
};

/** Milliseconds, or what is drawn by one of these kinds. */
function timeBy<Kinds extends Parameters<typeof byKind>[0]>(kinds: Kinds) {
  const drawn = byKind(kinds);
  return (value: unknown, field: string) => {
    if (typeof value === "number") return milliseconds(value, field);
    if (typeof value === "object" && value !== null) return drawn(value, field);
    throw new TypeError(`${field} must be milliseconds or an object; got ${showValue(value)}.`);
  };
}

const shift = numberFrom(-maxMs, maxMs);
const delayKinds = {
  uniform: { minMs: milliseconds, maxMs: milliseconds },
  "log-normal": { medianMs: milliseconds, sigma: numberFrom(0, 5), maxMs: optional(milliseconds) },
};
const delay = derived(timeBy(delayKinds), withRange);
const queue = { service: delay, workers: numberFrom(1, 1_000, "whole") };
const latency = derived(timeBy({ ...delayKinds, queue }), withRange);

/** The same time, unless its upper bound is below its lower one. */
function withRange<Time>(time: Time, field: string): Time {
  const {
    minMs,
    medianMs = minMs,
    maxMs: most = medianMs,
  } = time as { minMs?: number; medianMs?: number; maxMs?: number };
  if (medianMs !== undefined) numberFrom(medianMs, maxMs)(most, `${field}.maxMs`);
  return time;
}

const retryAfter: Reader<OriginRetryAfter> = (value, field) => {
  if (typeof value === "string") return oneOf("seconds", "date", "absent")(value, field);
  const isText = typeof value === "object" && value !== null && "text" in value;
  return isText ? record({ text: headerValue })(value, field) : record({ plusMs: shift })(value, field);
};

const refusalStatus = numberFrom(400, 599, "whole");
const statuses = must(
  (value: unknown, field) =>
    typeof value === "number" ? [refusalStatus(value, field)] : listOf(refusalStatus, maxLogged)(value, field),
  (list) => list.length > 0,
  () => "must have at least one entry",
);

/** What is sent after the headers. */
export interface Body {
  /** The bytes, or how many letters to make up. */
  readonly content: Uint8Array<ArrayBuffer> | number;
  readonly bytes: number;
  readonly type: string;
}

/** Text in UTF-8. */
export function textBody(text: string): Body {
  const content = new TextEncoder().encode(text);
  return { content, bytes: content.length, type: "text/plain;charset=utf-8" };
}

const body: Reader<Body> = (value, field) => {
  if (typeof value === "string") return textBody(textUpTo(maxTextLength)(value, field));
  // A copy, so that a test that goes on with its array does not change the site.
  if (value instanceof Uint8Array)
    return { content: value.slice(), bytes: value.length, type: "application/octet-stream" };
  const { bytes } = record({ bytes: numberFrom(0, maxFillerBytes, "whole") })(value, field);
  return { content: bytes, bytes, type: "text/plain;charset=utf-8" };
};

const headers = namedValues(
  "header fields",
  (name, field) => headerValue("x", `${field}.${name}`, name) && name.toLowerCase(),
  headerValue,
);

const fault = oneOf("reset", "timeout", "stall");

const details = record({
  status: optional(numberFrom(200, 599, "whole")),
  headers: (value, field) => Object.fromEntries(usually({}, headers)(value, field)),
  body: optional(body),
  bodyMs: usually(0, milliseconds),
  etag: optional(headerValue),
  redirect: optional(headerValue),
  latencyMs: optional(milliseconds),
  fault: optional(fault),
});

/** An answer that has been checked. */
export type Answer = ReturnType<typeof answer>;

/** Reads an answer of a list, of a page, or that a function gave. */
export function answer(value: unknown, field: string) {
  const isObject = typeof value === "object" && value !== null;
  if (!isObject && typeof value !== "number" && typeof value !== "string") {
    throw new TypeError(`${field} must be a status, a fault or an object; got ${showValue(value)}.`);
  }
  const given = isObject ? value : typeof value === "number" ? { status: value } : { fault: fault(value, field) };
  const { status, headers, redirect, ...read } = details(given, field);
  if (read.bodyMs > 0 && read.body === undefined) {
    throw new TypeError(`${field}.bodyMs needs a body to spread. Give ${field}.body too.`);
  }
  if (read.bodyMs > 0 && (read.body?.bytes ?? 0) > maxSlowBytes) {
    throw new RangeError(`${field}.body must have at most ${maxSlowBytes} bytes with bodyMs; got ${read.body?.bytes}.`);
  }
  const tag = read.etag === undefined ? {} : { etag: read.etag };
  const place = redirect === undefined ? {} : { location: redirect };
  return { ...read, status: status ?? (redirect === undefined ? 200 : 302), headers: { ...place, ...tag, ...headers } };
}

const path = must(
  (value: unknown) => String(value),
  (text) => text.startsWith("/"),
  (text) => `must have paths that begin with "/"; got ${showValue(text)}`,
  TypeError,
);

/** The options of one host. */
export const behaviourFields = {
  limits: usually([], listOf(countable, 16)),
  refusal: usually(
    {},
    record({ status: usually(429, statuses), retryAfter: usually("seconds", retryAfter), latency: optional(latency) }),
  ),
  quotaHeaders: optional(
    record({
      families: listOf(oneOf("list", "triple", "x"), 3),
      resetAs: usually("delta", oneOf("delta", "epoch", "epoch-ms")),
    }),
  ),
  answers: usually([], (value: unknown, field) =>
    typeof value === "function" ? (value as OriginAnswerer) : listOf(answer, maxLogged)(value, field),
  ),
  pages: usually({}, namedValues("answers by path", path, answer)),
  robots: optional(textUpTo(maxTextLength)),
  latency: usually(0, latency),
  travel: usually(0, delay),
  wallSkewMs: usually(0, shift),
};

/** How a host behaves, checked and with all defaults filled in. */
export type Behaviour = ReturnType<ReturnType<typeof record<typeof behaviourFields>>>;
/** A limit that has been checked. */
export type LimitRule = Behaviour["limits"][number];
/** A time that has been checked: a number of milliseconds, or how it is drawn. */
export type Time = Behaviour["latency"];
