import { rateOwedAt } from "../rate.js";
import { windowAdjust } from "../window.js";
import type { KeyState, Track } from "./keyState.js";
import { NEVER_US } from "./keyState.js";
import type { SharedRule, TakeKey, Units } from "./operation.js";
import { emptyLog, logPairs, logStart, windowsOf } from "./windowLog.js";

/** Policies that are remembered at a key, at most; of more, the one used longest ago is forgotten. */
const TRACKS_MOST = 16;

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

/** Drops the tracks of policies that no process has used for one lease, but never the one of `ruleId`. */
export function dropOldTracks(state: KeyState, ruleId: string, nowUs: number): void {
  if (state.tracks.length < 2) return;
  keep(state.tracks, (track) => track.ruleId === ruleId || track.usedUs > nowUs);
}

/** Counts a start in every track. Windows that run from the answer count it when that comes. */
export function countStart(state: KeyState, key: TakeKey, cost: Units, startedUs: number): void {
  for (const track of state.tracks) {
    const { rule } = track;
    if (rule.rateCount > 0) {
      const atUs = Math.max(track.owedUs, startedUs);
      const owed = rateOwedAt(rule.rateCount, track.owed, track.owedUs, atUs) + cost.rate * rule.ratePerUs;
      track.owed = Math.min(Number.MAX_SAFE_INTEGER, owed);
      track.owedUs = atUs;
    }
    if (!rule.fromAnswer) logUnits(track, startedUs, cost.window);
    if (rule.quota > 0) {
      turnPage(track, key, startedUs);
      track.quotaUsed += cost.quota;
    }
  }
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
  const budget = state.tracks.find((other) => other.rule.quota > 0 && other.rule.calendar === rule.calendar);
  if (budget !== undefined && rule.quota > 0) {
    track.quotaIndex = budget.quotaIndex;
    track.quotaUsed = budget.quotaUsed;
    track.quotaSinceUs = budget.quotaSinceUs;
    track.quotaUntilUs = budget.quotaUntilUs;
  }
  return track;
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
    owed = Math.max(owed, owedUnder(owedThen, other.rule, rule));
  }
  if (buckets.length === 0 && lastUs !== NEVER_US) {
    atUs = Math.max(nowUs, lastUs);
    owed = rateOwedAt(rule.rateCount, rule.ratePerUs, lastUs, atUs);
  }
  if (owed === 0) return;
  track.owed = owed;
  track.owedUs = atUs;
}

/** The starts of the longest window there is; without one, the last start. */
function inheritStarts(track: Track, state: KeyState, nowUs: number): void {
  let longestUs = 0;
  let pairs = state.lastUs === NEVER_US ? [] : [state.lastUs, 1];
  for (const { rule, logs } of state.tracks) {
    windowsOf(rule.windows).forEach(({ perUs }, index) => {
      if (perUs <= longestUs) return;
      longestUs = perUs;
      pairs = logPairs(logs[index]);
      // Those in flight would have been counted at their answers.
      if (rule.fromAnswer && !track.rule.fromAnswer) pairs.push(nowUs, unitsInFlight(state));
    });
  }
  windowsOf(track.rule.windows).forEach((window, index) => {
    for (let pair = 0; pair < pairs.length; pair += 2) {
      if (pairs[pair] + window.perUs <= nowUs || pairs[pair + 1] === 0) continue;
      track.logs[index] = logStart(track.logs[index], window, pairs[pair], pairs[pair + 1]);
    }
  });
}

/** Units of the starts whose places are held. */
export function unitsInFlight({ places }: KeyState): number {
  let units = 0;
  for (const place of places) units += place.units;
  return units;
}

/**
 * A bucket's debt under other numbers: kept in units, rounded up, plus what the bucket grew by.
 *
 * In doubles, since scripts have nothing else: a little more than exact where the product is large, never less.
 */
export function owedUnder(owed: number, from: SharedRule, to: SharedRule): number {
  if (owed <= 0) return 0;
  const grown = Math.max(0, to.burst - from.burst);
  const same = Math.ceil((owed / from.ratePerUs) * to.ratePerUs * (1 + 1e-15));
  return Math.min(Number.MAX_SAFE_INTEGER, same + grown * to.ratePerUs);
}
