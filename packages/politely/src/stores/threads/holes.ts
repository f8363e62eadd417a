import type { Ring } from "./ring.js";

/** Nothing is written to an abandoned record for so long, since the thread that reserved it may only stand still and go on writing. */
export const QUARANTINE_US = 60_000_000;

interface Hole {
  /** Position of the abandoned record, moved on with each round of the ring. */
  at: number;
  readonly length: number;
  readonly sinceUs: number;
}

/** The abandoned records of the ring that must not be overwritten yet. Kept by each thread for itself. */
export class Holes {
  private holes: Hole[] = [];

  get count(): number {
    return this.holes.length;
  }

  constructor(private readonly ring: Ring) {}

  /** Notes the abandoned record at `at`. One that was there a round ago keeps its age. */
  add(at: number, length: number, nowUs: number): void {
    const before = this.holes.find((hole) => hole.at + this.ring.blockCount === at && hole.length === length);
    if (before === undefined) this.holes.push({ at, length, sinceUs: nowUs });
    else before.at = at;
  }

  /** Forgets those that others have overwritten, now that the head is at `head`. */
  removeBefore(position: number): void {
    if (this.holes.length > 0) this.holes = this.holes.filter(({ at }) => at >= position);
  }

  /** Forgets those that are old enough or free, and says how many blocks the others have. */
  blocksAt(nowUs: number): number {
    if (this.holes.length === 0) return 0;
    this.holes = this.holes.filter(({ at, sinceUs }) => nowUs - sinceUs < QUARANTINE_US && this.ring.isAbandoned(at));
    return this.blocksBefore(Number.POSITIVE_INFINITY);
  }

  /** How many blocks those have that lie before `position`. */
  blocksBefore(position: number): number {
    return this.holes.reduce((sum, { at, length }) => sum + (at < position ? length : 0), 0);
  }

  /** The hole that the head comes to next. */
  next(): Readonly<Hole> | undefined {
    return this.holes.reduce<Hole | undefined>(
      (first, hole) => (first === undefined || hole.at < first.at ? hole : first),
      undefined,
    );
  }

  clear(): void {
    this.holes = [];
  }
}
