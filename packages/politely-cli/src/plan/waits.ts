import type { Cause, LimitKind } from "politely";

/** Limits that can make a planned request wait. Everything else needs an answer that nobody can foresee. */
export const WAITS = ["minDelay", "rate", "window", "quota", "concurrency"] as const satisfies readonly LimitKind[];

/** The number of a limit in `WAITS`; one that is none of them counts as the first. */
export function waitNumber(limit: LimitKind): number {
  const index = (WAITS as readonly LimitKind[]).indexOf(limit);
  return Math.max(0, index);
}

/** What a limit is called, from a cause the library gave: `rate 1/s`, `concurrency 4`, `at least 2 s between starts`. */
export function limitText({ key, message }: Cause): string {
  const text = message.startsWith(`${key}: `) ? message.slice(key.length + 2) : message;
  return text.replace(/, (?:[\d.]+ (?:ms|s|min|h) to go|until an answer comes)$/, "").replace(/, all in flight$/, "");
}
