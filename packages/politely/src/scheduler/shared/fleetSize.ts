import { MEMBER_US } from "../../shared/take.js";

/**
 * How many processes share a store, by the most that were heard of at any key lately: in the five minutes before the last answer, and in up to five more.
 *
 * No time passes while nobody answers: what was known when a store went away is known until it is back.
 */
export class FleetSize {
  #sinceUs = Number.NEGATIVE_INFINITY;
  #now = 0;
  #before = 0;

  /** The most heard of lately; 0 when nobody has ever said. */
  get most(): number {
    return Math.max(this.#now, this.#before);
  }

  /** Hears that so many share a key, at this instant of this process's clock. */
  hear(count: number, nowUs: number): void {
    const ageUs = nowUs - this.#sinceUs;
    if (ageUs >= MEMBER_US) {
      this.#before = ageUs < 2 * MEMBER_US ? this.#now : 0;
      this.#now = 0;
      this.#sinceUs = nowUs;
    }
    this.#now = Math.max(this.#now, count);
  }
}
