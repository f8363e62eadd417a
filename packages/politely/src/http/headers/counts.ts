import { noCount, readCount, splitAtCommas } from "./fieldValue.js";
import { readWindowMs } from "./timeSpan.js";

/** One number of a field that holds several. */
export interface Count {
  /** -1 when the number is below zero, which means unknown. */
  readonly value: number;
  /** The window that stands with the number: `100;w=60`, `100:60`. */
  readonly windowMs: number | undefined;
  /** The window was written as `limit:seconds`. */
  readonly isPair: boolean;
}

/** More numbers than this in one field are nonsense, and count as unreadable. */
const maxCounts = 64;

/** One that is not closed goes on to the end, so that nothing is looked at twice. */
const quoted = /"(?:[^"\\]|\\.?)*(?:"|$)/gs;
const pair = /^(\d+):(\d+)$/;
const windowParameter = /;\s*(?:w|window)\s*=\s*(\d+)/;

/**
 * Reads the numbers of a field: one, or several joined with commas, each with or without its window.
 *
 * Absent gives an empty list, and a field with anything else in it is undefined. Texts in quotes are not looked at.
 */
export function readCounts(text: string | undefined, read: (text: string) => number = readCount): Count[] | undefined {
  if (text === undefined) return [];
  const members = splitAtCommas(text.replace(quoted, '""'));
  if (members.length > maxCounts) return undefined;
  const counts: Count[] = [];
  for (const member of members) {
    const count = countOf(member, read);
    if (count === undefined) return undefined;
    counts.push(count);
  }
  return counts;
}

function countOf(member: string, read: (text: string) => number): Count | undefined {
  const match = pair.exec(member);
  if (match !== null) return { value: read(match[1]), windowMs: readWindowMs(match[2], 1_000), isPair: true };
  const semicolon = member.indexOf(";");
  const value = read(semicolon === -1 ? member : member.slice(0, semicolon).trimEnd());
  if (value === noCount) return undefined;
  const seconds = semicolon === -1 ? null : windowParameter.exec(member.slice(semicolon));
  return { value, windowMs: seconds === null ? undefined : readWindowMs(seconds[1], 1_000), isPair: false };
}
