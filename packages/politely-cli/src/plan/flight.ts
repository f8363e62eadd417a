import type { Limits, Permit } from "politely";
import { durationMs } from "../policy/rateParts.js";

/** When the library takes back a place by itself, if the policy does not say. */
const MAX_HOLD_MS = 600_000;

/** Whether some limits need to know when an answer came. */
export function isFollowed({ enabled, concurrency, countFrom }: Limits): boolean {
  return enabled !== false && (concurrency !== undefined || countFrom === "answer");
}

/**
 * Whether under these limits every start of a host comes equally long after the one before, if it waits for nothing else.
 *
 * So it is with a gap, and with a bucket that holds one unit: it is empty after each start, whenever that was.
 */
export function isEven({ rate, burst, minDelay, window, quota, concurrency, countFrom, adaptive }: Limits): boolean {
  const others = [window, quota, concurrency, countFrom, adaptive];
  return (
    (rate !== undefined || minDelay !== undefined) && (burst ?? 1) === 1 && others.every((limit) => limit === undefined)
  );
}

/** How long a request keeps its place under some limits, in microseconds: until its answer, at most `maxHold`. */
export function takesUs({ maxHold }: Limits, latencyMs: number): number {
  const holdMs = maxHold === undefined ? MAX_HOLD_MS : durationMs(maxHold);
  return Math.round(Math.min(latencyMs, holdMs) * 1000);
}

/** Requests under way that all take the same time: the first to start is the first to be answered. */
export class Flight {
  #permits: Permit[] = [];
  #landsUs: number[] = [];
  #items: number[] = [];
  #first = 0;

  constructor(readonly takesUs: number) {}

  /** When the next answer comes; Infinity when none is due. */
  get nextUs(): number {
    return this.#landsUs[this.#first] ?? Number.POSITIVE_INFINITY;
  }

  /** `item` is what `onLanded` is told. */
  add(permit: Permit, item: number, nowUs: number): void {
    this.#permits.push(permit);
    this.#landsUs.push(nowUs + this.takesUs);
    this.#items.push(item);
  }

  /** Gives back the places of those that are answered by `nowUs`. */
  land(nowUs: number, onLanded?: (item: number) => void): void {
    while (this.nextUs <= nowUs) {
      this.#permits[this.#first].release("success");
      const item = this.#items[this.#first];
      this.#first += 1;
      onLanded?.(item);
    }
    if (this.#first < 1024 || 2 * this.#first < this.#items.length) return;
    this.#permits = this.#permits.slice(this.#first);
    this.#landsUs = this.#landsUs.slice(this.#first);
    this.#items = this.#items.slice(this.#first);
    this.#first = 0;
  }
}
