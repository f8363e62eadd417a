import type { LimitKind } from "../observe/types.js";
import type { Cost } from "./cost.js";
import { LooseFlights } from "./flight.js";
import { type Profile, Profiles, sharedProfileOf } from "./profile.js";
import { HAS_PAUSE, HAS_SLOWDOWN, layoutFor, ROW, Slab } from "./slab.js";
import { Slowdowns } from "./slowdowns.js";
import { Ties } from "./ties.js";

const { LAST_US, UNITS } = ROW;

/** Units since a start whose ties to its row are cut: nothing of it is left to give back. */
export const FORGOTTEN_UNITS = Number.POSITIVE_INFINITY;

/** What a start took from one key, as far as it is needed to give it back. */
export interface Taken {
  readonly slot: number;
  readonly startedUs: number;
  /** The start before; minus Infinity when there was none. */
  readonly previousUs: number;
  /** Units ever taken at this key, this start included. */
  readonly unitsAfter: number;
  readonly cost: Cost;
}

/** What this process knows of each key while the store has its limits: pauses of hosts without limits, what headers, robots.txt and answers ask for, and who is in flight. */
export class Ledger {
  readonly slab: Slab;
  readonly loose: LooseFlights;
  readonly pauses = new Map<number, number>();
  readonly slowdowns: Slowdowns;
  readonly ties: Ties;
  readonly profiles = new Profiles(sharedProfileOf);
  /** What the last `readyAt` found most binding. */
  binding: LimitKind | undefined;

  constructor(hasStats: boolean, onLapse: (slot: number, count: number) => void) {
    this.slab = new Slab(layoutFor(0, false, hasStats));
    this.slowdowns = new Slowdowns(this.slab);
    this.ties = new Ties(this.slab);
    this.loose = new LooseFlights(this.slab, onLapse);
  }

  profileOf(slot: number): Profile {
    return this.profiles.at(this.slab.profileNumber(slot));
  }

  /** When nothing in this process stands in the way of a start; at or before `nowUs` means now. Sets `binding`. */
  readyAt(slot: number, nowUs: number): number {
    let at = nowUs;
    this.binding = undefined;
    if (this.slab.hasFlag(slot, HAS_PAUSE)) at = this.#later(at, this.#pauseAt(slot, nowUs), "pause");
    if (this.profileOf(slot).isOff || !this.slab.hasFlag(slot, HAS_SLOWDOWN)) return at;
    const causes = this.slowdowns.causes(slot, this.lastUs(slot), nowUs);
    for (const { source, atUs } of causes) at = this.#later(at, atUs, source);
    return at;
  }

  #later(at: number, candidate: number, kind: LimitKind): number {
    if (candidate <= at) return at;
    this.binding = kind;
    return candidate;
  }

  /** When the key's pause ends. One that is over is forgotten. */
  #pauseAt(slot: number, nowUs: number): number {
    const untilUs = this.pauses.get(slot) ?? nowUs;
    if (untilUs <= nowUs) this.setPause(slot, undefined);
    return untilUs;
  }

  inFlight(slot: number, nowUs: number): number {
    return this.loose.count(slot, nowUs);
  }

  lastUs(slot: number): number {
    return this.slab.chunkOf(slot).words[this.slab.wordOf(slot) + LAST_US];
  }

  /** Counts a start that is granted now. */
  take(slot: number, cost: Cost, nowUs: number): Taken {
    const previousUs = this.lastUs(slot);
    this.record(slot, cost, nowUs);
    this.loose.begin(slot, nowUs);
    const unitsAfter = this.slab.chunkOf(slot).halves[2 * this.slab.wordOf(slot) + UNITS];
    return { slot, startedUs: nowUs, previousUs, unitsAfter, cost };
  }

  /** Counts a start that has been made and answered without asking. */
  record(slot: number, cost: Cost, startedUs: number): void {
    const { words, halves } = this.slab.chunkOf(slot);
    const word = this.slab.wordOf(slot);
    if (startedUs > words[word + LAST_US]) words[word + LAST_US] = startedUs;
    halves[2 * word + UNITS] += cost.rate;
  }

  /** Whether the start still counts as in flight. If not, its row may be another key's by now. */
  isOpen(taken: Taken, nowUs: number): boolean {
    return this.loose.isOpen(taken.startedUs, nowUs);
  }

  /** An open start was never sent: where none came after it, gaps run from the one before. */
  giveBack(taken: Taken): void {
    const { words } = this.slab.chunkOf(taken.slot);
    if (this.ties.unitsSince(taken) === 0) words[this.slab.wordOf(taken.slot) + LAST_US] = taken.previousUs;
  }

  /** Units taken from the row after that start; `FORGOTTEN_UNITS` when its ties are cut, 0 when the row is another by now. */
  unitsSince(taken: Taken, slot: number): number {
    return taken.slot === slot ? this.ties.unitsSince(taken) : 0;
  }

  /** Whether the key is in no way different from a new one. */
  isFresh(slot: number, nowUs: number): boolean {
    if (this.slab.hasFlag(slot, HAS_PAUSE) && this.#pauseAt(slot, nowUs) > nowUs) return false;
    if (this.slowdowns.isOwed(slot, this.lastUs(slot), nowUs)) return false;
    return this.inFlight(slot, nowUs) === 0;
  }

  /** Drops everything a fresh key does not need, but its row. */
  forget(slot: number): void {
    this.slowdowns.forget(slot);
    this.ties.forget(slot);
  }

  setPause(slot: number, untilUs: number | undefined): void {
    if (untilUs === undefined) this.pauses.delete(slot);
    else this.pauses.set(slot, untilUs);
    this.slab.setFlag(slot, HAS_PAUSE, untilUs !== undefined);
  }
}
