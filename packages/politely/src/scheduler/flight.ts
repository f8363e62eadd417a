import { ROW, type Slab } from "./slab.js";

const { EPOCH, FLIGHT, FLIGHT_BEFORE } = ROW;

/** How long a generation of permits that are only counted lasts. One that is never released counts as lapsed after one to two of these. */
export const GENERATION_US = 3_600_000_000;

/** A place held by one permit at one key that follows its permits. */
export interface Hold {
  /** Another one than it was taken from, once that row has become part of another. */
  slot: number;
  readonly startedUs: number;
  /** Whose place it is, for people: the host, or the scope's name. */
  label: string;
  /** It is the place at the host's own key, which the host's books count. */
  isHost: boolean;
  /** Units in the windows. */
  units: number;
  /** Whether the windows have them already; if not they are logged at the answer. */
  isLogged: boolean;
  isLive: boolean;
  /** It ended by itself. */
  isLapsed: boolean;
  /** What its permit took, this included. */
  parts: readonly { readonly hold: Hold | undefined }[];
  previous: Hold | undefined;
  next: Hold | undefined;
}

const NO_PARTS: Hold["parts"] = [];

/** The places held at one key, oldest first. */
export class Holds {
  count = 0;
  /** Units in flight that no window has logged yet. */
  pendingUnits = 0;
  first: Hold | undefined;
  last: Hold | undefined;
  /** The newest answer, from which a gap counts with `countFrom: "answer"`. */
  answeredUs = Number.NEGATIVE_INFINITY;

  add(slot: number, startedUs: number, units: number, isLogged: boolean): Hold {
    const hold: Hold = {
      slot,
      startedUs,
      label: "",
      isHost: false,
      units,
      isLogged,
      isLive: true,
      isLapsed: false,
      parts: NO_PARTS,
      previous: this.last,
      next: undefined,
    };
    if (this.last === undefined) this.first = hold;
    else this.last.next = hold;
    this.last = hold;
    this.count += 1;
    if (!isLogged) this.pendingUnits += units;
    return hold;
  }

  remove(hold: Hold): void {
    if (hold.previous === undefined) this.first = hold.next;
    else hold.previous.next = hold.next;
    if (hold.next === undefined) this.last = hold.previous;
    else hold.next.previous = hold.previous;
    hold.previous = undefined;
    hold.next = undefined;
    hold.isLive = false;
    this.count -= 1;
    if (!hold.isLogged) this.pendingUnits -= hold.units;
  }
}

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
