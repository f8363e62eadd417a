import { StoreError } from "../errors.js";

/** What to say of errors of a client, by patterns of what they say themselves; the first that fits counts, whatever the case. */
export type Failures = Readonly<Record<string, string>>;

/** An error of a client, as far as it is known. */
export interface Said {
  /** Code and message. */
  readonly said: string;
  /** Whether somebody has to mend it first. The others may pass. */
  readonly isLasting: boolean;
  /** What names in braces stand for. */
  readonly [name: string]: string | boolean;
}

/** Makes a `StoreError` of what a client threw, with what happened and what to do. One that is a `StoreError` already stays as it is. */
export function failureOf(error: unknown, failures: Failures, known: Said): StoreError {
  if (error instanceof StoreError) return error;
  const [, words = "{said}"] = Object.entries(failures).find(([said]) => new RegExp(said, "is").test(known.said)) ?? [];
  const message = words.replace(/\{(\w+)\}/g, (_, name: string) => String(known[name]));
  return new StoreError(message, { cause: error, isLasting: known.isLasting });
}

/** A failure that does not pass by itself. */
export function lastingError(words: string): StoreError {
  return new StoreError(words, { isLasting: true });
}
