/** The longest field value that is looked at; a longer one counts as absent. Servers and clients seldom take more. */
export const maxFieldLength = 8_192;

/** What `readCount` gives for a number below zero, by which servers say that they do not count. */
export const unknownCount = -1;

/** What `readCount` gives for a text that is no number. */
export const noCount = -2;

const whole = /^\d+$/;
const decimal = /^(\d+)\.(\d+)$/;
const hasPart = /\.\d*[1-9]/;
const negative = /^-\d+(?:\.\d+)?$/;

/** Up to this many digits every number is a safe integer. */
const safeDigits = 15;

/** The text of a field without the spaces and tabs around it; empty when it is absent, blank, no text or too long. */
export function trimField(value: unknown): string {
  return typeof value !== "string" || value.length > maxFieldLength ? "" : trimBlanks(value);
}

/** A text without the spaces and tabs around it, however long it is. */
export function trimBlanks(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isBlank(value.charCodeAt(start))) start++;
  while (end > start && isBlank(value.charCodeAt(end - 1))) end--;
  return value.slice(start, end);
}

/**
 * Reads a number without sign or exponent in thousandths, rounded up; null when the text is anything else.
 *
 * Whole numbers joined with commas are the same field sent several times: the largest counts.
 * Decimals are exact, `"0.3"` is 300, and what exceeds 2^53-1 thousandths saturates there.
 */
export function readThousandths(text: string): number | null {
  const number = readNumberInThousandths(text);
  if (number !== null) return number;

  let largest: number | null = null;
  for (const line of text.split(",")) {
    const member = trimBlanks(line);
    if (!whole.test(member)) return null;
    largest = Math.max(largest ?? 0, thousandths(member, ""));
  }
  return largest;
}

/** The same for a single number: what is joined with commas is null. */
export function readNumberInThousandths(text: string): number | null {
  if (text.length <= safeDigits - 3 && isWhole(text)) return Number(text) * 1_000;
  if (whole.test(text)) return thousandths(text, "");
  const match = decimal.exec(text);
  return match === null ? null : thousandths(match[1], match[2]);
}

/**
 * Reads how many units a text says, as a whole number: a part of a unit is none, and what exceeds 2^53-1 saturates there.
 *
 * Gives `unknownCount` for a number below zero and `noCount` for anything that is no plain number.
 */
export function readCount(text: string): number {
  if (text.length <= safeDigits && isWhole(text)) return Number(text);
  if (whole.test(text)) return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
  const match = decimal.exec(text);
  if (match !== null) return Math.min(Number(match[1]), Number.MAX_SAFE_INTEGER);
  return negative.test(text) ? unknownCount : noCount;
}

/** The same for units that are spent: a part of one counts in full. */
export function readUsed(text: string): number {
  const count = readCount(text);
  return count >= 0 && count < Number.MAX_SAFE_INTEGER && hasPart.test(text) ? count + 1 : count;
}

/** Splits a text at its commas, without the blanks around each part. */
export function splitAtCommas(text: string): string[] {
  return text.split(",").map(trimField);
}

function isWhole(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x30 || code > 0x39) return false;
  }
  return text.length > 0;
}

function thousandths(integer: string, fraction: string): number {
  const cut = Number(integer + fraction.slice(0, 3).padEnd(3, "0"));
  const hasMore = /[1-9]/.test(fraction.slice(3));
  return Math.min(cut + (hasMore ? 1 : 0), Number.MAX_SAFE_INTEGER);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
