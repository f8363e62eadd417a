/** Code points that take two columns and are no emoji, as first and last of each range, in order. */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2329, 0x232a],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xa960, 0xa97c],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18cff],
  [0x1aff0, 0x1b2ff],
  [0x1f200, 0x1f265],
  [0x20000, 0x3fffd],
];

/** The one invisible character that is counted: it makes the character before it an emoji of two columns. */
const MAKES_EMOJI = 0xfe0f;
const NO_WIDTH = /^[\p{M}\p{Cf}]$/u;
const EMOJI = /^\p{Emoji_Presentation}$/u;
const PRINTABLE_ASCII = /^[ -~]*$/;
// Colours and other codes, to be left out when a painted text is measured.
const CODES = /\p{Cc}\[[0-9;?]*[A-Za-z]/gu;
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]|[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/**
 * How many columns a terminal needs for `text` at most. Colours count nothing.
 *
 * Where terminals disagree, about joined emoji say, this is the larger number: a text that fits by this measure fits.
 */
export function textWidth(text: string): number {
  if (PRINTABLE_ASCII.test(text)) return text.length;
  let width = 0;
  for (const character of text.replace(CODES, "")) width += characterWidth(character);
  return width;
}

/** `text` in at most `width` columns: whole, or cut with `more` at its end. It must have no codes in it. */
export function fitText(text: string, width: number, more = "…"): string {
  if (textWidth(text) <= width) return text;
  const room = width - textWidth(more);
  if (room < 0) return "";
  let kept = "";
  let used = 0;
  for (const character of text) {
    used += characterWidth(character);
    if (used > room) break;
    kept += character;
  }
  return `${kept}${more}`;
}

/** `text` with spaces up to `width` columns, after it or, with `"right"`, before it. Longer text stays as it is. */
export function padText(text: string, width: number, align: "left" | "right" = "left"): string {
  const space = " ".repeat(Math.max(0, width - textWidth(text)));
  return align === "left" ? `${text}${space}` : `${space}${text}`;
}

/**
 * What somebody else wrote, safe to show on one line: codes that move the cursor, colour, ring or turn the direction of writing
 * become a space, so that no answer of a site can draw on the terminal.
 */
export function safeText(text: string): string {
  return PRINTABLE_ASCII.test(text) ? text : text.replace(UNSAFE, " ");
}

function characterWidth(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x300) return code < 0x20 || (code >= 0x7f && code < 0xa0) || code === 0xad ? 0 : 1;
  if (code === MAKES_EMOJI) return 1;
  if (NO_WIDTH.test(character)) return 0;
  return isWide(code) || EMOJI.test(character) ? 2 : 1;
}

function isWide(code: number): boolean {
  return WIDE.some(([first, last]) => code >= first && code <= last);
}
