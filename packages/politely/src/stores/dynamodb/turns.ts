import { StoreError } from "../../errors.js";

/** More than this do not wait at once: further ones are refused. */
const maxWaiting = 100_000;
/** A task that takes longer keeps nobody waiting any more: its connection may have died unnoticed. In milliseconds. */
const turnMs = 1_000;

/**
 * Lets tasks that share a name run one after the other, in the order in which they came, and all others at the same time.
 *
 * A process that competed with itself would lose most of its writes to its own. A turn is over after a second, though the task goes on.
 */
export class Turns {
  /** The end of the last turn of each name. */
  readonly #ends = new Map<string, Promise<void>>();
  #count = 0;
  readonly #turnMs: number;

  /** `mostMs` is how long a turn takes at most. Default 1,000. */
  constructor({ mostMs = turnMs }: { readonly mostMs?: number } = {}) {
    this.#turnMs = mostMs;
  }

  /** Runs `task` once the turn of every task before it that has one of `names` is over. Rejects with what `task` rejects with. */
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
    const passOn = (): void => {
      for (const name of names) {
        if (this.#ends.get(name) === ended) this.#ends.delete(name);
      }
      end();
    };
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      if (before.length > 0) await Promise.all(before);
      timer = setTimeout(passOn, this.#turnMs);
      return await task();
    } finally {
      clearTimeout(timer);
      this.#count -= 1;
      passOn();
    }
  }
}
