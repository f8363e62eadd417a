import type { HeadersLike } from "../../types.js";
import { askedNames, type BucketFieldName, type FieldName, maxNameLength, readFieldName } from "./fieldName.js";
import type { FieldRole } from "./fieldRole.js";
import { maxFieldLength, trimField } from "./fieldValue.js";

/**
 * Headers in any form that a client has them: a `Headers` object, a record with names in any case, pairs of name and value,
 * or the raw list of names and values in turn, as text or bytes.
 */
export type AnyHeaders = HeadersLike | Iterable<readonly [string, string]> | readonly (string | Uint8Array)[];

/** The value of one field of a bucket. */
export interface BucketField {
  readonly name: BucketFieldName;
  readonly text: string;
}

/** The fields of one bucket as they came. */
export interface BucketFields {
  readonly first: BucketFieldName;
  readonly byRole: Partial<Record<FieldRole, BucketField>>;
  /** The window that a name says. */
  windowMs: number | undefined;
}

/** Every field of an answer that is about limits. Texts are trimmed; empty means absent. */
export interface LimitFields {
  /** By the index in `waitFields`; undefined when there is none. */
  waits: string[] | undefined;
  rateLimit: string;
  policy: string;
  readonly buckets: BucketFields[];
  date: string;
  age: string;
}

/** More lines than this of one field are nonsense, and count as absent. */
const maxFieldLines = 64;

/** Fields beyond this many are not looked at. Servers and clients seldom take a tenth of it. */
const maxFields = 1_024;

/** No site has more buckets in one answer; what comes after them is not looked at. */
const maxBuckets = 64;

/**
 * Picks the fields about limits out of headers of any form; undefined when there are none.
 *
 * Never throws: headers that do count as absent, all of them, since what is left of them may be wrong alone.
 * Looks at 1,024 fields, 64 lines of each and 64 buckets; what comes after them is not looked at.
 */
export function collectFields(headers: unknown): LimitFields | undefined {
  if (typeof headers !== "object" || headers === null) return undefined;
  try {
    const collector = new Collector();
    collector.readAll(headers);
    return collector.fields;
  } catch {
    // Headers are the client's own object. One that fails must not take the answer it came with down as well.
    return undefined;
  }
}

class Collector {
  fields: LimitFields | undefined;
  private date = "";
  private age = "";

  readAll(headers: object): void {
    if (Array.isArray(headers)) this.readArray(headers);
    else if (isIterable(headers)) this.readPairs(headers);
    else if (hasGet(headers)) this.ask(headers);
    else this.readRecord(headers);
    if (this.fields === undefined) return;
    this.fields.date = this.date;
    this.fields.age = this.age;
  }

  private readArray(headers: readonly unknown[]): void {
    if (Array.isArray(headers[0])) {
      this.readPairs(headers);
      return;
    }
    const end = Math.min(headers.length - 1, 2 * maxFields);
    for (let i = 0; i < end; i += 2) this.read(headers[i], headers[i + 1]);
  }

  private readPairs(pairs: Iterable<unknown>): void {
    let count = 0;
    for (const pair of pairs) {
      if (count++ >= maxFields) return;
      if (Array.isArray(pair)) this.read(pair[0], pair[1]);
    }
  }

  private readRecord(headers: object): void {
    const names = Object.keys(headers);
    const end = Math.min(names.length, maxFields);
    for (let i = 0; i < end; i++) {
      const name = readFieldName(names[i]);
      // A value nobody needs is not touched: it may be a getter.
      if (name !== null) this.add(name, (headers as Readonly<Record<string, unknown>>)[names[i]]);
    }
  }

  private ask(headers: { get(name: string): unknown }): void {
    for (const name of askedNames) this.read(name, headers.get(name));
    if (this.fields === undefined) return;
    this.read("date", headers.get("date"));
    this.read("age", headers.get("age"));
  }

  private read(name: unknown, value: unknown): void {
    const text = typeof name === "string" ? name : nameOf(name);
    const found = readFieldName(text);
    if (found !== null) this.add(found, value);
  }

  private add(name: FieldName, value: unknown): void {
    const text = trimField(textOf(value));
    if (text === "") return;
    if (name.kind === "date") {
      this.date = joined(this.date, text);
      return;
    }
    if (name.kind === "age") {
      this.age = joined(this.age, text);
      return;
    }
    this.fields ??= { waits: undefined, rateLimit: "", policy: "", buckets: [], date: "", age: "" };
    const { fields } = this;
    if (name.kind === "bucket") addToBucket(fields.buckets, name, text);
    else if (name.kind === "wait") {
      fields.waits ??= [];
      fields.waits[name.index] = joined(fields.waits[name.index] ?? "", text);
    } else if (name.kind === "rateLimit") fields.rateLimit = joined(fields.rateLimit, text);
    else fields.policy = joined(fields.policy, text);
  }
}

function addToBucket(buckets: BucketFields[], name: BucketFieldName, text: string): void {
  let bucket: BucketFields | undefined;
  for (const each of buckets) {
    if (each.first.key === name.key) bucket = each;
  }
  if (bucket === undefined) {
    if (buckets.length >= maxBuckets) return;
    bucket = { first: name, byRole: {}, windowMs: undefined };
    buckets.push(bucket);
  }
  bucket.windowMs ??= name.windowMs;
  const before = bucket.byRole[name.role];
  if (before?.name.name === name.name) {
    bucket.byRole[name.role] = { name, text: joined(before.text, text) };
  } else if (before === undefined || name.order < before.name.order) {
    bucket.byRole[name.role] = { name, text };
  }
}

/** One name in two spellings is one field on two lines. What would make the field too long is left out. */
function joined(before: string, text: string): string {
  if (before === "") return text;
  return before.length + text.length > maxFieldLength - 2 ? before : `${before}, ${text}`;
}

function isIterable(headers: object): headers is Iterable<unknown> {
  return typeof (headers as Partial<Iterable<unknown>>)[Symbol.iterator] === "function";
}

function hasGet(headers: object): headers is { get(name: string): unknown } {
  return "get" in headers && typeof headers.get === "function";
}

function nameOf(name: unknown): string {
  return name instanceof Uint8Array && name.length <= maxNameLength ? latin1(name) : "";
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  if (value instanceof Uint8Array) return latin1(value);
  if (!Array.isArray(value) || value.length === 0 || value.length > maxFieldLines) return undefined;
  const lines = value.map((line: unknown) => (Array.isArray(line) ? undefined : textOf(line)));
  return lines.every((line) => line !== undefined) ? lines.join(", ") : undefined;
}

/** Bytes of a header as text. A value too long to be looked at is cut where that shows. */
function latin1(bytes: Uint8Array): string {
  const part = bytes.length > maxFieldLength ? bytes.subarray(0, maxFieldLength + 1) : bytes;
  // Not a spread, which would take each byte through an iterator.
  return String.fromCharCode.apply(null, part as unknown as number[]);
}
