/** Keys of which askers are remembered; beyond it those at rest are forgotten. */
const KEYS_MOST = 10_000;

/** The askers of one key: those at rest, and how many are at work. */
interface Askers {
  readonly free: number[];
  busy: number;
}

/**
 * Numbers the askers of a process: one for each operation on the way, the same again and again for each key.
 *
 * A store remembers the last answer to each asker of a key. Few askers per key keep that short.
 */
export class AskerNumbers {
  readonly #byKey = new Map<string, Askers>();
  #last = 0;

  /** A number that no other operation on the way has. */
  take(key: string): number {
    let askers = this.#byKey.get(key);
    if (askers === undefined) {
      if (this.#byKey.size >= KEYS_MOST) this.#forgetIdle();
      askers = { free: [], busy: 0 };
      this.#byKey.set(key, askers);
    }
    askers.busy += 1;
    return askers.free.pop() ?? this.#last++;
  }

  /** The operation is over. */
  give(key: string, asker: number): void {
    const askers = this.#byKey.get(key);
    if (askers === undefined) return;
    askers.busy -= 1;
    askers.free.push(asker);
  }

  #forgetIdle(): void {
    for (const [key, { busy }] of this.#byKey) if (busy === 0) this.#byKey.delete(key);
  }
}
