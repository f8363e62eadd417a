/** Requests that come to the limiter again although nothing of them may be there at the moment: to be repeated, or once robots.txt is read. */
export class Underway {
  readonly #keys = new Map<object, string>();
  #waiting: (() => void)[] = [];

  begin(request: object, key: string): void {
    this.#keys.set(request, key);
  }

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
