import type { HeadersLike } from "../../types.js";
import { type FieldName, type FieldNames, maxNameLength } from "./fieldNames.js";
import { maxFieldLength, trimBlanks } from "./values.js";

/**
 * Headers in any form that a client has them: a `Headers` object, a record with names in any case, pairs of name and value,
 * or the raw list of names and values in turn, as text or bytes.
 */
export type AnyHeaders = HeadersLike | Iterable<readonly [string, string]> | readonly (string | Uint8Array)[];

/** A field about limits as it came. Its text is trimmed and not empty. */
export interface Field {
  readonly name: FieldName;
  text: string;
}

/** More lines than this of one field are nonsense, and count as absent. */
const maxFieldLines = 64;

/** Fields beyond this many are not read. Servers and clients seldom take a tenth of it. */
const maxFields = 1_024;

/**
 * Picks the fields about limits out of headers of any form; undefined when there are none.
 *
 * Never throws: headers that do count as absent, all of them, since what is left of them may be wrong alone.
 * Reads 1,024 fields and 64 lines of each; what comes after them is skipped.
 */
export function collectFields(headers: unknown, names: FieldNames): LimitFields | undefined {
  if (typeof headers !== "object" || headers === null) return undefined;
  try {
    const found = new LimitFields(names);
    found.readAll(headers);
    return found.fields.length === 0 ? undefined : found;
  } catch {
    // Headers are the client's own object. One that fails must not take the answer it came with down as well.
    return undefined;
  }
}

/** Every field of an answer that is about limits, and its `Date` and `Age`, empty when absent. */
export class LimitFields {
  readonly fields: Field[] = [];
  date = "";
  age = "";

  constructor(readonly names: FieldNames) {}

  readAll(headers: object): void {
    if (Array.isArray(headers) && !Array.isArray(headers[0])) this.#readRaw(headers);
    else if (Symbol.iterator in headers) this.#readPairs(headers as Iterable<unknown>);
    else if ("get" in headers && typeof headers.get === "function")
      this.#ask(headers as { get(name: string): unknown });
    else this.#readRecord(headers as Readonly<Record<string, unknown>>);
  }

  #readRaw(headers: readonly unknown[]): void {
    const end = Math.min(headers.length - 1, 2 * maxFields);
    for (let i = 0; i < end; i += 2) this.#read(headers[i], headers[i + 1]);
  }

  #readPairs(pairs: Iterable<unknown>): void {
    let count = 0;
    for (const pair of pairs) {
      if (count++ >= maxFields) return;
      if (Array.isArray(pair)) this.#read(pair[0], pair[1]);
    }
  }

  #readRecord(headers: Readonly<Record<string, unknown>>): void {
    const given = Object.keys(headers);
    const end = Math.min(given.length, maxFields);
    for (let i = 0; i < end; i++) {
      const name = this.names.read(given[i]);
      // A value nobody needs is not touched: it may be a getter.
      if (name !== null) this.#add(name, headers[given[i]]);
    }
  }

  #ask(headers: { get(name: string): unknown }): void {
    for (const name of this.names.asked) this.#read(name, headers.get(name));
    if (this.fields.length === 0) return;
    for (const name of ["date", "age"]) this.#read(name, headers.get(name));
  }

  #read(name: unknown, value: unknown): void {
    const found = this.names.read(typeof name === "string" ? name : nameOf(name));
    if (found !== null) this.#add(found, value);
  }

  #add(name: FieldName, value: unknown): void {
    const text = textOf(value);
    if (text === "") return;
    const { role } = name;
    if (role === "date" || role === "age") {
      this[role] = joined(this[role], text);
      return;
    }
    const before = this.fields.find((field) => field.name.name === name.name);
    if (before === undefined) this.fields.push({ name, text });
    else before.text = joined(before.text, text);
  }
}

/** One name in two spellings is one field on two lines. What would make the field too long is left out. */
function joined(before: string, text: string): string {
  if (before === "") return text;
  return before.length + text.length > maxFieldLength - 2 ? before : `${before}, ${text}`;
}

function nameOf(name: unknown): string {
  return name instanceof Uint8Array && name.length <= maxNameLength ? latin1(name) : "";
}

/** The text of a field without the blanks around it; empty when it is absent, blank, no text or too long. */
function textOf(value: unknown): string {
  const text = Array.isArray(value) ? linesOf(value) : lineOf(value);
  return text === undefined || text.length > maxFieldLength ? "" : trimBlanks(text);
}

function linesOf(values: readonly unknown[]): string | undefined {
  if (values.length > maxFieldLines) return undefined;
  const lines = values.map(lineOf);
  return lines.includes(undefined) ? undefined : lines.join(", ");
}

function lineOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  return value instanceof Uint8Array ? latin1(value) : undefined;
}

/** Bytes of a header as text. A value that is too long is cut where that shows. */
function latin1(bytes: Uint8Array): string {
  // Not a spread, which would take each byte through an iterator.
  return String.fromCharCode.apply(null, bytes.subarray(0, maxFieldLength + 1) as unknown as number[]);
}
