import { PassThrough, Readable, Writable } from "node:stream";
import type { Io } from "../../src/io.js";
import type { Ticker } from "../../src/view/ticker.js";

/** An `Io` whose stderr is kept: each write is one entry. */
export function fakeIo(changes: Partial<Io> & { readonly rows?: number } = {}): Io & { readonly writes: string[] } {
  const writes: string[] = [];
  const stderr = new Writable({
    write(chunk: Buffer, _encoding, callback) {
      writes.push(chunk.toString());
      callback();
    },
  });
  const { rows, ...rest } = changes;
  return {
    stdin: Readable.from([]),
    stdout: new PassThrough(),
    stderr: Object.assign(stderr, rows === undefined ? {} : { rows }),
    env: { LANG: "C.UTF-8", NO_COLOR: "1" },
    cwd: "/",
    isTerminal: true,
    columns: 80,
    interrupted: new AbortController().signal,
    stopped: new AbortController().signal,
    ...rest,
    writes,
  };
}

/** Time that passes when it is told to. */
export class FakeTicker implements Ticker {
  #nowMs = 0;
  readonly #tasks = new Set<{ readonly everyMs: number; readonly run: () => void; nextMs: number }>();

  nowMs(): number {
    return this.#nowMs;
  }

  every(ms: number, run: () => void): () => void {
    const task = { everyMs: ms, run, nextMs: this.#nowMs + ms };
    this.#tasks.add(task);
    return () => this.#tasks.delete(task);
  }

  /** How many tasks nobody has ended. */
  get running(): number {
    return this.#tasks.size;
  }

  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const next = [...this.#tasks].sort((left, right) => left.nextMs - right.nextMs)[0];
      if (next === undefined || next.nextMs > untilMs) break;
      this.#nowMs = next.nextMs;
      next.nextMs += next.everyMs;
      next.run();
    }
    this.#nowMs = untilMs;
  }
}
