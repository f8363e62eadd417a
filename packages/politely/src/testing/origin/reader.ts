import { checkNames } from "../../engine/options.js";
import { showValue } from "../../policy/showValue.js";

/** Reads an option: gives what it means, or throws `TypeError` (wrong form) or `RangeError` (wrong value) that begins with the field. */
export type Reader<Value> = (value: unknown, field: string) => Value;

/** What a reader gives. */
export type ValueOf<Read> = Read extends Reader<infer Value> ? Value : never;

type Table = Readonly<Record<string, Reader<unknown>>>;
type Values<Fields extends Table> = { readonly [Name in keyof Fields]: ValueOf<Fields[Name]> };

/** The longest time an option may say: 1,000 days. */
export const maxMs = 86_400_000_000;

/** The same, but nothing for an option that is left out. */
export function optional<Value>(read: Reader<Value>): Reader<Value | undefined> {
  return (value, field) => (value === undefined ? undefined : read(value, field));
}

/** The same, with what stands for an option that is left out. */
export function usually<Value>(usual: unknown, read: Reader<Value>): Reader<Value> {
  return (value, field) => read(value === undefined ? usual : value, field);
}

/** The same, and what is made of it. */
export function derived<Value, Next>(read: Reader<Value>, next: (value: Value, field: string) => Next): Reader<Next> {
  return (value, field) => next(read(value, field), field);
}

/** The same, but throws unless a value is fine. `says` ends the sentence that begins with the field. */
export function must<Value>(
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
export const flag = ofType<boolean>("boolean", "true or false");

/** A number from `least` to `most`. */
export function numberFrom(least: number, most: number, what: "whole" | "decimal" = "decimal"): Reader<number> {
  return must(
    ofType<number>("number", "a number"),
    (value) => value >= least && value <= most && (what === "decimal" || Number.isInteger(value)),
    (value) => `must be ${what === "whole" ? "a whole number " : ""}from ${least} to ${most}; got ${value}`,
  );
}

/** Milliseconds from 0 to 1,000 days. */
export const milliseconds = numberFrom(0, maxMs);

/** One of the given texts. */
export function oneOf<const Text extends string>(...known: readonly Text[]): Reader<Text> {
  return must(
    (value) => value as Text,
    (value) => known.includes(value),
    (value) => `must be one of ${known.map(showValue).join(", ")}; got ${showValue(value)}`,
    TypeError,
  );
}

/** Text of at most `most` characters. */
export function textUpTo(most: number): Reader<string> {
  return must(
    ofType<string>("string", "text"),
    ({ length }) => length <= most,
    ({ length }) => `must have at most ${most} characters; got ${length}`,
  );
}

/** A list of at most `most` entries. */
export function listOf<Value>(read: Reader<Value>, most: number): Reader<readonly Value[]> {
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
export function byKind<Kinds extends Readonly<Record<string, Table>>>(
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
export const headerValue = (value: unknown, field: string, name = "x"): string => {
  const text = textUpTo(8_192)(value, field);
  try {
    new Headers([[name, text]]);
  } catch {
    throw new TypeError(`${field} must be a field that HTTP can carry; got ${showValue(name === "x" ? text : name)}.`);
  }
  return text;
};

/** Text that can name a header field, in lower case. */
export const headerName = (value: unknown, field: string): string => {
  const name = textUpTo(256)(value, field);
  headerValue("x", field, name);
  return name.toLowerCase();
};
