import { StoreError } from "../../errors.js";

/** Longest name of a row, in UTF-16 units. Each is at most three bytes, and PostgreSQL indexes up to about 2,700. */
const maxName = 600;
/** How much of a longer key stays readable. */
const keptName = 200;
/** What marks a character that is written in another way: one that hardly any text has, so that state is kept as it is. */
const mark = "\ue000";

/**
 * Writes any text so that PostgreSQL keeps it: U+0000 and halves of surrogate pairs become U+E000 and four digits, and so does U+E000 itself.
 * All else stays as it is.
 */
export function encodeText(text: string): string {
  return text.replace(/[\0\ue000\p{Surrogate}]/gu, (unit) => mark + unit.charCodeAt(0).toString(16).padStart(4, "0"));
}

/** Reads what `encodeText` wrote. Throws `StoreError` for what it never writes, naming the key. */
export function decodeText(text: string, key: string): string {
  if (!text.includes(mark)) return text;
  return text.replace(/\ue000([0-9a-f]{4})?/g, (_, code: string | undefined) => {
    if (code === undefined) {
      throw new StoreError(
        `The value of "${key}" was not written by politely. Remove its row, or give the store a table of its own.`,
        { isLasting: true },
      );
    }
    return String.fromCharCode(Number.parseInt(code, 16));
  });
}

/**
 * The name of the row that holds `key`: the encoded key. One of more than 600 characters is shortened to its first 200 and its SHA-256, behind U+E000 and
 * `#`, which no encoded text contains.
 */
export async function rowName(key: string): Promise<string> {
  const name = encodeText(key);
  if (name.length <= maxName) return name;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(name)));
  const hex = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  // The cut may go through a surrogate pair.
  return `${name.slice(0, keptName).replace(/\p{Surrogate}$/u, "")}${mark}#${hex}`;
}

/** A list as PostgreSQL writes arrays, `{"a","b",NULL}`: every client can send it as a text. */
export function arrayText(items: readonly (string | number | undefined)[]): string {
  const texts = items.map((item) => {
    if (item === undefined) return "NULL";
    return typeof item === "number" ? String(item) : `"${item.replace(/["\\]/g, "\\$&")}"`;
  });
  return `{${texts.join(",")}}`;
}
