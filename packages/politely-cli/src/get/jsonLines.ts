import type { Writable } from "node:stream";

/**
 * Writes values as lines of JSON, and never waits for whoever reads them. A stream that takes no more is told, so that less is made of what
 * goes there; what comes meanwhile waits in memory.
 */
export class JsonLines {
  #isFull = false;

  /** `turned` hears when the stream takes no more, and when it does again or is gone. */
  constructor(
    readonly stream: Writable,
    readonly turned: (isFull: boolean) => void,
  ) {}

  write(values: readonly object[]): void {
    const text = values.map((value) => `${JSON.stringify(value)}\n`).join("");
    if (this.stream.write(text) || this.#isFull || this.stream.destroyed) return;
    this.#isFull = true;
    const again = (): void => {
      this.stream.off("drain", again);
      this.stream.off("close", again);
      this.#isFull = false;
      this.turned(false);
    };
    this.stream.on("drain", again);
    this.stream.on("close", again);
    this.turned(true);
  }
}
