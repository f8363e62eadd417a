import { Heap, type Positioned } from "./heap.js";
import { isLaneBefore, type Lane } from "./lane.js";
import type { Reservation } from "./reservations.js";

/** In place of a row, at a gate that is no key but where one lane stands alone. */
export const NO_ROW = -1;

/** A key that lanes need: who waits for it, and when the first of them may go on. */
export class Gate implements Positioned {
  /** In the heap of gates; -1 while there is nothing to wake up for. */
  position = -1;
  /** When the first parked lane is to be looked at again. */
  readyUs = Number.POSITIVE_INFINITY;
  /** How much later it may be without losing anything. */
  slackUs = 0;
  /** Lanes stopped at this key, in order of their turns. */
  readonly parked = new Heap<Lane>(isLaneBefore);
  /** Every lane that needs this key, wherever it is stopped. */
  readonly lanes = new Set<Lane>();
  /** For whom the key is kept, in order of their turns; undefined while it never was. */
  reservations: Heap<Reservation> | undefined = undefined;
  /** The first of them: the lane that nobody of lower order may pass here. */
  reservedFor: Lane | undefined = undefined;
  /** Requests waiting in those lanes. */
  waiting = 0;

  constructor(readonly slot: number) {}
}

/** The sooner first; of two that are ready at the same instant, the one whose first lane has the better claim. */
export function isGateBefore(a: Gate, b: Gate): boolean {
  if (a.readyUs !== b.readyUs) return a.readyUs < b.readyUs;
  const lane = a.parked.peek();
  const other = b.parked.peek();
  return lane !== undefined && other !== undefined && isLaneBefore(lane, other);
}
