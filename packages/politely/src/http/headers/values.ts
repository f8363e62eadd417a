/** The longest field value that is read; a longer one counts as absent. Servers and clients seldom take more. */
export const maxFieldLength = 8_192;

/** Longer texts are no length of time that anybody writes. */
const maxSpanLength = 64;

/** More numbers than this in one field are nonsense, and count as unreadable. */
const maxCounts = 64;

const most = Number.MAX_SAFE_INTEGER;
const shortWhole = /^\d{1,12}$/;
const plain = /^(\d+)(?:\.(\d+))?$/;
const negative = /^-\d+(?:\.\d+)?$/;

/** Nanoseconds. The third spelling of µs is its UTF-8, as a client shows it that takes headers for Latin-1. Month and year have no fixed length. */
const unitTable = `ns 1, us 1e3, µs 1e3, μs 1e3, Âµs 1e3, ms 1e6, milli 1e6, millisecond 1e6, s 1e9, sec 1e9, second 1e9, m 60e9, min 60e9, minute 60e9,
  h 3600e9, hr 3600e9, hour 3600e9, d 86400e9, day 86400e9, dai 86400e9, week 604800e9, month 0, year 0`;
const units = new Map(unitTable.split(/,\s*/).map((row) => [row.split(" ")[0], Number(row.split(" ")[1])]));

const durationPart = /(\d+)(?:\.(\d+))?(ns|us|µs|μs|Âµs|ms|[smhd])/y;
const span =
  /^(?:per-?)?(?:(\d+(?:\.\d+)?) ?(ms|[smhd])|(\d+(?:\.\d+)?)? ?(milli|millisecond|second|sec|minute|min|hour|hr|day|dai|week|month|year)(?:s|ly)?)$/i;

/** A text in quotes. One that is not closed goes on to the end, so that nothing is read twice. */
const quoted = /"(?:[^"\\]|\\.?)*(?:"|$)/gs;
const pair = /^(\d+):(\d+)$/;
const windowParameter = /;\s*(?:w|window)\s*=\s*(\d+)/;

/** A text without the spaces and tabs around it, and no others. Linear, however long it is. */
export function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** Splits a text at its commas, without the blanks around each part. */
export function splitAtCommas(text: string): string[] {
  return text.split(",").map(trimBlanks);
}

/** Reads a number without sign or exponent times 10^`digits`, exactly, rounded up, at most 2^53-1; NaN for any other text. */
export function readNumber(text: string, digits: 0 | 3): number {
  if (shortWhole.test(text)) return digits === 0 ? Number(text) : Number(text) * 1_000;
  const match = plain.exec(text);
  if (match === null) return Number.NaN;
  const [, whole, fraction = ""] = match;
  const cut = Number(whole + fraction.slice(0, digits).padEnd(digits, "0"));
  return Math.min(/[1-9]/.test(fraction.slice(digits)) ? cut + 1 : cut, most);
}

/**
 * Reads a number of units: whole, at most 2^53-1. A part of a unit is none, but counts in full among those that are used.
 *
 * Gives -1 for a number below zero, by which servers say that they do not count, and NaN for any other text.
 */
export function readCount(text: string, isUsed = false): number {
  const roundedUp = readNumber(text, 0);
  if (Number.isNaN(roundedUp)) return negative.test(text) ? -1 : Number.NaN;
  return isUsed ? roundedUp : Math.min(Math.floor(Number(text)), most);
}

/** Reads a duration as Go writes it (`1h2m3.5s`, `350us`), and days, as whole milliseconds, rounded up, at most 2^53-1; undefined for other texts. */
export function readDurationMs(text: string): number | undefined {
  if (text.length > maxSpanLength || text === "") return undefined;
  let wholeMs = 0;
  let rest = 0n;
  for (durationPart.lastIndex = 0; durationPart.lastIndex < text.length; ) {
    const part = durationPart.exec(text);
    if (part === null) return undefined;
    const [, whole, fraction = "", unit] = part;
    const unitNs = units.get(unit) ?? 0;
    if (fraction === "" && unitNs >= 1e6) wholeMs += Number(whole) * (unitNs / 1e6);
    // Each of the others is rounded up to a nanosecond.
    else rest += dividedUp(BigInt(whole + fraction) * BigInt(unitNs), 10n ** BigInt(fraction.length));
  }
  return Math.min(wholeMs + (rest === 0n ? 0 : Number(dividedUp(rest, 1_000_000n))), most);
}

/**
 * Reads a length of time in words: `24 hours`, `10s`, `minute`, `daily`, `perday`. Whole milliseconds, rounded up, at most 2^53-1.
 *
 * Gives 0 for months and years, whose length varies, and undefined for any other text.
 */
export function readSpanMs(text: string): number | undefined {
  if (text === "today") return 86_400_000;
  const match = text.length > maxSpanLength ? null : span.exec(text);
  if (match === null) return undefined;
  const [, shortCount = "1", letters, count = shortCount, word = letters] = match;
  return inUnits(readNumber(count, 3), (units.get(word.toLowerCase()) ?? 0) / 1e6);
}

/** Reads the length of a window: a number of units of `unitMs`, a duration or words. Undefined when it is zero or anything else. */
export function readWindowMs(text: string, unitMs: number): number | undefined {
  const number = readNumber(text, 3);
  const ms = Number.isNaN(number) ? (readDurationMs(text) ?? readSpanMs(text)) : inUnits(number, unitMs);
  return ms === 0 ? undefined : ms;
}

function inUnits(thousandths: number, unitMs: number): number {
  return Math.min(Math.ceil((thousandths * unitMs) / 1_000), most);
}

function dividedUp(value: bigint, divisor: bigint): bigint {
  return (value + divisor - 1n) / divisor;
}

/** One number of a field that may hold several. */
export interface Count {
  /** -1 when the number is below zero, which means unknown. */
  readonly value: number;
  /** The window that stands with the number: `100;w=60`, `100:60`. */
  readonly windowMs: number | undefined;
  /** The window was written as `limit:seconds`. */
  readonly isPair: boolean;
}

/**
 * Reads the numbers of a field: one, or several joined with commas, each with or without its window.
 *
 * Undefined when there is anything else in the field. Texts in quotes are skipped.
 */
export function readCounts(text: string, isUsed: boolean): Count[] | undefined {
  const only = readCount(text, isUsed);
  if (!Number.isNaN(only)) return [{ value: only, windowMs: undefined, isPair: false }];
  const members = splitAtCommas(text.replace(quoted, '""'));
  if (members.length > maxCounts) return undefined;
  const counts = members.map((member) => {
    const [, first, seconds] = pair.exec(member) ?? [];
    const value = readCount(first ?? trimBlanks(member.replace(/;.*/s, "")), isUsed);
    const window = seconds ?? windowParameter.exec(member)?.[1];
    return {
      value,
      windowMs: window === undefined ? undefined : readWindowMs(window, 1_000),
      isPair: first !== undefined,
    };
  });
  return counts.some(({ value }) => Number.isNaN(value)) ? undefined : counts;
}
