import { type Ahead, type Cost, type Key, ROW, type Tell } from "../key.js";
import type { Rule, WindowRule } from "../rule.js";
import { isAnswerDue } from "./gap.js";

// A key's log is one ring of starts, oldest first, that serves all its windows of up to 4,096 units. A larger window has a coarse ring
// of its own, where starts lie on multiples of a grain. Each start stands there as a pair: its instant, and the units of all starts up
// to it, so that a window of any length finds what it holds by halving, and nothing is kept for each window. Rings lie in the key's
// log space, chained from the block's LOG. Starts are numbered; number n lies at place n modulo the capacity. What has left a window
// stays until its place is needed, so that a longer window finds it.

const { LOG } = ROW;
/** Words of the heading. */
const HEADING = 10;
const CAPACITY = 0;
/** The numbers of the oldest start known, and of the next one to come. */
const BEGIN = 1;
const END = 2;
/** Units of the starts that are not known any more. */
const BASE = 3;
const GRAIN = 4;
const NEXT = 5;
/** The longest period and the largest count that the ring ever served: so far back it remembers. */
const SPAN = 6;
const MOST = 7;
/** Starts up to `OLD_UNTIL` lie where an earlier, coarser ring had them. */
const OLD_GRAIN = 8;
const OLD_UNTIL = 9;

/** Above so many units a window has a coarse ring. */
const EXACT_MOST = 4_096;

/** A start as logs know it. */
export interface LoggedStart {
  readonly atUs: number;
  readonly units: number;
}

/** The grain of a window: 1 up to 4,096 units, else a 1,024th of its period. */
export function windowGrainUs(count: number, perUs: number): number {
  return count > EXACT_MOST ? Math.ceil(perUs / 1_024) : 1;
}

/** Every interval of length `perUs` holds at most `count` units. A coarse window is never over and late by at most one grain. */
export function windowReadyAt(
  key: Key,
  rule: Rule,
  index: number,
  cost: Cost,
  ahead: Ahead,
  nowUs: number,
  tell?: Tell,
): number {
  const window = rule.windows[index];
  // Those ahead fill whole windows one after the other; the rest has to fit beside what is logged.
  const before = cost.window + ahead.units.window - 1;
  const laterUs = Math.floor(before / window.count) * window.perUs;
  const freeUs = freeAt(key, window, (before % window.count) + 1, pendingUnits(key, rule), nowUs);
  const first = key.rest?.places?.first;
  const isLapse = freeUs === Number.POSITIVE_INFINITY && first !== undefined;
  const latestUs = isLapse ? first.startedUs + rule.maxHoldUs + window.perUs : freeUs;
  const atUs = laterUs === 0 ? latestUs : Math.max(latestUs, nowUs) + laterUs;
  if (tell === undefined || atUs <= nowUs) return atUs;
  const isAwaited = latestUs > nowUs && isAnswerDue(key, rule);
  const earliestUs = isAwaited ? Math.max(nowUs, Math.min(latestUs, nowUs + window.perUs)) + laterUs : atUs;
  tell({ limit: "window", atUs: earliestUs, isAwaited, latestUs, words: `window ${rule.text.windows[index]}` });
  return atUs;
}

/** Units inside a window now, those in flight included where they are counted from their answers. */
export function windowUsed(key: Key, rule: Rule, { grainUs, perUs }: WindowRule, nowUs: number): number {
  const ring = ringOf(key, grainUs);
  const { memory } = key.logs;
  const logged =
    ring === 0 ? 0 : total(memory, ring) - sumBefore(memory, ring, firstAfter(memory, ring, nowUs - perUs));
  return pendingUnits(key, rule) + logged;
}

/** When the oldest start leaves a window; minus Infinity when it holds none. */
export function oldestLeavesUs(key: Key, { grainUs, perUs }: WindowRule, nowUs: number): number {
  const ring = ringOf(key, grainUs);
  const { memory } = key.logs;
  if (ring === 0) return Number.NEGATIVE_INFINITY;
  const gone = sumBefore(memory, ring, firstAfter(memory, ring, nowUs - perUs));
  const oldest = firstOver(memory, ring, gone);
  return oldest === memory[ring + END] ? Number.NEGATIVE_INFINITY : memory[pairOf(memory, ring, oldest)] + perUs;
}

/** Logs a start in every ring of the key, and in those its windows need. */
export function windowTake(key: Key, rule: Rule, atUs: number, units: number, nowUs: number): void {
  if (units === 0) return;
  for (const { grainUs } of rule.windows) if (ringOf(key, grainUs) === 0) addRing(key, rule, grainUs);
  for (let before = 0, ring = firstRing(key); ring !== 0; ring = key.logs.memory[ring + NEXT]) {
    ring = log(key, before, ring, atUs, units, nowUs);
    before = ring;
  }
}

/** Changes the units of a start that was logged, down to none; nothing where it is not known any more. */
export function windowGiveBack(key: Key, startedUs: number, units: number): void {
  const { memory } = key.logs;
  for (let ring = firstRing(key); ring !== 0; ring = memory[ring + NEXT]) {
    const isOld = startedUs <= memory[ring + OLD_UNTIL];
    const lyingUs = ceilTo(isOld ? ceilTo(startedUs, memory[ring + OLD_GRAIN]) : startedUs, memory[ring + GRAIN]);
    const number = firstAfter(memory, ring, lyingUs) - 1;
    if (number < memory[ring + BEGIN] || memory[pairOf(memory, ring, number)] !== lyingUs) continue;
    const lying = memory[pairOf(memory, ring, number) + 1] - sumBefore(memory, ring, number);
    addUnits(memory, ring, number, -Math.min(units, lying));
    if (units >= lying && number === memory[ring + END] - 1) memory[ring + END] = number;
  }
}

/** When the newest start of the key leaves the longest window its log ever served. */
export function windowOwesUntil(key: Key): number {
  const { memory } = key.logs;
  let untilUs = Number.NEGATIVE_INFINITY;
  for (let ring = firstRing(key); ring !== 0; ring = memory[ring + NEXT]) {
    const newest = memory[ring + END] - 1;
    if (newest < memory[ring + BEGIN]) continue;
    untilUs = Math.max(untilUs, memory[pairOf(memory, ring, newest)] + memory[ring + SPAN]);
  }
  return untilUs;
}

/** Forgets every start. */
export function windowForget(key: Key): void {
  const { memory } = key.logs;
  for (let ring = firstRing(key); ring !== 0; ) {
    const next = memory[ring + NEXT];
    key.logs.release(ring, wordsOf(memory[ring + CAPACITY]));
    ring = next;
  }
  key.halves[2 * key.at + LOG] = 0;
}

/** All starts the key's log knows, oldest first. Those that only a coarse ring knows stand at the end of their grain. */
export function loggedStarts(key: Key): LoggedStart[] {
  const { memory } = key.logs;
  const starts: LoggedStart[] = [];
  for (let ring = firstRing(key); ring !== 0; ring = memory[ring + NEXT]) {
    const grainUs = memory[ring + GRAIN];
    const finer = [...starts];
    for (let number = memory[ring + BEGIN]; number < memory[ring + END]; number++) {
      const atUs = memory[pairOf(memory, ring, number)];
      const known = finer.reduce(
        (sum, start) => sum + (start.atUs > atUs - grainUs && start.atUs <= atUs ? start.units : 0),
        0,
      );
      const units = memory[pairOf(memory, ring, number) + 1] - sumBefore(memory, ring, number) - known;
      if (units > 0) starts.push({ atUs, units });
    }
  }
  return starts.sort((a, b) => a.atUs - b.atUs);
}

/** Makes the rings that the windows of `rule` need, of what the rings so far know, and logs `more`. Without a window the log stays as it is. */
export function windowAdopt(key: Key, rule: Rule, more: readonly LoggedStart[], nowUs: number): void {
  const { logs } = key;
  const grains = new Set(rule.windows.map(({ grainUs }) => grainUs));
  const isSame = Array.from(grains).every((grainUs) => ringOf(key, grainUs) !== 0);
  const starts = isSame || grains.size === 0 ? more : [...loggedStarts(key), ...more].sort((a, b) => a.atUs - b.atUs);
  if (starts !== more) {
    const old = oldLying(key, starts.at(-1)?.atUs ?? nowUs);
    windowForget(key);
    for (const grainUs of grains) {
      const ring = addRing(key, rule, grainUs);
      logs.memory.set([old.spanUs, old.most], ring + SPAN);
      logs.memory.set([old.grainUs, old.untilUs], ring + OLD_GRAIN);
    }
  }
  for (let ring = firstRing(key); ring !== 0; ring = logs.memory[ring + NEXT]) serve(logs.memory, ring, rule);
  for (const { atUs, units } of starts) windowTake(key, rule, atUs, units, nowUs);
}

/** How coarsely the rings of a key have their starts, and how far back they remember. */
function oldLying(key: Key, newestUs: number): { grainUs: number; untilUs: number; spanUs: number; most: number } {
  const { memory } = key.logs;
  const old = { grainUs: 1, untilUs: Number.NEGATIVE_INFINITY, spanUs: 0, most: 0 };
  let exactFromUs = newestUs + 1;
  for (let ring = firstRing(key); ring !== 0; ring = memory[ring + NEXT]) {
    old.spanUs = Math.max(old.spanUs, memory[ring + SPAN]);
    old.most = Math.max(old.most, memory[ring + MOST]);
    if (memory[ring + GRAIN] > 1) Object.assign(old, { grainUs: memory[ring + GRAIN], untilUs: exactFromUs - 1 });
    else {
      if (memory[ring + END] > memory[ring + BEGIN]) exactFromUs = memory[pairOf(memory, ring, memory[ring + BEGIN])];
      Object.assign(old, { grainUs: memory[ring + OLD_GRAIN], untilUs: memory[ring + OLD_UNTIL] });
    }
  }
  return old;
}

/** Lets a ring remember as far back as the windows of a rule need. */
function serve(memory: Float64Array, ring: number, rule: Rule): void {
  for (const { grainUs, perUs, count } of rule.windows) {
    if (grainUs !== memory[ring + GRAIN]) continue;
    memory[ring + SPAN] = Math.max(memory[ring + SPAN], perUs);
    memory[ring + MOST] = Math.max(memory[ring + MOST], count);
  }
}

function pendingUnits(key: Key, rule: Rule): number {
  return rule.fromAnswer ? (key.rest?.places?.pendingUnits ?? 0) : 0;
}

function firstRing(key: Key): number {
  return key.halves[2 * key.at + LOG];
}

function ringOf(key: Key, grainUs: number): number {
  const { memory } = key.logs;
  let ring = firstRing(key);
  while (ring !== 0 && memory[ring + GRAIN] !== grainUs) ring = memory[ring + NEXT];
  return ring;
}

function wordsOf(capacity: number): number {
  return HEADING + 2 * capacity;
}

function pairOf(memory: Float64Array, ring: number, number: number): number {
  return ring + HEADING + 2 * (number & (memory[ring + CAPACITY] - 1));
}

function ceilTo(us: number, grainUs: number): number {
  return grainUs <= 1 ? us : Math.ceil(us / grainUs) * grainUs;
}

/** Units of all starts before a number. */
function sumBefore(memory: Float64Array, ring: number, number: number): number {
  return number === memory[ring + BEGIN] ? memory[ring + BASE] : memory[pairOf(memory, ring, number - 1) + 1];
}

function total(memory: Float64Array, ring: number): number {
  return sumBefore(memory, ring, memory[ring + END]);
}

/** The number of the first start later than an instant. */
function firstAfter(memory: Float64Array, ring: number, us: number): number {
  return firstWith(memory, ring, 0, us);
}

/** The number of the first start up to which more than so many units were taken. */
function firstOver(memory: Float64Array, ring: number, units: number): number {
  return firstWith(memory, ring, 1, units);
}

/** The first start whose instant (word 0) or sum (word 1) is above a number: both only grow. */
function firstWith(memory: Float64Array, ring: number, word: 0 | 1, above: number): number {
  let low = memory[ring + BEGIN];
  let high = memory[ring + END];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (memory[pairOf(memory, ring, middle) + word] > above) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** When `units` fit beside those logged and `pending` ones; Infinity: only an answer can make room. */
function freeAt(
  key: Key,
  { count, perUs, grainUs }: WindowRule,
  units: number,
  pending: number,
  nowUs: number,
): number {
  const ring = ringOf(key, grainUs);
  const { memory } = key.logs;
  const gone = ring === 0 ? 0 : sumBefore(memory, ring, firstAfter(memory, ring, nowUs - perUs));
  const used = ring === 0 ? 0 : total(memory, ring) - gone;
  const excess = used + pending + units - count;
  if (excess <= 0) return nowUs;
  if (excess > used) return Number.POSITIVE_INFINITY;
  // Once the starts that make up the excess have left.
  return memory[pairOf(memory, ring, firstOver(memory, ring, gone + excess - 1))] + perUs;
}

/** Adds an empty ring; the finer stand first. */
function addRing(key: Key, rule: Rule, grainUs: number): number {
  const ring = key.logs.allocate(wordsOf(1));
  const { memory } = key.logs;
  memory[ring + CAPACITY] = 1;
  memory[ring + GRAIN] = grainUs;
  memory[ring + OLD_UNTIL] = Number.NEGATIVE_INFINITY;
  serve(memory, ring, rule);
  let before = 0;
  let next = firstRing(key);
  for (; next !== 0 && memory[next + GRAIN] < grainUs; next = memory[next + NEXT]) before = next;
  memory[ring + NEXT] = next;
  if (before === 0) key.halves[2 * key.at + LOG] = ring;
  else memory[before + NEXT] = ring;
  return ring;
}

/** Logs units in one ring, at their place in time, and returns the ring, which may have moved. */
function log(key: Key, before: number, at: number, startUs: number, units: number, nowUs: number): number {
  const countedUs = ceilTo(startUs, key.logs.memory[at + GRAIN]);
  const isFull = key.logs.memory[at + END] - key.logs.memory[at + BEGIN] === key.logs.memory[at + CAPACITY];
  const ring = isFull ? makeRoom(key, before, at, nowUs) : at;
  const { memory } = key.logs;
  let number = memory[ring + END];
  // Nearly always it is the newest.
  while (number > memory[ring + BEGIN] && memory[pairOf(memory, ring, number - 1)] > countedUs) number -= 1;
  if (number > memory[ring + BEGIN] && memory[pairOf(memory, ring, number - 1)] === countedUs) {
    addUnits(memory, ring, number - 1, units);
    return ring;
  }
  for (let later = memory[ring + END]; later > number; later--) {
    memory.copyWithin(
      pairOf(memory, ring, later),
      pairOf(memory, ring, later - 1),
      pairOf(memory, ring, later - 1) + 2,
    );
  }
  memory[pairOf(memory, ring, number)] = countedUs;
  memory[pairOf(memory, ring, number) + 1] = sumBefore(memory, ring, number);
  memory[ring + END] += 1;
  addUnits(memory, ring, number, units);
  return ring;
}

function addUnits(memory: Float64Array, ring: number, from: number, units: number): void {
  for (let number = from; number < memory[ring + END]; number++) memory[pairOf(memory, ring, number) + 1] += units;
}

/**
 * Forgets the oldest start, where it has left every window there ever was, or twice their count is newer, of which half may be returned. Else
 * moves the ring into a piece with room for twice what is left in it, without the starts that were returned whole. Returns where it is.
 */
function makeRoom(key: Key, before: number, ring: number, nowUs: number): number {
  const { logs } = key;
  const oldest = pairOf(logs.memory, ring, logs.memory[ring + BEGIN]);
  const isOver = logs.memory[oldest] + logs.memory[ring + SPAN] <= nowUs;
  if (isOver || total(logs.memory, ring) - logs.memory[oldest + 1] >= 2 * logs.memory[ring + MOST]) {
    logs.memory[ring + BASE] = logs.memory[oldest + 1];
    logs.memory[ring + BEGIN] += 1;
    return ring;
  }
  const capacity = logs.memory[ring + CAPACITY];
  const live: number[] = [];
  for (let number = logs.memory[ring + BEGIN]; number < logs.memory[ring + END]; number++) {
    const pair = pairOf(logs.memory, ring, number);
    if (logs.memory[pair + 1] > sumBefore(logs.memory, ring, number))
      live.push(logs.memory[pair], logs.memory[pair + 1]);
  }
  const larger = live.length > capacity ? capacity * 2 : capacity;
  const moved = logs.allocate(wordsOf(larger));
  logs.memory.copyWithin(moved, ring, ring + HEADING);
  logs.memory[moved + CAPACITY] = larger;
  logs.memory[moved + BEGIN] = 0;
  logs.memory[moved + END] = live.length / 2;
  logs.memory.set(live, moved + HEADING);
  logs.release(ring, wordsOf(capacity));
  if (before === 0) key.halves[2 * key.at + LOG] = moved;
  else logs.memory[before + NEXT] = moved;
  return moved;
}
