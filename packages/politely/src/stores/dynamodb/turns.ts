import { StoreError } from "../../errors.js";

/** More than this do not wait at once: further ones are refused. */
const maxWaiting = 100_000;

/**
 * Lets tasks that share a name run one after the other, in the order in which they came, and all others at the same time.
 *
 * A process that competed with itself would lose most of its writes to its own.
 */
export class Turns {
  /** The end of the last task of each name. */
  readonly #ends = new Map<string, Promise<void>>();
  #count = 0;

  /** Runs `task` once every task before it that has one of `names` is over. Rejects with what `task` rejects with. */
  async take<Answer>(names: readonly string[], task: () => Promise<Answer>): Promise<Answer> {
    if (this.#count >= maxWaiting) {
      throw new StoreError(`${maxWaiting} changes already wait for DynamoDB. Ask for fewer at a time.`);
    }
    const before = names.flatMap((name) => this.#ends.get(name) ?? []);
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    // All names in one step, so that two tasks never wait for each other.
    for (const name of names) this.#ends.set(name, ended);
    this.#count += 1;
    try {
      if (before.length > 0) await Promise.all(before);
      return await task();
    } finally {
      this.#count -= 1;
      for (const name of names) {
        if (this.#ends.get(name) === ended) this.#ends.delete(name);
      }
      end();
    }
  }
}
