/** Numbers that look random and are the same each time. */
export class Dice {
  #state = 20_260_101;

  /** A whole number from 0 and below `end`. */
  below(end: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * end);
  }
}
