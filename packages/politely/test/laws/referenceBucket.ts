import type { RateSpec } from "../oracle/spec.js";

/**
 * A bucket in exact fractions, changed while running as the decision record says.
 *
 * What is owed is a number of units, kept as a fraction that is never rounded.
 */
export class ReferenceBucket {
  #rate: RateSpec;
  #owed: Fraction = { over: 0n, under: 1n };
  #seenUs = 0;

  constructor(rate: RateSpec) {
    this.#rate = rate;
  }

  /** Puts other numbers in force: the debt stays, and grows by what the bucket grew by until that is empty, unless nothing is owed. */
  change(rate: RateSpec, nowUs: number): void {
    this.#pay(nowUs);
    if (this.#owed.over > 0n) {
      const grown = plus(this.#owed, BigInt(Math.max(0, rate.burst - this.#rate.burst)));
      const empty = { over: BigInt(rate.burst), under: 1n };
      if (isMore(empty, this.#owed)) this.#owed = isMore(grown, empty) ? empty : grown;
    }
    this.#rate = rate;
  }

  /** The first whole microsecond at which one unit fits. */
  readyAt(nowUs: number): number {
    this.#pay(nowUs);
    const excess = plus(this.#owed, BigInt(1 - this.#rate.burst));
    if (excess.over <= 0n) return nowUs;
    // excess units are paid back at count per perUs; rounded up.
    const over = excess.over * BigInt(this.#rate.perUs);
    const under = excess.under * BigInt(this.#rate.count);
    return nowUs + Number((over + under - 1n) / under);
  }

  /** Takes one unit. */
  take(nowUs: number): void {
    this.#pay(nowUs);
    this.#owed = plus(this.#owed, 1n);
  }

  #pay(nowUs: number): void {
    const paid = BigInt(nowUs - this.#seenUs) * BigInt(this.#rate.count);
    const per = BigInt(this.#rate.perUs);
    const over = this.#owed.over * per - paid * this.#owed.under;
    this.#owed = over <= 0n ? { over: 0n, under: 1n } : { over, under: this.#owed.under * per };
    this.#seenUs = nowUs;
  }
}

interface Fraction {
  readonly over: bigint;
  readonly under: bigint;
}

function isMore(a: Fraction, b: Fraction): boolean {
  return a.over * b.under > b.over * a.under;
}

function plus({ over, under }: Fraction, units: bigint): Fraction {
  return { over: over + units * under, under };
}
