import type { WindowRule } from "../core/rule.js";

// A window remembers its starts in a ring of pairs (counted instant, units), oldest first, inside a block of numbers that
// somebody else owns: `memory[at]` is the first word of the block. Four words of heading, then the pairs.

/** Words of a block before its first pair. */
export const WINDOW_HEADING = 4;
const CAPACITY = 0;
const HEAD = 1;
const SIZE = 2;
const USED = 3;

/** Words that a block of `capacity` pairs takes. */
export function windowWords(capacity: number): number {
  return WINDOW_HEADING + 2 * capacity;
}

/** Makes the block at `at` an empty ring of `capacity` pairs, a power of two. */
export function windowClear(memory: Float64Array, at: number, capacity: number): void {
  memory.fill(0, at, at + windowWords(capacity));
  memory[at + CAPACITY] = capacity;
}

/** The instants that starts are counted at: every one, or above 4,096 units the multiples of a 1,024th of the period. */
export function windowGrainUs(count: number, perUs: number): number {
  return count > 4_096 ? Math.ceil(perUs / 1_024) : 1;
}

/** Units inside the window at `nowUs`. What has left it leaves the ring, and lies in the block until its place is needed. */
export function windowUsed(memory: Float64Array, at: number, rule: WindowRule, nowUs: number): number {
  const mask = memory[at + CAPACITY] - 1;
  let head = memory[at + HEAD];
  let size = memory[at + SIZE];
  let used = memory[at + USED];
  while (size > 0) {
    const pair = at + WINDOW_HEADING + 2 * head;
    if (memory[pair] + rule.perUs > nowUs) break;
    used -= memory[pair + 1];
    head = (head + 1) & mask;
    size -= 1;
  }
  memory[at + HEAD] = head;
  memory[at + SIZE] = size;
  memory[at + USED] = used;
  return used;
}

/**
 * Takes back into the ring what has left it and still lies in its block, for a window that looks back further. What the ring has then
 * is the newest part of all that was ever counted in it, however often anybody has looked.
 */
export function windowRecall(memory: Float64Array, at: number): void {
  const capacity = memory[at + CAPACITY];
  let head = memory[at + HEAD];
  let size = memory[at + SIZE];
  let laterUs = size === 0 ? Number.POSITIVE_INFINITY : memory[at + WINDOW_HEADING + 2 * head];
  while (size < capacity) {
    const before = (head + capacity - 1) & (capacity - 1);
    const pair = at + WINDOW_HEADING + 2 * before;
    // Before the oldest lies what was returned last, which is newer, or a place that was never used.
    if (memory[pair] >= laterUs || (memory[pair] === 0 && memory[pair + 1] === 0)) break;
    laterUs = memory[pair];
    memory[at + USED] += memory[pair + 1];
    head = before;
    size += 1;
  }
  memory[at + HEAD] = head;
  memory[at + SIZE] = size;
}

/** The instants that the oldest and the newest pair are counted at; Infinity and minus infinity when there is none. */
export function windowSpan(memory: Float64Array, at: number): { readonly oldestUs: number; readonly newestUs: number } {
  const size = memory[at + SIZE];
  if (size === 0) return { oldestUs: Number.POSITIVE_INFINITY, newestUs: Number.NEGATIVE_INFINITY };
  const head = memory[at + HEAD];
  const last = (head + size - 1) & (memory[at + CAPACITY] - 1);
  return { oldestUs: memory[at + WINDOW_HEADING + 2 * head], newestUs: memory[at + WINDOW_HEADING + 2 * last] };
}

/**
 * When `cost` more units fit beside those in the ring and `pending` ones that have no instant yet (in flight, with `countFrom: "answer"`).
 *
 * At or before `nowUs` means now; Infinity means that only an answer can make room. Walks at most as many pairs as it needs units.
 */
export function windowReadyAt(
  memory: Float64Array,
  at: number,
  rule: WindowRule,
  nowUs: number,
  cost: number,
  pending: number,
): number {
  const used = windowUsed(memory, at, rule, nowUs);
  let excess = used + pending + cost - rule.count;
  if (excess <= 0) return nowUs;
  if (excess > used) return Number.POSITIVE_INFINITY;
  const mask = memory[at + CAPACITY] - 1;
  const head = memory[at + HEAD];
  for (let index = 0; index < memory[at + SIZE]; index++) {
    const pair = at + WINDOW_HEADING + 2 * ((head + index) & mask);
    excess -= memory[pair + 1];
    if (excess <= 0) return memory[pair] + rule.perUs;
  }
  return Number.POSITIVE_INFINITY;
}

/**
 * The instant at which a start at `startUs` is counted: itself, or for a grouped window the end of its grain, so that it
 * leaves late and never early.
 */
export function windowCountedAt(rule: WindowRule, startUs: number): number {
  return rule.grainUs === 1 ? startUs : Math.ceil(startUs / rule.grainUs) * rule.grainUs;
}

/** Adds units counted at `countedUs`; false when the ring is full and must move to a larger block first. Instants before the newest count as the newest. */
export function windowAppend(
  memory: Float64Array,
  at: number,
  rule: WindowRule,
  countedUs: number,
  units: number,
): boolean {
  const capacity = memory[at + CAPACITY];
  const mask = capacity - 1;
  let size = memory[at + SIZE];
  if (size > 0) {
    const newest = at + WINDOW_HEADING + 2 * ((memory[at + HEAD] + size - 1) & mask);
    if (memory[newest] >= countedUs) {
      memory[newest + 1] += units;
      memory[at + USED] += units;
      return true;
    }
  }
  // Recorded starts may exceed the limit. Only the newest `count` units decide, and at most `count` more can be returned
  // unused, so anything older than twice that is forgotten and the ring stays bounded.
  while (size > 0) {
    const oldest = at + WINDOW_HEADING + 2 * memory[at + HEAD];
    if (memory[at + USED] - memory[oldest + 1] < 2 * rule.count) break;
    memory[at + USED] -= memory[oldest + 1];
    memory[at + HEAD] = (memory[at + HEAD] + 1) & mask;
    size -= 1;
    memory[at + SIZE] = size;
  }
  if (size === capacity) return false;
  const pair = at + WINDOW_HEADING + 2 * ((memory[at + HEAD] + size) & mask);
  memory[pair] = countedUs;
  memory[pair + 1] = units;
  memory[at + SIZE] = size + 1;
  memory[at + USED] += units;
  return true;
}

/**
 * Changes the units of a start at `startUs` by `change`, down to none. Does nothing when it has left the window.
 *
 * They are in the first pair at or after the instant it is counted at: that pair itself, or a later one that took it in.
 */
export function windowAdjust(
  memory: Float64Array,
  at: number,
  rule: WindowRule,
  startUs: number,
  change: number,
  nowUs: number,
): void {
  const countedUs = windowCountedAt(rule, startUs);
  if (countedUs + rule.perUs <= nowUs) return;
  const mask = memory[at + CAPACITY] - 1;
  const head = memory[at + HEAD];
  const size = memory[at + SIZE];
  let low = 0;
  let high = size;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (memory[at + WINDOW_HEADING + 2 * ((head + middle) & mask)] < countedUs) low = middle + 1;
    else high = middle;
  }
  if (low === size) return;
  const pair = at + WINDOW_HEADING + 2 * ((head + low) & mask);
  const units = Math.max(0, memory[pair + 1] + change);
  memory[at + USED] += units - memory[pair + 1];
  memory[pair + 1] = units;
  if (units === 0 && low === size - 1) memory[at + SIZE] = low;
}

/** Copies a ring into the larger or emptier block at `to`, leaving out pairs whose units were all returned. Returns the pairs kept. */
export function windowMove(from: Float64Array, at: number, memory: Float64Array, to: number): number {
  const mask = from[at + CAPACITY] - 1;
  const head = from[at + HEAD];
  let kept = 0;
  for (let index = 0; index < from[at + SIZE]; index++) {
    const pair = at + WINDOW_HEADING + 2 * ((head + index) & mask);
    if (from[pair + 1] === 0) continue;
    memory[to + WINDOW_HEADING + 2 * kept] = from[pair];
    memory[to + WINDOW_HEADING + 2 * kept + 1] = from[pair + 1];
    kept += 1;
  }
  memory[to + HEAD] = 0;
  memory[to + SIZE] = kept;
  memory[to + USED] = from[at + USED];
  return kept;
}

/** Pairs the block at `at` has room for. */
export function windowCapacity(memory: Float64Array, at: number): number {
  return memory[at + CAPACITY];
}

/** Pairs with units in them: what a copy would keep. */
export function windowLivePairs(memory: Float64Array, at: number): number {
  const mask = memory[at + CAPACITY] - 1;
  let live = 0;
  for (let index = 0; index < memory[at + SIZE]; index++) {
    if (memory[at + WINDOW_HEADING + 2 * ((memory[at + HEAD] + index) & mask) + 1] > 0) live += 1;
  }
  return live;
}
