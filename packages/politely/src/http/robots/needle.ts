/** A text to be looked for, with what a search in linear time needs to know about it. */
export interface Needle {
  readonly text: string;
  /** For each place, how much of the text's own beginning ends there; undefined for a short text, which needs no such help. */
  readonly overlaps: Int32Array | undefined;
}

/** Up to this length the engine's own search is quicker, and its worst case is bounded; V8's gets slow from about 500 on. */
const shortLength = 64;

/** Makes a text ready to be looked for. */
export function createNeedle(text: string): Needle {
  if (text.length <= shortLength) return { text, overlaps: undefined };
  const overlaps = new Int32Array(text.length);
  let matched = 0;
  for (let index = 1; index < text.length; index++) {
    const code = text.charCodeAt(index);
    while (matched > 0 && text.charCodeAt(matched) !== code) matched = overlaps[matched - 1];
    if (text.charCodeAt(matched) === code) matched++;
    overlaps[index] = matched;
  }
  return { text, overlaps };
}

/** Finds the first place from `from` on where the needle begins in `text`; -1 when there is none. Takes time in proportion to `text`. */
export function findNeedle(needle: Needle, text: string, from: number): number {
  const { text: wanted, overlaps } = needle;
  if (overlaps === undefined) return text.indexOf(wanted, from);
  let matched = 0;
  for (let index = from; index < text.length; index++) {
    const code = text.charCodeAt(index);
    while (matched > 0 && wanted.charCodeAt(matched) !== code) matched = overlaps[matched - 1];
    if (wanted.charCodeAt(matched) === code) matched++;
    if (matched === wanted.length) return index + 1 - matched;
  }
  return -1;
}
