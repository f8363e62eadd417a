import type { KeyState, Track } from "./keyState.js";
import { NEVER_US } from "./keyState.js";
import type { CalendarPeriod, SharedRule, TakeKey, Units } from "./operation.js";
import { rateOwedAt, rateOwedUnder } from "./rate.js";
import { windowAdjust, windowUsed } from "./window.js";
import { emptyLog, logPairs, logStart, windowsOf } from "./windowLog.js";

/** Policies that are remembered at a key, at most; of more, the one used longest ago is forgotten. */
const TRACKS_MOST = 16;
/** Starts are granted ahead by less than this: so much later than a policy was used, something may have started under it. */
const AHEAD_MOST_US = 1_000_000;

/** The track of a policy at a key; a new one begins with what the others know, so that a change of policy is no gift. */
export function trackOf(state: KeyState, ruleId: string, rule: SharedRule, nowUs: number): Track {
  const { tracks } = state;
  const known = tracks.find((track) => track.ruleId === ruleId);
  if (known !== undefined) return known;
  const track = newTrack(state, ruleId, rule, nowUs);
  if (tracks.length >= TRACKS_MOST) {
    let first = 0;
    tracks.forEach(({ usedUs }, index) => {
      if (usedUs < tracks[first].usedUs) first = index;
    });
    tracks.splice(first, 1);
  }
  tracks.push(track);
  return track;
}

/** Whether a process has used this policy lately. If not, it binds nobody else. */
export function isUsed({ usedUs }: Track, nowUs: number): boolean {
  return usedUs > nowUs;
}

/** Drops the tracks of policies that no process has used for one lease and under which nothing counts any more, but never the one of `ruleId`. */
export function dropOldTracks(state: KeyState, ruleId: string, nowUs: number): void {
  if (state.tracks.length < 2) return;
  keep(state.tracks, (track) => track.ruleId === ruleId || isUsed(track, nowUs) || !isOver(track, state, nowUs));
}

/**
 * Whether nothing counts any more of what processes with this policy have started.
 *
 * A track that nobody uses counts what others start, too. That keeps it no longer than its own starts would: what those could
 * fill is empty again one period after it was last used.
 */
function isOver(track: Track, { places, answeredUs }: KeyState, nowUs: number): boolean {
  const { rule, usedUs, quotaUsed, quotaSinceUs, quotaUntilUs } = track;
  if (rule.quota > 0 && quotaUsed > 0 && quotaUntilUs > nowUs && quotaSinceUs <= usedUs) return false;
  if (rule.rateCount > 0) {
    const owed = rateOwedAt(rule.rateCount, track.owed, track.owedUs, nowUs);
    const full = rule.burst * rule.ratePerUs;
    // More than it holds was recorded, by its own processes.
    if (owed > full || (owed > 0 && nowUs < usedUs + AHEAD_MOST_US + Math.ceil(full / rule.rateCount))) return false;
  }
  if (rule.fromAnswer && places.length > 0) return false;
  const lastUs = (rule.fromAnswer ? Math.max(usedUs, answeredUs) : usedUs) + AHEAD_MOST_US;
  return windowsOf(rule.windows).every((window, index) => {
    if (nowUs >= lastUs + window.perUs + window.grainUs) return true;
    return windowUsed(track.logs[index], 0, window, nowUs) === 0;
  });
}

/** Counts a start in every track. Windows that run from the answer count it when that comes. */
export function countStart(state: KeyState, key: TakeKey, cost: Units, startedUs: number, nowUs: number): void {
  for (const track of state.tracks) {
    const { rule } = track;
    if (rule.rateCount > 0) charge(track, cost.rate, startedUs, nowUs);
    // Nothing of it comes back to a policy that nobody uses, which may have had no room for it.
    if (!isUsed(track, nowUs)) track.sinceUs = Math.max(track.sinceUs, startedUs + 1);
    if (!rule.fromAnswer) logUnits(track, startedUs, cost.window);
    if (rule.quota > 0) {
      turnPage(track, key, startedUs);
      track.quotaUsed += cost.quota;
    }
  }
}

/** Adds to the debt of a bucket. While nobody uses its policy, others empty it, and no more: it does not bind them. */
export function charge(track: Track, units: number, atUs: number, nowUs: number): void {
  const { rateCount, ratePerUs, burst } = track.rule;
  const owedUs = Math.max(track.owedUs, atUs);
  const rest = rateOwedAt(rateCount, track.owed, track.owedUs, owedUs);
  const most = isUsed(track, nowUs) ? Number.MAX_SAFE_INTEGER : Math.max(rest, burst * ratePerUs);
  track.owed = Math.min(most, rest + units * ratePerUs);
  track.owedUs = owedUs;
}

/** Adds units to every window of a track. */
export function logUnits(track: Track, startedUs: number, units: number): void {
  if (units === 0) return;
  windowsOf(track.rule.windows).forEach((window, index) => {
    track.logs[index] = logStart(track.logs[index], window, startedUs, units);
  });
}

/** Takes units out of every window of a track that counts from the start. */
export function unlogUnits(track: Track, startedUs: number, units: number, nowUs: number): void {
  if (units === 0 || track.rule.fromAnswer) return;
  windowsOf(track.rule.windows).forEach((window, index) => {
    windowAdjust(track.logs[index], 0, window, startedUs, -units, nowUs);
  });
}

/** Whether a calendar period is not the one that runs. */
export function isStale(period: CalendarPeriod | undefined, nowUs: number): boolean {
  return period !== undefined && (nowUs < period.fromUs || nowUs >= period.untilUs);
}

/**
 * Begins a new period of a track's quota when it is time. The period only grows.
 *
 * For a process of another policy, who cannot say which period it is, the old one ends all the same; what is then spent
 * counts for the new one.
 */
export function turnPage(track: Track, key: TakeKey, nowUs: number): void {
  const { period } = key;
  const isKnown = period !== undefined && key.rule.calendar === track.rule.calendar;
  if (isKnown && period.index <= track.quotaIndex) {
    // Clocks differ: it is over when the last of them says so.
    track.quotaUntilUs = Math.max(track.quotaUntilUs, period.untilUs);
    return;
  }
  const isTurned = track.quotaUntilUs === NEVER_US;
  if (!isTurned && (isKnown || nowUs >= track.quotaUntilUs)) {
    track.quotaUsed = 0;
    track.quotaSinceUs = nowUs;
    track.quotaUntilUs = NEVER_US;
  }
  if (!isKnown) return;
  track.quotaIndex = period.index;
  track.quotaUntilUs = period.untilUs;
}

/** Keeps the entries that pass, in place. */
export function keep<Entry>(list: Entry[], isKept: (entry: Entry) => boolean): void {
  let kept = 0;
  for (const entry of list) if (isKept(entry)) list[kept++] = entry;
  list.length = kept;
}

function newTrack(state: KeyState, ruleId: string, rule: SharedRule, nowUs: number): Track {
  const track: Track = {
    ruleId,
    rule,
    usedUs: nowUs,
    // What was started before, or granted ahead, was not counted here: it cannot be given back here either.
    sinceUs: Math.max(nowUs, state.lastUs + 1),
    owed: 0,
    owedUs: 0,
    logs: windowsOf(rule.windows).map(emptyLog),
    quotaIndex: NEVER_US,
    quotaUsed: 0,
    quotaSinceUs: nowUs,
    quotaUntilUs: NEVER_US,
  };
  if (rule.rateCount > 0) inheritDebt(track, state, nowUs);
  if (rule.windows.length > 0) inheritStarts(track, state, nowUs);
  if (rule.quota > 0) inheritBudget(track, state, nowUs);
  return track;
}

/** What was spent by the same calendar; without one, the most that was spent in the period of another that runs. */
function inheritBudget(track: Track, { tracks }: KeyState, nowUs: number): void {
  const { calendar } = track.rule;
  const same = tracks.find(({ rule }) => rule.quota > 0 && rule.calendar === calendar);
  if (same !== undefined) {
    track.quotaIndex = same.quotaIndex;
    track.quotaUsed = same.quotaUsed;
    track.quotaSinceUs = same.quotaSinceUs;
    track.quotaUntilUs = same.quotaUntilUs;
    return;
  }
  for (const { rule, quotaUsed, quotaUntilUs } of tracks) {
    if (rule.quota > 0 && quotaUntilUs > nowUs) track.quotaUsed = Math.max(track.quotaUsed, quotaUsed);
  }
}

/** The largest debt of any bucket there is; without one, that of the last start. */
function inheritDebt(track: Track, { tracks, lastUs }: KeyState, nowUs: number): void {
  const { rule } = track;
  const buckets = tracks.filter((other) => other.rule.rateCount > 0);
  let atUs = nowUs;
  for (const { owedUs } of buckets) atUs = Math.max(atUs, owedUs);
  let owed = 0;
  for (const other of buckets) {
    const owedThen = rateOwedAt(other.rule.rateCount, other.owed, other.owedUs, atUs);
    owed = Math.max(owed, owedUnder(owedThen, other.rule, rule, tracks.length >= TRACKS_MOST));
  }
  if (buckets.length === 0 && lastUs !== NEVER_US) {
    atUs = Math.max(nowUs, lastUs);
    owed = rateOwedAt(rule.rateCount, rule.ratePerUs, lastUs, atUs);
  }
  if (owed === 0) return;
  track.owed = owed;
  track.owedUs = atUs;
}

/** For each window the starts in the log that knows most of them, since logs are as long as their windows and forget what these need not know; without one, the last start. */
function inheritStarts(track: Track, state: KeyState, nowUs: number): void {
  const known = state.tracks.flatMap(({ rule, logs }) => {
    // Those in flight would have been counted at their answers.
    const pending = rule.fromAnswer && !track.rule.fromAnswer ? [nowUs, unitsInFlight(state)] : [];
    return logs.map((log) => [...logPairs(log), ...pending]);
  });
  if (known.length === 0 && state.lastUs !== NEVER_US) known.push([state.lastUs, 1]);
  windowsOf(track.rule.windows).forEach((window, index) => {
    let best: readonly number[] = [];
    for (const pairs of known) {
      if (unitsAfter(pairs, nowUs - window.perUs) > unitsAfter(best, nowUs - window.perUs)) best = pairs;
    }
    for (let pair = 0; pair < best.length; pair += 2) {
      if (best[pair] + window.perUs <= nowUs || best[pair + 1] === 0) continue;
      track.logs[index] = logStart(track.logs[index], window, best[pair], best[pair + 1]);
    }
  });
}

/** Units in pairs of instant and units that are later than an instant. */
function unitsAfter(pairs: readonly number[], afterUs: number): number {
  let units = 0;
  for (let pair = 0; pair < pairs.length; pair += 2) if (pairs[pair] > afterUs) units += pairs[pair + 1];
  return units;
}

/** Units of the starts whose places are held. */
export function unitsInFlight({ places }: KeyState): number {
  let units = 0;
  for (const place of places) units += place.units;
  return units;
}

/**
 * A bucket's debt under other numbers, as in one process. Where there are so many policies that they forget one another in turn (`isCrowded`), what
 * can be spent at once also stays when the bucket shrinks: else each turn would empty the larger ones again, and nobody would ever start.
 */
function owedUnder(owed: number, from: SharedRule, to: SharedRule, isCrowded: boolean): number {
  // More than a bucket holds was recorded, or comes from a larger one. It stays, whoever is there.
  if (!isCrowded || owed > from.burst * from.ratePerUs) return rateOwedUnder(owed, from, to);
  return rateOwedUnder(owed - Math.max(0, from.burst - to.burst) * from.ratePerUs, from, to);
}
