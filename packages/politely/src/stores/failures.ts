import { StoreError } from "../errors.js";

/** What errors of a client mean: a pattern of what they say, what to say to people, and whether somebody has to mend it first. Those others may pass. */
export type Failures = readonly (readonly [said: RegExp, words: string, isLasting?: boolean])[];

/**
 * Makes a `StoreError` of what a client threw, with what happened and what to do, by the first pattern that fits. One that is a `StoreError` already stays as it is.
 *
 * Names in braces in the words stand for what `about` says of them.
 */
export function failureOf(
  error: unknown,
  failures: Failures,
  about: Readonly<Record<string, string>> & { readonly said: string },
): StoreError {
  if (error instanceof StoreError) return error;
  const [, words = "{said}", isLasting = false] = failures.find(([pattern]) => pattern.test(about.said)) ?? [];
  return new StoreError(
    words.replace(/\{(\w+)\}/g, (_, name: string) => about[name]),
    { cause: error, isLasting },
  );
}

/** A failure that does not pass by itself. */
export function lastingError(words: string): StoreError {
  return new StoreError(words, { isLasting: true });
}
