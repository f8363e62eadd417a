import { showValue } from "../../policy/showValue.js";

/** The longest time an option may say: 1,000 days. */
export const maxMs = 86_400_000_000;

/** Takes a whole number from `least` to `most`, or throws naming the field. */
export function wholeNumber(
  name: string,
  value: unknown,
  range: { readonly least: number; readonly most: number },
): number {
  if (typeof value !== "number") throw new TypeError(`${name} must be a number; got ${showValue(value)}.`);
  if (!Number.isInteger(value) || value < range.least || value > range.most) {
    throw new RangeError(`${name} must be a whole number from ${range.least} to ${range.most}; got ${value}.`);
  }
  return value;
}

/** Takes a number from `least` to `most`, decimals allowed, or throws naming the field. */
export function numberWithin(
  name: string,
  value: unknown,
  range: { readonly least: number; readonly most: number },
): number {
  if (typeof value !== "number") throw new TypeError(`${name} must be a number; got ${showValue(value)}.`);
  if (!(value >= range.least && value <= range.most)) {
    throw new RangeError(`${name} must be from ${range.least} to ${range.most}; got ${value}.`);
  }
  return value;
}

/** Takes milliseconds from 0 to 1,000 days, or throws naming the field. */
export function milliseconds(name: string, value: unknown): number {
  return numberWithin(name, value, { least: 0, most: maxMs });
}

/** Takes one of the given texts, or throws naming the field. */
export function oneOf<Text extends string>(name: string, value: unknown, known: readonly Text[]): Text {
  const found = known.find((each) => each === value);
  if (found === undefined) {
    throw new TypeError(`${name} must be one of ${known.map(showValue).join(", ")}; got ${showValue(value)}.`);
  }
  return found;
}

/** Takes true or false, or throws naming the field. */
export function flag(name: string, value: unknown): boolean {
  if (typeof value !== "boolean") throw new TypeError(`${name} must be true or false; got ${showValue(value)}.`);
  return value;
}

/** Takes text of at most `maxLength` characters, or throws naming the field. */
export function textUpTo(name: string, value: unknown, maxLength: number): string {
  if (typeof value !== "string") throw new TypeError(`${name} must be text; got ${showValue(value)}.`);
  if (value.length > maxLength) {
    throw new RangeError(`${name} must have at most ${maxLength} characters; got ${value.length}.`);
  }
  return value;
}

/** Takes a list of at most `maxLength` entries, or throws naming the field. */
export function listUpTo(name: string, value: unknown, maxLength: number): readonly unknown[] {
  if (!Array.isArray(value)) throw new TypeError(`${name} must be a list; got ${showValue(value)}.`);
  if (value.length > maxLength) {
    throw new RangeError(`${name} must have at most ${maxLength} entries; got ${value.length}.`);
  }
  return value as readonly unknown[];
}

/** Takes a record of header fields and gives it with names in lower case, or throws naming the field. */
export function headerFields(name: string, value: unknown): Readonly<Record<string, string>> {
  if (value === undefined) return {};
  if (typeof value !== "object" || value === null) {
    throw new TypeError(`${name} must be an object of header fields; got ${showValue(value)}.`);
  }
  const entries = Object.entries(value);
  if (entries.length > 64) throw new RangeError(`${name} must have at most 64 fields; got ${entries.length}.`);
  return Object.fromEntries(
    entries.map(([field, text]) => [field.toLowerCase(), headerValue(`${name}.${field}`, text, field)]),
  );
}

/** Takes the value of a header field, or throws naming the option. */
export function headerValue(name: string, value: unknown, field = "x"): string {
  const text = textUpTo(name, value, 8_192);
  try {
    new Headers([[field, text]]);
  } catch {
    throw new TypeError(`${name} must be a field that HTTP can carry; got ${showValue(text)}.`);
  }
  return text;
}
