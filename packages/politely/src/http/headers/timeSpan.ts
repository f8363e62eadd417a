import { readNumberInThousandths } from "./fieldValue.js";

/** Longer texts are no length of time that anybody writes. */
const maxSpanLength = 64;

const nanosecondsOf: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  // The micro sign in UTF-8, as a client shows it that takes headers for Latin-1.
  Âµs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3_600e9,
  d: 86_400e9,
};

const letterMs: Readonly<Record<string, number | undefined>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Up to here the sum of all parts, even in days, is a safe integer. */
const maxUsualLength = 8;

const duration = /^(?:\d+(?:\.\d+)?(?:ns|us|µs|μs|Âµs|ms|s|m|h|d))+$/;
const durationPart = /(\d+)(?:\.(\d+))?(\D+)/g;

/** Month and year have no fixed length. */
const unitMs: Readonly<Record<string, number | undefined>> = {
  millisecond: 1,
  ms: 1,
  second: 1_000,
  sec: 1_000,
  s: 1_000,
  minute: 60_000,
  min: 60_000,
  m: 60_000,
  hour: 3_600_000,
  hr: 3_600_000,
  h: 3_600_000,
  day: 86_400_000,
  d: 86_400_000,
  week: 604_800_000,
  month: undefined,
  year: undefined,
};

const unitPattern = "(millisecond|second|sec|minute|min|hour|hr|day|week|month|year)";
const spanInWords = new RegExp(`^(\\d+(?:\\.\\d+)?) ?(?:${unitPattern}s?|(ms|s|m|h|d))$`, "i");
const wordAlone = new RegExp(`^(?:per)?-?(\\d{0,4})${unitPattern}(?:ly|s)?$`);
const shortWord = /^(\d{1,4})(s|m|h|d)$/;

/** What a word of a name says about time. */
export interface WindowWord {
  /** Milliseconds; undefined for months and years, whose length varies. */
  readonly windowMs: number | undefined;
}

/**
 * Reads a duration as Go writes it (`1h2m3.5s`, `6m0s`, `12ms`, `350us`), and days too, as whole milliseconds, rounded up.
 *
 * Undefined when the text is anything else. Exact, and what exceeds 2^53-1 saturates there.
 */
export function readDurationMs(text: string): number | undefined {
  const wholeMs = wholeDurationMs(text);
  if (wholeMs !== undefined) return wholeMs;
  if (text.length > maxSpanLength || !duration.test(text)) return undefined;

  let total = 0n;
  // Parts of a nanosecond are rounded up one by one: never early, and at most a few nanoseconds late.
  for (const [, integer, fraction = "", unit] of text.matchAll(durationPart)) {
    const scale = 10n ** BigInt(fraction.length);
    total += ceilDivide(BigInt(integer + fraction) * BigInt(nanosecondsOf[unit]), scale);
  }
  return saturated(Number(ceilDivide(total, 1_000_000n)));
}

/**
 * Reads the length of a window as whole milliseconds, rounded up: a number of units of `bareUnitMs`, a duration, a number
 * with a word (`24 hours`), or a word alone (`minute`, `daily`).
 *
 * Undefined when the text is anything else, or the length is zero.
 */
export function readWindowMs(text: string, bareUnitMs: number): number | undefined {
  const number = readNumberInThousandths(text);
  if (number === null) return readWrittenWindowMs(text);
  return number === 0 ? undefined : saturated(Math.ceil((number * bareUnitMs) / 1_000));
}

/** The same for a text that has its unit with it. */
export function readWrittenWindowMs(text: string): number | undefined {
  const ms = text.length > maxSpanLength ? undefined : writtenMs(text);
  return ms === 0 ? undefined : ms;
}

function writtenMs(text: string): number | undefined {
  const match = spanInWords.exec(text);
  if (match !== null) {
    const unit = unitMs[(match[2] ?? match[3]).toLowerCase()];
    const number = readNumberInThousandths(match[1]);
    if (unit !== undefined && number !== null) return saturated(Math.ceil((number * unit) / 1_000));
  }
  return readDurationMs(text) ?? readWindowWord(text.toLowerCase())?.windowMs;
}

/** What a word of a field's name says about time: `minute`, `daily`, `perday`, `24hour`, `10s`; undefined for any other word. */
export function readWindowWord(word: string): WindowWord | undefined {
  if (word === "daily" || word === "today" || word === "perday") return { windowMs: 86_400_000 };
  const match = wordAlone.exec(word) ?? shortWord.exec(word);
  if (match === null) return undefined;
  const unit = unitMs[match[2]];
  const count = match[1] === "" ? 1 : Number(match[1]);
  return { windowMs: unit === undefined || count === 0 ? undefined : count * unit };
}

/** The usual case, without decimals and units below a millisecond; undefined for any other. */
function wholeDurationMs(text: string): number | undefined {
  if (text.length > maxUsualLength) return undefined;
  let totalMs = 0;
  let number = -1;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit >= 0 && digit <= 9) {
      number = Math.max(number, 0) * 10 + digit;
      continue;
    }
    const isMs = text[i] === "m" && text[i + 1] === "s";
    const unit = isMs ? 1 : letterMs[text[i]];
    if (unit === undefined || number < 0) return undefined;
    totalMs += number * unit;
    number = -1;
    if (isMs) i++;
  }
  return number < 0 && totalMs > 0 ? totalMs : undefined;
}

function saturated(ms: number): number {
  return Math.min(ms, Number.MAX_SAFE_INTEGER);
}

function ceilDivide(value: bigint, divisor: bigint): bigint {
  return (value + divisor - 1n) / divisor;
}
