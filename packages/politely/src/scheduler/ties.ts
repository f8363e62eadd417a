import { ROW, type Slab } from "./slab.js";

const { UNITS } = ROW;

/** A start, as far as it is needed to find out what came after it. */
export interface TiedStart {
  readonly slot: number;
  readonly startedUs: number;
  /** Units ever taken from the row, this start included, modulo 2^32. */
  readonly unitsAfter: number;
}

interface Cut {
  readonly atUs: number;
  readonly units: number;
  /** Quotas were forgiven, too. */
  readonly isWhole: boolean;
}

/**
 * What ties an open start to its row: how much was taken there after it, and whether the row has forgotten it since.
 *
 * Cuts are rare and lie beside the rows. One goes with the state of its row, which outlives every open start.
 */
export class Ties {
  readonly #cuts = new Map<number, Cut>();

  constructor(readonly slab: Slab) {}

  /** Makes every start of the row up to `atUs`, which is now, one from before: what it took can no longer be returned; with `isWhole`, to a quota neither. */
  cut(slot: number, atUs: number, isWhole = false): void {
    this.#cuts.set(slot, { atUs, units: this.#units(slot), isWhole: isWhole || this.hasForgiven(slot) });
  }

  /** Whether quotas were forgiven to some of the row's starts. */
  hasForgiven(slot: number): boolean {
    return this.#cuts.get(slot)?.isWhole === true;
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

  /** Whether what that start took of a quota is forgiven at `row`, where it counts by now. */
  isForgiven(start: TiedStart, row: number): boolean {
    const cut = this.#cuts.size === 0 ? undefined : this.#cuts.get(row);
    if (cut?.isWhole !== true) return false;
    // One of a row that has become part of this one is from before all of its own.
    return row === start.slot ? isBefore(start, cut) : start.startedUs <= cut.atUs;
  }

  #units(slot: number): number {
    return this.slab.chunkOf(slot).halves[2 * this.slab.wordOf(slot) + UNITS];
  }
}

function isBefore({ startedUs, unitsAfter }: TiedStart, { atUs, units }: Cut): boolean {
  if (startedUs !== atUs) return startedUs < atUs;
  // Every start takes a unit at least, so the count tells starts of one instant apart.
  return ((units - unitsAfter) | 0) >= 0;
}
