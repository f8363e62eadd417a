import type { Ahead, Cost, Key, Log, Rest, Tell } from "../key.js";
import type { Rule, WindowRule } from "../rule.js";

// One exact log of starts serves all windows of up to 4,096 units: no such window can hold more entries. A larger window has a log of its own, whose
// entries lie on multiples of a 1,024th of its period, rounded up. What a window holds is found by halving.

/** Above so many units a window counts in grains. */
const EXACT_MOST = 4_096;
const GRAINS = 1_024;
/** A log shorter than this is not worth tidying. */
const TIDY_FROM = 64;
const EMPTY: Log = { spanUs: 0, grainUs: 1, blurUs: 1, atUs: [], sums: [] };
const NO_LOGS: readonly Log[] = [];

/** A start as a log knows it. */
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
    const isAwaited = latestUs > nowUs && pendingUnits(key) > 0;
    const earliestUs = isAwaited ? Math.min(latestUs, nowUs + window.perUs) + laterUs : readyUs;
    tell("window", earliestUs, `window ${rule.text.windows[index]}`, isAwaited ? latestUs : undefined);
  }
  return atUs;
}

/** When `units` fit beside those logged and those in flight; where only an answer can make room, when that would be a period ago at the latest. */
function windowFreeAt(key: Key, rule: Rule, window: WindowRule, units: number, nowUs: number): number {
  const log = logOf(key.rest, window) ?? EMPTY;
  const pending = pendingUnits(key);
  // Most often even all that the log remembers would fit.
  if (unitsBefore(log, log.atUs.length) + pending + units <= window.count) return nowUs;
  const used = windowUsed(key, window, nowUs);
  const excess = used + units - window.count;
  if (excess <= 0) return nowUs;
  const logged = used - pending;
  const startedUs = key.rest?.places?.first?.startedUs ?? Number.POSITIVE_INFINITY;
  if (excess > logged) return startedUs + rule.maxHoldUs + window.perUs;
  // Once the starts that make up the excess have left.
  return log.atUs[firstAfter(log.sums, unitsBefore(log, log.atUs.length) - logged + excess - 1)] + window.perUs;
}

/** Units inside a window now, and those in flight that are counted from their answers. */
function windowUsed(key: Key, window: WindowRule, nowUs: number): number {
  const log = logOf(key.rest, window) ?? EMPTY;
  const gone = unitsBefore(log, firstAfter(log.atUs, nowUs - window.perUs));
  return pendingUnits(key) + unitsBefore(log, log.atUs.length) - gone;
}

/** When the oldest start leaves a window; minus Infinity when it holds none. */
function oldestLeavesUs({ rest }: Key, window: WindowRule, nowUs: number): number {
  const { atUs } = logOf(rest, window) ?? EMPTY;
  const oldest = atUs.at(firstAfter(atUs, nowUs - window.perUs));
  return oldest === undefined ? Number.NEGATIVE_INFINITY : oldest + window.perUs;
}

/** How a window stands: units in it, when one more fits, and when the oldest leaves. */
export interface WindowView {
  readonly used: number;
  readonly freeUs: number;
  readonly leavesUs: number;
}

/** How each window of a rule stands. */
export function windowViews(key: Key, rule: Rule, nowUs: number): WindowView[] {
  return rule.windows.map((window) => ({
    used: windowUsed(key, window, nowUs),
    freeUs: windowFreeAt(key, rule, window, 1, nowUs),
    leavesUs: oldestLeavesUs(key, window, nowUs),
  }));
}

/** Logs a start, also one that was made some time ago. */
export function windowTake(key: Key, rule: Rule, atUs: number, units: number, nowUs: number): void {
  if (units === 0) return;
  const logs = key.rest?.logs ?? windowAdopt(key, rule, [], nowUs);
  for (const log of logs) {
    insert(log, atUs, units);
    tidy(log, nowUs);
  }
}

/** Changes the units of a start that was logged, down to none; nothing where it is not known any more. */
export function windowGiveBack({ rest }: Key, startedUs: number, units: number): void {
  for (const log of rest?.logs ?? NO_LOGS) {
    const index = firstAfter(log.atUs, startedUs - 1);
    // Where starts lie after their instants, another one's units may lie in front: then those behind them are its own.
    for (let left = units; left !== 0 && log.atUs[index] - startedUs < log.blurUs; ) {
      const lying = log.sums[index] - unitsBefore(log, index);
      const returned = Math.min(left, lying);
      addUnits(log, index, -returned);
      if (returned < lying) break;
      left -= returned;
      log.atUs.splice(index, 1);
      log.sums.splice(index, 1);
    }
  }
}

/** When the newest start of the key leaves the longest window that its logs served. */
export function windowOwesUntil({ rest }: Key): number {
  let untilUs = Number.NEGATIVE_INFINITY;
  for (const { atUs, spanUs } of rest?.logs ?? NO_LOGS)
    if (atUs.length > 0) untilUs = Math.max(untilUs, atUs[atUs.length - 1] + spanUs);
  return untilUs;
}

/** All starts that the logs of a key know, oldest first, as its longest log knows them. */
export function loggedStarts(logs: readonly Log[] = NO_LOGS): LoggedStart[] {
  const longest = logs.reduce((a, b) => (a.spanUs >= b.spanUs ? a : b), EMPTY);
  return longest.atUs.map((atUs, index) => ({ atUs, units: longest.sums[index] - unitsBefore(longest, index) }));
}

/** Gives every window of `rule` a log that looks back as far as it does, and adds starts to all logs. */
export function windowAdopt(key: Key, rule: Rule, more: readonly LoggedStart[], nowUs: number): Log[] {
  const rest = key.needRest();
  const known = loggedStarts(rest.logs);
  rest.logs ??= [];
  for (const log of rest.logs) for (const { atUs, units } of more) insert(log, atUs, units);
  for (const window of rule.windows) {
    const { grainUs, perUs } = window;
    let log = logOf(rest, window);
    if (log !== undefined && log.spanUs >= perUs) continue;
    if (log !== undefined) rest.logs.splice(rest.logs.indexOf(log), 1);
    const blurUs = Math.max(0, ...rest.logs.map((other) => other.blurUs)) + grainUs;
    log = { spanUs: perUs, grainUs, blurUs, atUs: [], sums: [] };
    for (const { atUs, units } of [...known, ...more]) insert(log, atUs, units);
    tidy(log, nowUs);
    rest.logs.push(log);
  }
  return rest.logs;
}

/** Whether every window of a rule has a log that looks back far enough. */
export function hasLogs({ rest }: Key, { windows }: Rule): boolean {
  return windows.every((window) => (logOf(rest, window)?.spanUs ?? 0) >= window.perUs);
}

/** The log that a window counts in. */
function logOf(rest: Rest | undefined, { grainUs, perUs }: WindowRule): Log | undefined {
  for (const log of rest?.logs ?? NO_LOGS) {
    if (log.grainUs === grainUs && (grainUs === 1 || log.spanUs === perUs)) return log;
  }
  return undefined;
}

function pendingUnits({ rest }: Key): number {
  return rest?.places?.pendingUnits ?? 0;
}

function ceilTo(us: number, grainUs: number): number {
  return grainUs <= 1 ? us : Math.ceil(us / grainUs) * grainUs;
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

function insert(log: Log, startedUs: number, units: number): void {
  const { atUs: list, sums } = log;
  const atUs = ceilTo(startedUs, log.grainUs);
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
 * Forgets starts that no window sees any more, once these are half of the log, but for the newest: those older than the longest window, and all but the last 4,096,
 * each of which is a unit at least.
 */
function tidy({ atUs, sums, spanUs }: Log, nowUs: number): void {
  const { length } = atUs;
  const sinceUs = nowUs - spanUs;
  if (length < TIDY_FROM || (atUs[length >>> 1] > sinceUs && length < EXACT_MOST + GRAINS)) return;
  const gone = Math.min(length - 1, Math.max(firstAfter(atUs, sinceUs), length - EXACT_MOST));
  const before = sums[gone - 1];
  atUs.splice(0, gone);
  sums.splice(0, gone);
  for (let index = 0; index < sums.length; index++) sums[index] -= before;
}
