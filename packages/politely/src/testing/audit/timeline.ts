import type { Entries } from "./entries.js";
import { orderBy } from "./numbers.js";

/** The starts of one key by time, in columns. What was never sent is not among them. */
export interface Timeline {
  readonly length: number;
  readonly ids: Uint32Array;
  /** The earliest and the latest each can have started, in whole microseconds. Neither ever falls. */
  readonly lo: Float64Array;
  readonly hi: Float64Array;
}

/**
 * Sorts the starts among `all`, and leaves out every one whose interval reaches around another's.
 *
 * Then both ends of the intervals are in one order, and so, by exchanging two starts, is some best choice of times: looking at
 * the starts in this order is exact. Leaving out a start can only hide a violation, never make one. Logs with stamps of one
 * precision lose nothing.
 */
export function timelineOf(entries: Entries, all: Uint32Array): Timeline {
  const sent = all.filter((id) => !entries.isUnused(id));
  const byHi = sorted(sent, (id) => entries.hiOf(id));
  const byLo = sorted(byHi, (id) => entries.loOf(id));
  const kept = new Uint32Array(byLo.length);
  let first = byLo.length;
  let soonestHi = Number.POSITIVE_INFINITY;
  for (let index = byLo.length - 1; index >= 0; index--) {
    const id = byLo[index];
    const hi = entries.hiOf(id);
    if (hi > soonestHi) continue;
    soonestHi = hi;
    first -= 1;
    kept[first] = id;
  }
  const ids = kept.subarray(first);
  return {
    length: ids.length,
    ids,
    lo: columnOf(ids, (id) => entries.loOf(id)),
    hi: columnOf(ids, (id) => entries.hiOf(id)),
  };
}

/** The same numbers, by what `keyOf` gives for each; those with the same key keep their order. */
export function sorted(ids: Uint32Array, keyOf: (id: number) => number): Uint32Array {
  const order = orderBy(columnOf(ids, keyOf));
  for (let index = 0; index < order.length; index++) order[index] = ids[order[index]];
  return order;
}

// A plain loop: `Float64Array.from` takes ten times as long.
function columnOf(ids: Uint32Array, keyOf: (id: number) => number): Float64Array {
  const column = new Float64Array(ids.length);
  for (let index = 0; index < column.length; index++) column[index] = keyOf(ids[index]);
  return column;
}
