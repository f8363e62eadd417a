/** The longest field value that is looked at; a longer one counts as absent. Servers and clients seldom take more. */
export const maxFieldLength = 8_192;

const whole = /^\d+$/;
const decimal = /^(\d+)\.(\d+)$/;

/** The text of a field without the spaces and tabs around it; empty when it is absent, blank, no text or too long. */
export function trimField(value: unknown): string {
  if (typeof value !== "string" || value.length > maxFieldLength) return "";
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
  if (whole.test(text)) return thousandths(text, "");
  const match = decimal.exec(text);
  if (match !== null) return thousandths(match[1], match[2]);

  let largest: number | null = null;
  for (const line of text.split(",")) {
    const member = trimField(line);
    if (!whole.test(member)) return null;
    largest = Math.max(largest ?? 0, thousandths(member, ""));
  }
  return largest;
}

function thousandths(integer: string, fraction: string): number {
  const cut = Number(integer + fraction.slice(0, 3).padEnd(3, "0"));
  const hasMore = /[1-9]/.test(fraction.slice(3));
  return Math.min(cut + (hasMore ? 1 : 0), Number.MAX_SAFE_INTEGER);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
