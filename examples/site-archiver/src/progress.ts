import type { WriteStream } from "node:tty";

const REDRAW_MS = 100;

/** Shows `n/total` and how long the next page still waits: counting down in a terminal, a line each elsewhere. */
export class Progress {
  #current = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    readonly total: number,
    readonly out: WriteStream,
  ) {}

  /** The next page is asked for, and will wait `waitMs`. */
  begin(path: string, waitMs: number): void {
    this.#current += 1;
    const untilMs = performance.now() + waitMs;
    const draw = (): void => {
      const leftMs = Math.max(0, untilMs - performance.now());
      this.out.write(`\r\u001b[K${this.#label(path)}${leftMs > 0 ? `waiting ${seconds(leftMs)}` : "fetching"}`);
    };
    if (this.out.isTTY) {
      draw();
      this.#timer = setInterval(draw, REDRAW_MS);
    } else if (waitMs > 0) {
      this.out.write(`${this.#label(path)}waiting ${seconds(waitMs)}\n`);
    }
  }

  /** The page that was begun is done, and this is how it went. */
  end(path: string, text: string): void {
    clearInterval(this.#timer);
    this.out.write(`${this.out.isTTY ? "\r\u001b[K" : ""}${this.#label(path)}${text}\n`);
  }

  #label(path: string): string {
    return `${this.#current}/${this.total}  ${path}  `;
  }
}

/** A time for people: `1.7 s`. */
export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
