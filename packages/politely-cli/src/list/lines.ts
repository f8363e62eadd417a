import { countText } from "../words.js";

/** A longer line is no line of a list: the file is something else. */
const MAX_LINE_BYTES = 65_536;
const LINE_END = 10;
const MARK = "\uFEFF";

/** What is wrong with the line after the last one that was given. The message goes on after the place: `list.txt:17: `. */
export class LineError extends Error {
  override readonly name = "LineError";
}

/**
 * Cuts a stream of bytes or text into lines, and gives those of each piece together. A byte order mark and the `\n` at the end of each line
 * are left out; the last line needs none.
 *
 * Throws `LineError` for a line that is not UTF-8 or has more than 65,536 bytes, once all lines before it were given.
 */
export async function* readLines(stream: AsyncIterable<unknown>): AsyncIterable<readonly string[]> {
  let rest: Uint8Array = Buffer.alloc(0);
  let isFirst = true;
  for await (const piece of stream) {
    const bytes = typeof piece === "string" ? Buffer.from(piece) : (piece as Uint8Array);
    const end = bytes.lastIndexOf(LINE_END) + 1;
    if (end > 0) {
      yield* decoded(Buffer.concat([rest, bytes.subarray(0, end - 1)]), isFirst);
      isFirst = false;
      rest = bytes.subarray(end);
    } else {
      rest = Buffer.concat([rest, bytes]);
    }
    if (rest.length > MAX_LINE_BYTES) {
      throw new LineError(`has more than ${countText(MAX_LINE_BYTES)} bytes; a list has one URL a line.`);
    }
  }
  if (rest.length > 0) yield* decoded(rest, isFirst);
}

/** The lines in these bytes, which have no line end at their end. */
function* decoded(bytes: Uint8Array, isFirst: boolean): Iterable<readonly string[]> {
  const text = textOf(bytes);
  if (text !== undefined) {
    yield (isFirst && text.startsWith(MARK) ? text.slice(1) : text).split("\n");
    return;
  }
  // Slower, and only once: the lines before the one that is wrong.
  const good: string[] = [];
  for (let from = 0; from <= bytes.length; ) {
    const next = bytes.indexOf(LINE_END, from);
    const end = next < 0 ? bytes.length : next;
    const line = textOf(bytes.subarray(from, end));
    if (line === undefined) break;
    good.push(good.length === 0 && isFirst && line.startsWith(MARK) ? line.slice(1) : line);
    from = end + 1;
  }
  if (good.length > 0) yield good;
  throw new LineError(isFirst ? wrongStart(bytes) : wrongText("LATIN1"));
}

/** How compressed files begin, in hexadecimal, and what unpacks them. */
const PACKED = { "1f8b": "zcat", "28b52ffd": "zstdcat", fd377a58: "xzcat", "425a68": "bzcat", "504b0304": "unzip -p" };

/** What to do about a list that is no UTF-8, by its first bytes. */
function wrongStart(bytes: Uint8Array): string {
  const begin = Buffer.from(bytes.subarray(0, 4)).toString("hex");
  const [, unpack] = Object.entries(PACKED).find(([magic]) => begin.startsWith(magic)) ?? [];
  if (unpack !== undefined) return `is compressed. Unpack the list first: ${unpack}.`;
  return wrongText(/^(fffe|feff)/.test(begin) ? "UTF-16" : "LATIN1");
}

function wrongText(encoding: string): string {
  return `is not text in UTF-8. Convert the list first: iconv -f ${encoding} -t UTF-8.`;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}
