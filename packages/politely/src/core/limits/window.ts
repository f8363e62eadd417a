import type { Ahead, Cost, Key, Log, Rest, Tell } from "../key.js";
import type { Rule, WindowRule } from "../rule.js";
import { isAnswerDue } from "./gap.js";

// One log of starts serves all windows of a key. It is exact for as long as a window of up to 4,096 units looks back. Older starts, which only
// larger windows see, lie on multiples of a 1,024th of the period, rounded up. A window finds what it holds by halving.

/** Above so many units a window counts in grains. */
const EXACT_MOST = 4_096;
const GRAINS = 1_024;
/** A log shorter than this is not worth tidying. */
const TIDY_FROM = 64;
const EMPTY: Log = { spanUs: 0, grainUs: 1, atUs: [], sums: [], tidyFrom: 0 };
const NOTHING_KNOWN: Partial<Rest> = {};

/** A start as the log knows it. */
export interface LoggedStart {
  readonly atUs: number;
  readonly units: number;
}

/** The grain of a window: 1 up to 4,096 units, else a 1,024th of its period. */
export function windowGrainUs(count: number, perUs: number): number {
  return count > EXACT_MOST ? Math.ceil(perUs / GRAINS) : 1;
}

/** Every interval of a window's length holds at most `count` units. A window with grains is never over, and late by at most one grain. */
export function windowReadyAt(key: Key, rule: Rule, cost: Cost, nowUs: number, ahead: Ahead, tell?: Tell): number {
  let atUs = nowUs;
  for (let index = 0; index < rule.windows.length; index++) {
    const window = rule.windows[index];
    // Those ahead fill whole windows one after the other; the rest has to fit beside what is logged.
    const before = cost.window + ahead.units.window - 1;
    const laterUs = before < window.count ? 0 : Math.floor(before / window.count) * window.perUs;
    const latestUs = windowFreeAt(key, rule, window, (before % window.count) + 1, nowUs);
    const readyUs = laterUs === 0 ? latestUs : Math.max(latestUs, nowUs) + laterUs;
    if (readyUs > atUs) atUs = readyUs;
    if (tell === undefined || readyUs <= nowUs) continue;
    const isAwaited = latestUs > nowUs && isAnswerDue(key, rule);
    const earliestUs = isAwaited ? Math.min(latestUs, nowUs + window.perUs) + laterUs : readyUs;
    tell("window", earliestUs, `window ${rule.text.windows[index]}`, isAwaited ? latestUs : undefined);
  }
  return atUs;
}

/** When `units` fit beside those logged and those in flight; where only an answer can make room, when that would be a period ago at the latest. */
export function windowFreeAt(key: Key, rule: Rule, window: WindowRule, units: number, nowUs: number): number {
  const { log = EMPTY, places } = key.rest ?? NOTHING_KNOWN;
  const used = windowUsed(key, rule, window, nowUs);
  const excess = used + units - window.count;
  if (excess <= 0) return nowUs;
  const logged = used - pendingUnits(key, rule);
  if (excess > logged) return (places?.first?.startedUs ?? Number.POSITIVE_INFINITY) + rule.maxHoldUs + window.perUs;
  // Once the starts that make up the excess have left.
  return log.atUs[firstAfter(log.sums, unitsBefore(log, log.atUs.length) - logged + excess - 1)] + window.perUs;
}

/** Units inside a window now, those in flight included where they are counted from their answers. */
export function windowUsed(key: Key, rule: Rule, { perUs }: WindowRule, nowUs: number): number {
  const { log = EMPTY } = key.rest ?? NOTHING_KNOWN;
  const gone = unitsBefore(log, firstAfter(log.atUs, nowUs - perUs));
  return pendingUnits(key, rule) + unitsBefore(log, log.atUs.length) - gone;
}

/** When the oldest start leaves a window; minus Infinity when it holds none. */
export function oldestLeavesUs(key: Key, { perUs }: WindowRule, nowUs: number): number {
  const { atUs } = key.rest?.log ?? EMPTY;
  const oldest = atUs.at(firstAfter(atUs, nowUs - perUs));
  return oldest === undefined ? Number.NEGATIVE_INFINITY : oldest + perUs;
}

/** Logs a start, also one that was made some time ago. */
export function windowTake(key: Key, rule: Rule, atUs: number, units: number, nowUs: number): void {
  if (units === 0) return;
  const log = key.rest?.log ?? windowAdopt(key, rule, [], nowUs);
  insert(log, ceilTo(atUs, log.grainUs), units);
  if (log.atUs.length > log.tidyFrom) tidy(log, rule, nowUs);
}

/** Changes the units of a start that was logged, down to none; nothing where it is not known any more. */
export function windowGiveBack(key: Key, rule: Rule, startedUs: number, units: number): void {
  const log = key.rest?.log ?? EMPTY;
  const index = firstAfter(log.atUs, startedUs - 1);
  // A start may lie at the end of its grain. Anything else is another start.
  const grains = [1, log.grainUs, Math.ceil(log.spanUs / GRAINS), ...rule.windows.map(({ grainUs }) => grainUs)];
  if (!grains.some((grainUs) => ceilTo(startedUs, grainUs) === log.atUs[index])) return;
  const lying = log.sums[index] - unitsBefore(log, index);
  addUnits(log, index, -Math.min(units, lying));
  if (units < lying) return;
  log.atUs.splice(index, 1);
  log.sums.splice(index, 1);
}

/** When the newest start of the key leaves the longest window that its log served. */
export function windowOwesUntil({ rest }: Key): number {
  const { atUs, spanUs } = rest?.log ?? EMPTY;
  return atUs.length === 0 ? Number.NEGATIVE_INFINITY : atUs[atUs.length - 1] + spanUs;
}

/** All starts of a log, oldest first. */
export function loggedStarts(log: Log = EMPTY): LoggedStart[] {
  return log.atUs.map((atUs, index) => ({ atUs, units: log.sums[index] - unitsBefore(log, index) }));
}

/** Lets the log look back as far as the windows of `rule`, makes it where there is none, and adds starts to it. */
export function windowAdopt(key: Key, rule: Rule, more: readonly LoggedStart[], nowUs: number): Log {
  const rest = key.needRest();
  rest.log ??= { spanUs: 0, grainUs: 1, atUs: [], sums: [], tidyFrom: TIDY_FROM };
  const { log } = rest;
  log.spanUs = Math.max(log.spanUs, ...rule.windows.map(({ perUs }) => perUs));
  tidy(log, rule, nowUs);
  log.grainUs = grainBeyond(log, rule, 0, log.atUs.length);
  for (const { atUs, units } of more) insert(log, ceilTo(atUs, log.grainUs), units);
  return log;
}

function pendingUnits(key: Key, rule: Rule): number {
  return rule.fromAnswer ? (key.rest?.places?.pendingUnits ?? 0) : 0;
}

function ceilTo(us: number, grainUs: number): number {
  return grainUs <= 1 ? us : Math.ceil(us / grainUs) * grainUs;
}

/** The finest grain among the windows that look back further than `reachUs`. Of `size` starts, those that none of them sees stay exact unless there are many. */
function grainBeyond({ spanUs }: Log, { windows }: Rule, reachUs: number, size: number): number {
  const grains = windows.filter(({ perUs }) => perUs > reachUs).map(({ grainUs }) => grainUs);
  return grains.length > 0 ? Math.min(...grains) : size > EXACT_MOST ? Math.ceil(spanUs / GRAINS) : 1;
}

/** Units of all starts before one. */
function unitsBefore({ sums }: Log, index: number): number {
  return index === 0 ? 0 : sums[index - 1];
}

/** The first place at which a list that only grows is above a number. */
function firstAfter(list: readonly number[], above: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list[middle] > above) high = middle;
    else low = middle + 1;
  }
  return low;
}

function insert(log: Log, atUs: number, units: number): void {
  const { atUs: list, sums } = log;
  const end = list.length;
  // Nearly always it is the newest.
  if (end === 0 || list[end - 1] < atUs) {
    list.push(atUs);
    sums.push(unitsBefore(log, end) + units);
    return;
  }
  const index = firstAfter(list, atUs - 1);
  if (list[index] !== atUs) {
    list.splice(index, 0, atUs);
    sums.splice(index, 0, unitsBefore(log, index));
  }
  addUnits(log, index, units);
}

function addUnits({ sums }: Log, from: number, units: number): void {
  for (let index = from; index < sums.length; index++) sums[index] += units;
}

/**
 * Forgets starts that no window sees any more, but for the newest. Each of the others goes to the end of the coarsest grain that every finer window has left; all starts
 * of a grain move together, so their order stays.
 */
function tidy(log: Log, rule: Rule, nowUs: number): void {
  const starts = loggedStarts(log).filter(({ atUs }, index) => {
    return atUs + log.spanUs > nowUs || index === log.atUs.length - 1;
  });
  const reaches = rule.windows.map(({ perUs }) => perUs).sort((a, b) => b - a);
  log.atUs.length = 0;
  log.sums.length = 0;
  for (const { atUs, units } of starts) {
    const lyingUs = (reachUs: number): number => ceilTo(atUs, grainBeyond(log, rule, reachUs, starts.length));
    insert(log, lyingUs(reaches.find((us) => lyingUs(us) + us <= nowUs) ?? 0), units);
  }
  log.tidyFrom = 2 * log.atUs.length + TIDY_FROM;
}
