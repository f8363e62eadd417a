import { ROW, type Slab } from "./slab.js";

const { EPOCH, FLIGHT, FLIGHT_BEFORE } = ROW;

/** How long a generation of permits that are only counted lasts. One that is never released counts as lapsed after one to two of these. */
export const GENERATION_US = 3_600_000_000;

/**
 * Counts permits that no limit needs to follow: this generation's and the one before, per row.
 *
 * A caller that takes permits and never releases them costs no memory, and its count is right again two generations later.
 */
export class LooseFlights {
  #epoch = 0;
  #epochEndUs = GENERATION_US;
  constructor(
    readonly slab: Slab,
    readonly onLapse: (slot: number, count: number) => void,
  ) {}

  /** The generation of `nowUs`, which never goes back. */
  epochAt(nowUs: number): number {
    if (nowUs >= this.#epochEndUs) {
      this.#epoch = Math.floor(nowUs / GENERATION_US);
      this.#epochEndUs = (this.#epoch + 1) * GENERATION_US;
    }
    return this.#epoch;
  }

  begin(slot: number, nowUs: number): void {
    const halves = this.#rolled(slot, nowUs);
    halves[2 * this.slab.wordOf(slot) + FLIGHT] += 1;
  }

  /** Whether one started at `startedUs` still counts as in flight. */
  isOpen(startedUs: number, nowUs: number): boolean {
    return this.epochAt(nowUs) - epochOf(startedUs) <= 1;
  }

  /** Ends an open one. */
  end(slot: number, startedUs: number, nowUs: number): void {
    const halves = this.#rolled(slot, nowUs);
    const isOfBefore = epochOf(startedUs) < this.epochAt(nowUs);
    halves[2 * this.slab.wordOf(slot) + (isOfBefore ? FLIGHT_BEFORE : FLIGHT)] -= 1;
  }

  count(slot: number, nowUs: number): number {
    const halves = this.#rolled(slot, nowUs);
    const half = 2 * this.slab.wordOf(slot);
    return halves[half + FLIGHT] + halves[half + FLIGHT_BEFORE];
  }

  /** When the oldest of them lapses at the latest. */
  lapseAt(nowUs: number): number {
    return (this.epochAt(nowUs) + 1) * GENERATION_US;
  }

  #rolled(slot: number, nowUs: number): Uint32Array {
    const { halves } = this.slab.chunkOf(slot);
    const half = 2 * this.slab.wordOf(slot);
    const epoch = this.epochAt(nowUs);
    const generations = epoch - halves[half + EPOCH];
    if (generations === 0) return halves;
    const lapsed = halves[half + FLIGHT_BEFORE] + (generations > 1 ? halves[half + FLIGHT] : 0);
    halves[half + FLIGHT_BEFORE] = generations > 1 ? 0 : halves[half + FLIGHT];
    halves[half + FLIGHT] = 0;
    halves[half + EPOCH] = epoch;
    if (lapsed > 0) this.onLapse(slot, lapsed);
    return halves;
  }
}

/** Instants before 0, as a clock may have, belong to the first generation. */
function epochOf(us: number): number {
  return Math.max(0, Math.floor(us / GENERATION_US));
}
