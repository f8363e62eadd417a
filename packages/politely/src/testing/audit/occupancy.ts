import type { Entries } from "./entries.js";
import { sorted } from "./timeline.js";

/** Entries that surely hold something at one instant, by number. */
export interface Crowd {
  readonly atUs: number;
  readonly units: number;
  readonly ids: Uint32Array;
}

/** What each entry holds, and until when. */
export interface Holding {
  /** The first instant at which it surely holds nothing any more, by the entry's number; NaN: not known, and it never counts. */
  readonly untilUs: (id: number) => number;
  readonly unitsOf: (id: number) => number;
}

/**
 * The greatest crowd there surely was: those that have started at the latest by some instant and hold on beyond it.
 *
 * What is given back at an instant is free at that instant. Exact where all instants are; with intervals it is sufficient only:
 * starts that may or may not have met are taken not to have. Undefined where nothing holds anything for sure.
 */
export function greatestCrowd(entries: Entries, ids: Uint32Array, { untilUs, unitsOf }: Holding): Crowd | undefined {
  const holding = ids.filter((id) => untilUs(id) > entries.hiOf(id));
  const byStart = sorted(holding, (id) => entries.hiOf(id));
  const byEnd = sorted(holding, untilUs);
  let ended = 0;
  let units = 0;
  let atUs = 0;
  let most = 0;
  for (const id of byStart) {
    const nowUs = entries.hiOf(id);
    while (ended < byEnd.length && untilUs(byEnd[ended]) <= nowUs) {
      units -= unitsOf(byEnd[ended]);
      ended += 1;
    }
    units += unitsOf(id);
    if (units > most) {
      most = units;
      atUs = nowUs;
    }
  }
  if (most === 0) return undefined;
  const there = byStart.filter((id) => entries.hiOf(id) <= atUs && untilUs(id) > atUs);
  return { atUs, units: most, ids: there };
}
