import { formatDuration } from "../../policy/duration.js";
import type { Asked, Entries } from "./entries.js";
import { sorted } from "./timeline.js";
import type { IgnoredRetryAfter } from "./types.js";

/** Starts of one host inside a time it had asked to be left alone. */
export interface Ignored {
  readonly count: number;
  readonly worst: readonly IgnoredRetryAfter[];
}

/**
 * Finds the starts that surely came after an answer and before the time it had asked for was over.
 *
 * A start at or before the answer was on the way already. Of all answers there have been, the one that asks to stay away longest
 * counts. At most `most` are named, those that were earliest by most; all are counted.
 */
export function ignoredRetryAfters(entries: Entries, ids: Uint32Array, asked: readonly Asked[], most: number): Ignored {
  if (asked.length === 0) return { count: 0, worst: [] };
  const answers = asked.toSorted((one, other) => one.answered.hi - other.answered.hi);
  const sent = ids.filter((id) => !entries.isUnused(id));
  const starts = sorted(sent, (id) => entries.loOf(id));
  const found: { readonly id: number; readonly by: Asked; readonly earlyUs: number }[] = [];
  let count = 0;
  let heard = 0;
  let longest: Asked | undefined;
  for (const id of starts) {
    while (heard < answers.length && answers[heard].answered.hi < entries.loOf(id)) {
      const answer = answers[heard];
      if (longest === undefined || untilOf(answer) > untilOf(longest)) longest = answer;
      heard += 1;
    }
    if (longest === undefined || entries.hiOf(id) >= untilOf(longest)) continue;
    count += 1;
    found.push({ id, by: longest, earlyUs: untilOf(longest) - entries.hiOf(id) });
    if (found.length >= 1_000 + most) keepWorst(found, most);
  }
  keepWorst(found, most);
  return { count, worst: found.map(({ id, by, earlyUs }) => describe(entries, id, by, earlyUs)) };
}

/** The earliest that the time asked for can have been over. */
function untilOf({ answered, waitUs }: Asked): number {
  return answered.lo + waitUs;
}

function keepWorst(found: { readonly id: number; readonly earlyUs: number }[], most: number): void {
  found.sort((one, other) => other.earlyUs - one.earlyUs || one.id - other.id);
  found.length = Math.min(found.length, most);
}

function describe(entries: Entries, id: number, by: Asked, earlyUs: number): IgnoredRetryAfter {
  const isExact = entries.loOf(id) === entries.hiOf(id);
  // Nobody wants to read the microseconds of a minute.
  const roundUs = earlyUs >= 1_000_000 ? 1_000 : 1;
  const early = formatDuration(Math.floor(earlyUs / roundUs) * roundUs);
  return {
    asked: entries.mark(by.id),
    retryAfterMs: by.waitUs / 1000,
    start: entries.mark(id),
    earlyMs: earlyUs / 1000,
    says: `started ${isExact ? "" : "at least "}${early} before a Retry-After of ${formatDuration(by.waitUs)} was over`,
  };
}
