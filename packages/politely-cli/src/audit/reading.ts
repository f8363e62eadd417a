import type { TraceEntry } from "politely/testing";

/** A request that was found. Where it stands in the log is filled in later. */
export type FoundRequest = { -readonly [Field in keyof TraceEntry]: TraceEntry[Field] };

/** What a line of a log, or an entry of a HAR file, says: requests, nothing that was sent, or nothing that can be read. */
export type Reading =
  | {
      readonly kind: "requests";
      readonly entries: readonly FoundRequest[];
      /** What else was sent, and does not stand there. */
      readonly problem?: string;
    }
  | { readonly kind: "skipped" }
  | { readonly kind: "broken"; readonly problem: string };

/** Says that nothing was sent: no request, and no mistake either. */
export const skipped: Reading = { kind: "skipped" };

/** Says what is wrong with a line. */
export function broken(problem: string): Reading {
  return { kind: "broken", problem };
}

/** Tells an object from everything else that JSON can be. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * What the headers say about staying away. A date is compared with the site's own `Date` where that is known, so that a wrong clock does not matter.
 */
export function retryAfterFields(
  retryAfter: string | undefined,
  date: string | undefined,
): Pick<TraceEntry, "retryAfter" | "retryAfterMs"> {
  if (retryAfter === undefined) return {};
  const isDate = /[A-Za-z]{3}/.test(retryAfter);
  const waitMs = isDate && date !== undefined ? Date.parse(retryAfter) - Date.parse(date) : Number.NaN;
  return Number.isNaN(waitMs) ? { retryAfter } : { retryAfterMs: waitMs };
}
