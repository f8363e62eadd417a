import type { Readable } from "node:stream";
import { WorkError } from "../errors.js";

/** The longest line, in characters. A HAR file is often a single one. */
export const maxLineLength = 400_000_000;

/** One line without its end, and its number from 1. */
export interface LogLine {
  readonly number: number;
  readonly text: string;
}

/**
 * Reads lines, several at a time, and never holds more than a piece of the stream and one line. A byte order mark is dropped.
 *
 * Throws a `WorkError` for a line longer than `maxLineLength`.
 */
export async function* logLines(stream: Readable): AsyncGenerator<readonly LogLine[]> {
  const decoder = new TextDecoder("utf-8");
  // The beginning of a line whose end has not come yet.
  let pieces: string[] = [];
  let length = 0;
  let number = 0;
  const toLine = (text: string): LogLine => {
    number += 1;
    return { number, text: text.endsWith("\r") ? text.slice(0, -1) : text };
  };
  for await (const bytes of stream as AsyncIterable<Uint8Array | string>) {
    const text = typeof bytes === "string" ? bytes : decoder.decode(bytes, { stream: true });
    const lines = text.split("\n");
    const rest = lines.pop() ?? "";
    if (lines.length > 0) {
      lines[0] = [...pieces, lines[0]].join("");
      pieces = [];
      length = 0;
      yield lines.map(toLine);
    }
    pieces.push(rest);
    length += rest.length;
    if (length > maxLineLength) {
      throw new WorkError(`line ${number + 1} is longer than ${maxLineLength} characters; divide the file`);
    }
  }
  const last = [...pieces, decoder.decode()].join("");
  if (last !== "") yield [toLine(last)];
}
