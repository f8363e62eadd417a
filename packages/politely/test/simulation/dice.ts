/** Numbers from one seed: the same seed gives the same numbers, on every machine. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
    // Seeds next to each other have nothing in common after this.
    for (let round = 0; round < 3; round++) this.next();
  }

  /** From 0 up to but not including 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    const state = this.#state;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[this.whole(0, values.length - 1)];
  }

  /** Other dice, so that what is drawn there moves nothing here. */
  apart(): Dice {
    return new Dice(Math.floor(this.next() * 2 ** 32));
  }
}
