import type { Writable } from "node:stream";
import { textWidth } from "./width.js";

/** The size of a terminal. */
export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

const SHOW_CURSOR = "\u001b[?25h";
const HIDE_CURSOR = "\u001b[?25l";
const WRAP = "\u001b[?7h";
const NO_WRAP = "\u001b[?7l";
const ERASE_DOWN = "\u001b[J";
const ERASE_LINE = "\u001b[2K";
const ERASE_LINE_END = "\u001b[K";
// A terminal that knows these shows a picture when it is whole; the others take no notice.
const BEGIN_PICTURE = "\u001b[?2026h";
const END_PICTURE = "\u001b[?2026l";

/** Log lines kept from one picture to the next. */
const MAX_LOG_LINES = 1_000;

/**
 * The bottom of a terminal: a few lines that are drawn again and again, and log lines that scroll away above them.
 *
 * Each picture is one write. The cursor is hidden inside that write only, and stands on an empty line below the picture after it: whatever
 * ends the process at whatever moment, `kill -9` included, the terminal is in order. When it became narrower, the lines that it
 * has wrapped are counted and taken away too; what it has moved into its history meanwhile stays there.
 */
export class Screen {
  readonly #stream: Writable;
  readonly #size: () => ScreenSize;
  #drawn: readonly string[] = [];
  #drawnColumns = 0;
  #logLines: string[] = [];
  #lostLogLines = 0;

  constructor(stream: Writable, size: () => ScreenSize) {
    this.#stream = stream;
    this.#size = size;
  }

  /** Puts a line above the picture when it is next drawn. Of more than 1,000 until then the rest is counted only. */
  log(line: string): void {
    if (this.#logLines.length < MAX_LOG_LINES) this.#logLines.push(line);
    else this.#lostLogLines += 1;
  }

  /** Draws `lines` in the place of those before. Lines that are too wide are cut by the terminal, those beyond its height left out. */
  draw(lines: readonly string[]): void {
    const { columns, rows } = this.#size();
    const shown = lines.slice(0, Math.max(0, rows - 1));
    if (this.#logLines.length === 0 && columns === this.#drawnColumns && isSame(shown, this.#drawn)) return;
    // A line is erased as a whole before it is written: what is erased behind its end only still counts as a part of it
    // for some terminals when they become narrower.
    const picture = shown.map((line) => `${ERASE_LINE}${line}\n`).join("");
    const before = `${HIDE_CURSOR}${BEGIN_PICTURE}${this.#up({ columns, rows })}${this.#takeLog()}`;
    this.#stream.write(`${before}${NO_WRAP}${picture}${WRAP}${ERASE_DOWN}${END_PICTURE}${SHOW_CURSOR}`);
    this.#drawn = shown;
    this.#drawnColumns = columns;
  }

  /** Takes the picture away and writes what is left of the log. The next `draw` begins where the picture was. */
  clear(): void {
    const isDrawn = this.#drawn.length > 0;
    if (!isDrawn && this.#logLines.length === 0) return;
    this.#stream.write(`${this.#up(this.#size())}${this.#takeLog()}${isDrawn ? ERASE_DOWN : ""}`);
    this.#drawn = [];
  }

  /** Leaves the picture where it is, and begins a new one below: after something else wrote to the terminal, or at the end. */
  keep(): void {
    this.#drawn = [];
  }

  /** To the first row of the picture. What is there is written over line by line: erased at once, some terminals keep it in their history. */
  #up({ columns, rows }: ScreenSize): string {
    if (this.#drawn.length === 0) return "";
    const rowsOf = (line: string): number => Math.max(1, Math.ceil(textWidth(line) / columns));
    const count = this.#drawn.reduce((sum, line) => sum + rowsOf(line), 0);
    return `\u001b[${Math.min(count, rows - 1)}A\r`;
  }

  #takeLog(): string {
    const lost = this.#lostLogLines > 0 ? [`... and ${this.#lostLogLines} more lines`] : [];
    const [before, after] = this.#drawn.length > 0 ? [ERASE_LINE, ERASE_LINE_END] : ["", ""];
    const text = [...this.#logLines, ...lost].map((line) => `${before}${line}${after}\n`).join("");
    this.#logLines = [];
    this.#lostLogLines = 0;
    return text;
  }
}

function isSame(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((line, index) => line === right[index]);
}
