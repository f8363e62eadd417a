import { type Slab, UNITS } from "./slab.js";

/** A start, as far as it is needed to find out what came after it. */
export interface TiedStart {
  readonly slot: number;
  readonly startedUs: number;
  /** Units ever taken from the row, this start included, modulo 2^32. */
  readonly unitsAfter: number;
}

interface Cut {
  /** Undefined when it was not said. */
  readonly atUs: number | undefined;
  readonly units: number;
}

/**
 * What ties an open start to its row: how much was taken there after it, and whether the row has forgotten it since.
 *
 * Cuts are rare and lie beside the rows. One goes with the state of its row, which outlives every open start.
 */
export class Ties {
  readonly #cuts = new Map<number, Cut>();

  constructor(readonly slab: Slab) {}

  /** Makes every start of the row so far one from before. Without `atUs` only the next 2^31 units are told from them for certain. */
  cut(slot: number, atUs: number | undefined): void {
    this.#cuts.set(slot, { atUs, units: this.#units(slot) });
  }

  forget(slot: number): void {
    this.#cuts.delete(slot);
  }

  /** Units taken from its row after that start; Infinity when it is from before a cut. */
  unitsSince(start: TiedStart): number {
    const cut = this.#cuts.size === 0 ? undefined : this.#cuts.get(start.slot);
    if (cut !== undefined && isBefore(start, cut)) return Number.POSITIVE_INFINITY;
    return (this.#units(start.slot) - start.unitsAfter) >>> 0;
  }

  #units(slot: number): number {
    return this.slab.chunkOf(slot).halves[2 * this.slab.wordOf(slot) + UNITS];
  }
}

function isBefore({ startedUs, unitsAfter }: TiedStart, { atUs, units }: Cut): boolean {
  if (atUs !== undefined && startedUs !== atUs) return startedUs < atUs;
  // Every start takes a unit at least, so the count tells starts of one instant apart.
  return ((units - unitsAfter) | 0) >= 0;
}
