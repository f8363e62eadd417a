import { Heap, type Positioned } from "../engine/heap.js";
import { ONE } from "./cost.js";
import { isLaneBefore, type Lane } from "./lane.js";

/** In place of a row, at a gate that is no key but where one lane stands alone. */
export const NO_ROW = -1;

const NOBODY: Iterable<Gate> = [];

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
  /** Gates whose first lane keeps lighter ones waiting and needs this key, too: what happens here may stop it here instead. */
  #heavies: Set<Gate> | undefined = undefined;
  /** Requests waiting in those lanes. */
  waiting = 0;

  constructor(readonly slot: number) {}

  /** Whether others stand behind a first one that may be heavier than they are. */
  get isHeavy(): boolean {
    return this.parked.size > 1 && this.parked.peek()?.head?.cost !== ONE;
  }

  /** The only lane stopped here, where a lighter one could go before it; else undefined. */
  get loneHeavy(): Lane | undefined {
    const lane = this.parked.size === 1 ? this.parked.peek() : undefined;
    return lane?.head?.cost === ONE ? undefined : lane;
  }

  /** Asks the other keys of the first lane, where that is a heavy one, to tell when something happens to them. */
  watchHeavy(): void {
    if (!this.isHeavy) return;
    for (const other of this.parked.peek()?.gates ?? []) {
      if (other === this) continue;
      other.#heavies ??= new Set();
      other.#heavies.add(this);
    }
  }

  /** Those who asked this one. They ask again while they want to know. */
  takeHeavies(): Iterable<Gate> {
    const heavies = this.#heavies;
    this.#heavies = undefined;
    return heavies ?? NOBODY;
  }
}

/** A key of the lane where another one stands before it; undefined when it is its turn at all of them. */
export function gateAhead(lane: Lane): Gate | undefined {
  if (lane.gates.length === 1) return undefined;
  return lane.gates.find(({ parked }) => {
    const first = parked.peek();
    return first !== undefined && first !== lane && isLaneBefore(first, lane);
  });
}

/** The sooner first; of two that are ready at the same instant, the one whose first lane has the better claim. */
export function isGateBefore(a: Gate, b: Gate): boolean {
  if (a.readyUs !== b.readyUs) return a.readyUs < b.readyUs;
  const lane = a.parked.peek();
  const other = b.parked.peek();
  return lane !== undefined && other !== undefined && isLaneBefore(lane, other);
}
