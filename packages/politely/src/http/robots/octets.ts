/** How much of a robots.txt is read: 500 KiB, the least that RFC 9309 asks for. */
export const maxRobotsBytes = 512_000;

const chunkLength = 8_192;

/**
 * Brings a robots.txt into the form it is parsed in: text with one character, U+0000 to U+00FF, for each octet of its UTF-8.
 *
 * Octets that are no UTF-8 stay as they are, so that a rule in another encoding still matches a URL with the same octets.
 * A byte order mark is dropped, also one that is cut short, and bytes that begin with the mark of UTF-16 are read as that.
 * Of more than 500 KiB only the lines that end within the first 500 KiB are kept. Throws `TypeError` for anything but text and bytes.
 */
export function readOctets(text: string | Uint8Array): string {
  if (typeof text === "string") return withoutMark(encode(text));
  if (!ArrayBuffer.isView(text)) throw new TypeError(`robots.txt must be a text or a Uint8Array; got ${typeof text}.`);

  const bytes = new Uint8Array(text.buffer, text.byteOffset, text.byteLength);
  const mark = `${bytes[0]} ${bytes[1]}`;
  // A character has at least two bytes there, and at most one octet more here.
  const start = bytes.subarray(0, 2 * maxRobotsBytes + 4);
  if (mark === "255 254") return readOctets(new TextDecoder("utf-16le").decode(start));
  if (mark === "254 255") return readOctets(new TextDecoder("utf-16be").decode(start));
  return withoutMark(binaryText(bytes.length > maxRobotsBytes ? cutAtLineEnd(bytes) : bytes));
}

/** Writes the UTF-8 of a text with one character for each octet. Half a surrogate pair becomes U+FFFD. */
export function octetsOf(text: string): string {
  return binaryText(new TextEncoder().encode(text));
}

/** Reads text with one character for each octet as UTF-8. What is none becomes U+FFFD. */
export function textOf(octets: string): string {
  return new TextDecoder().decode(Uint8Array.from(octets, (octet) => octet.charCodeAt(0)));
}

function encode(text: string): string {
  // Every character has at least one octet, so that no more of the text than this can count.
  const start = text.slice(0, maxRobotsBytes + 1);
  const bytes = new Uint8Array(Math.min(start.length * 3, maxRobotsBytes + 1));
  const { read, written } = new TextEncoder().encodeInto(start, bytes);
  const filled = bytes.subarray(0, written);
  return binaryText(read < text.length || written > maxRobotsBytes ? cutAtLineEnd(filled) : filled);
}

/** Keeps whole lines only: half a rule could forbid or allow more than the whole one. */
function cutAtLineEnd(bytes: Uint8Array): Uint8Array {
  const kept = bytes.subarray(0, maxRobotsBytes + 1);
  return kept.subarray(0, Math.max(kept.lastIndexOf(0x0a), kept.lastIndexOf(0x0d), 0));
}

function withoutMark(octets: string): string {
  return octets.replace(/^\xEF(?:\xBB\xBF?)?/, "");
}

function binaryText(codes: Uint8Array): string {
  let text = "";
  for (let start = 0; start < codes.length; start += chunkLength) {
    // Spreading the numbers instead would take seven times as long.
    text += Reflect.apply(String.fromCharCode, undefined, codes.subarray(start, start + chunkLength)) as string;
  }
  return text;
}
