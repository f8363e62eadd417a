import type { Io } from "../io.js";

const FIRST_AFTER_MS = 2_000;
const AGAIN_AFTER_MS = 200;

/** One line on the terminal that is written over again. It shows up after two seconds, and never where nobody watches. */
export class ProgressLine {
  readonly #beganMs: number;
  #shownMs = Number.NEGATIVE_INFINITY;

  /** `now` is a clock in milliseconds. */
  constructor(
    readonly io: Pick<Io, "stderr" | "isTerminal" | "columns">,
    readonly now: () => number = () => performance.now(),
  ) {
    this.#beganMs = now();
  }

  show(text: string): void {
    const nowMs = this.now();
    if (!this.io.isTerminal || nowMs - this.#beganMs < FIRST_AFTER_MS) return;
    if (nowMs - this.#shownMs < AGAIN_AFTER_MS) return;
    this.#shownMs = nowMs;
    this.io.stderr.write(`\r\u001b[K${text.slice(0, Math.max(1, this.io.columns - 1))}`);
  }

  /** Takes the line away. */
  clear(): void {
    if (this.#shownMs > Number.NEGATIVE_INFINITY) this.io.stderr.write("\r\u001b[K");
  }
}
