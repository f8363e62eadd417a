import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import type { IndexLine } from "./indexLine.js";

const PIECE_BYTES = 1 << 16;
const LINE_END = 0x0a;

/** `index.jsonl`: one line for each finished URL, added at the end only. */
export class IndexFile {
  readonly #file: number;
  #bytes: number;

  /** Opens or creates it, and removes a last line that was not written to its end. Throws what the file system throws. */
  constructor(readonly path: string) {
    this.#file = openSync(path, "a+");
    this.#bytes = this.#repair();
  }

  /** Its length, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds lines. When that fails half-way, what was written of them is taken back. */
  append(lines: readonly IndexLine[]): void {
    const text = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    try {
      for (let written = 0; written < text.length; ) written += writeSync(this.#file, text, written);
      this.#bytes += text.length;
    } catch (error) {
      ftruncateSync(this.#file, this.#bytes);
      throw error;
    }
  }

  /** The lines from one offset to another, or to the end, some at a time. What is not one of our lines is skipped. */
  *lines(offset: number, until: number = this.#bytes): Iterable<readonly IndexLine[]> {
    for (const span of this.#spans(offset, until)) yield this.#read(span);
  }

  /** The last line of each URL from an offset on, some at a time, those at the end first. A URL may come again: what came first holds. */
  *lastLines(offset: number): Iterable<readonly IndexLine[]> {
    for (const span of [...this.#spans(offset, this.#bytes)].reverse()) {
      yield [...new Map(this.#read(span).map((line) => [line.url, line])).values()];
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  /** Cuts what lies between two offsets into pieces that end with a line. */
  *#spans(offset: number, until: number): Iterable<Span> {
    const piece = Buffer.alloc(PIECE_BYTES);
    let from = offset;
    for (let at = offset; at < until; ) {
      const count = readSync(this.#file, piece, 0, Math.min(PIECE_BYTES, until - at), at);
      if (count === 0) return;
      const end = piece.subarray(0, count).lastIndexOf(LINE_END) + 1;
      const to = at + end;
      at += count;
      if (end === 0) continue;
      yield { from, to };
      from = to;
    }
  }

  #read({ from, to }: Span): readonly IndexLine[] {
    const bytes = Buffer.alloc(to - from);
    readSync(this.#file, bytes, 0, bytes.length, from);
    return bytes.toString("utf8").split("\n").flatMap(readLine);
  }

  /** Cuts off what stands behind the last line end. Returns the length. */
  #repair(): number {
    const { size } = fstatSync(this.#file);
    const piece = Buffer.alloc(PIECE_BYTES);
    for (let end = size; end > 0; ) {
      const from = Math.max(0, end - PIECE_BYTES);
      const count = readSync(this.#file, piece, 0, end - from, from);
      const found = piece.lastIndexOf(LINE_END, count - 1);
      if (found >= 0 && found < count) {
        const length = from + found + 1;
        if (length < size) ftruncateSync(this.#file, length);
        return length;
      }
      end = from;
    }
    if (size > 0) ftruncateSync(this.#file, 0);
    return 0;
  }
}

/** A piece of the file, in bytes. */
interface Span {
  readonly from: number;
  readonly to: number;
}

function readLine(line: string): readonly IndexLine[] {
  if (line === "") return [];
  try {
    const read = JSON.parse(line) as Partial<IndexLine> | null;
    const isOurs = typeof read?.url === "string" && typeof read.key === "string" && typeof read.outcome === "string";
    return isOurs ? [read as IndexLine] : [];
  } catch {
    return [];
  }
}
