/** The requests that are to be sent again, each from its first failure until it is over. */
export class Repeating {
  readonly #keys = new Map<object, string>();
  #waiting: (() => void)[] = [];

  /** Counts a request of that key, until `end`. Once is enough. */
  begin(request: object, key: string): void {
    this.#keys.set(request, key);
  }

  /** Does nothing for a request that never began. */
  end(request: object): void {
    if (!this.#keys.delete(request)) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Undefined when there is none, at one key or at all; else resolves when the next of them is over. */
  nextEnd(key: string | undefined): Promise<void> | undefined {
    const isNone = key === undefined ? this.#keys.size === 0 : ![...this.#keys.values()].includes(key);
    if (isNone) return undefined;
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }
}
