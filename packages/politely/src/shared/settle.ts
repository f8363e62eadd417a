import { type BadAnswer, isBadAnswer } from "../core/answer.js";
import { headroomAfter } from "../core/headroom.js";
import { afterBadAnswer, afterSuccess, type CooldownState } from "./cooldown.js";
import type { KeyState, Track } from "./keyState.js";
import type { SettleKey, SettleOperation, SettleReply, Units } from "./operation.js";
import { endLapsedPlaces, endPlace } from "./places.js";
import { rateOwedWithout } from "./rate.js";
import { charge, unlogUnits } from "./tracks.js";

/** Takes a start back, or hears its answer while it goes on. */
export function settle(states: readonly KeyState[], operation: SettleOperation, nowUs: number): SettleReply {
  const cooldownUs: number[] = [];
  const steps: number[] = [];
  states.forEach((state, index) => {
    const key = operation.keys[index];
    endLapsedPlaces(state, nowUs);
    const laterUnits = Math.max(0, state.units - key.unitsAfter);
    giveBack(state, key, operation, laterUnits, nowUs);
    const heldAt = state.places.findIndex(({ id }) => id === operation.place);
    if (operation.isOver && heldAt >= 0) {
      // Time may have stood still since it was granted ahead: it is not answered before it started.
      const answeredUs = Math.max(nowUs, Math.min(operation.startedUs, state.lastUs));
      endPlace(state, heldAt, answeredUs, operation.isUnused ? undefined : key.windowUnits);
      // A place that was taken again does not know since when.
      if (!operation.isUnused && operation.startedUs > 0)
        state.heldUs = heldAfter(state.heldUs, answeredUs - operation.startedUs);
    }
    const step = hear(state, key, operation, laterUnits, nowUs);
    steps.push(step);
    cooldownUs.push(step > 0 ? Math.max(0, (state.cooldown?.untilUs ?? nowUs) - nowUs) : 0);
  });
  return { nowUs, cooldownUs, steps };
}

/** The first hold that is heard of says no more than this. */
export const FIRST_HOLD_US = 1_000_000;

/**
 * How long places are likely to be held, after one more was held for `us`.
 *
 * It falls fast and rises slowly: whoever looks too soon asks once more, whoever looks too late leaves a place empty. So a
 * few that took very long change little.
 */
function heldAfter(knownUs: number, us: number): number {
  if (knownUs === 0) return Math.max(1, Math.min(us, FIRST_HOLD_US));
  if (us < knownUs / 2) return Math.max(1, us);
  return us < knownUs ? Math.ceil((knownUs + us) / 2) : knownUs + Math.ceil(Math.min(us - knownUs, knownUs) / 2);
}

/** Gives back what a start took, or each of several that were never sent; and these do not count as starts. */
function giveBack(
  state: KeyState,
  { back, previousUs }: SettleKey,
  { startedUs, isUnused, unusedAt }: SettleOperation,
  laterUnits: number,
  nowUs: number,
): void {
  if (back.rate < 0) state.units -= back.rate;
  const instants = isUnused && unusedAt !== undefined ? unusedAt : [startedUs, 1];
  for (let pair = 0; pair < instants.length; pair += 2) {
    const count = instants[pair + 1];
    const units = { rate: back.rate * count, window: back.window * count, quota: back.quota * count };
    for (const track of state.tracks) giveBackTo(track, units, instants[pair], laterUnits, nowUs);
    if (isUnused) state.starts = Math.max(0, state.starts - count);
  }
  if (isUnused && laterUnits === 0 && state.lastUs === startedUs) state.lastUs = previousUs;
}

/** Gives back what was taken at an instant, as much as the other starts allow; to a track that does not know of it, nothing. */
function giveBackTo(track: Track, back: Units, startedUs: number, laterUnits: number, nowUs: number): void {
  const { rateCount, ratePerUs, quota } = track.rule;
  const isKnown = startedUs >= track.sinceUs;
  if (rateCount > 0 && (isKnown ? back.rate !== 0 : back.rate < 0)) {
    // Brought up to now, then changed.
    charge(track, Math.max(0, -back.rate), nowUs, nowUs);
    if (back.rate > 0) track.owed = rateOwedWithout(track.owed, back.rate * ratePerUs, laterUnits * ratePerUs);
  }
  if (isKnown || back.window < 0) unlogUnits(track, startedUs, back.window, nowUs);
  const isSamePeriod = isKnown && startedUs >= track.quotaSinceUs;
  if (quota > 0 && (isSamePeriod || back.quota < 0)) track.quotaUsed = Math.max(0, track.quotaUsed - back.quota);
}

/** Learns from an answer. Returns the step of the ladder when it made the key cool down, else 0. */
function hear(state: KeyState, key: SettleKey, operation: SettleOperation, laterUnits: number, nowUs: number): number {
  const { answer } = key;
  const { place } = operation;
  const isProbe = state.probe !== "" && state.probe === place;
  const { cooldown } = state;
  const startedUs = grantedAt(operation);
  if (answer.remaining >= 0) {
    const heard = { startedUs: operation.startedUs, nowUs };
    state.headroom = headroomAfter(state.headroom, answer, heard, laterUnits);
  }
  if (answer.kind === "rate_limited") state.throttled += 1;
  if (isBadAnswer(answer.kind)) return hold(state, key, answer.kind, isProbe, startedUs, nowUs);
  if (cooldown === undefined) return 0;
  if (answer.kind === "success") {
    const next = afterSuccess(cooldown, startedUs, nowUs);
    if (next !== cooldown) state.probe = "";
    state.cooldown = next;
    if (next === cooldown && isProbe) settleProbe(state, cooldown, "done");
  } else if (isProbe && (operation.isOver || answer.kind === "unused")) {
    settleProbe(state, cooldown, answer.kind === "unused" ? "due" : "done");
  }
  return 0;
}

/** When a start counts as made, for a cooldown: when it was granted, which may be before its instant. */
function grantedAt({ startedUs, grantedUs }: SettleOperation): number {
  return grantedUs === 0 ? startedUs : Math.min(startedUs, grantedUs);
}

function hold(
  state: KeyState,
  key: SettleKey,
  kind: BadAnswer,
  isProbe: boolean,
  startedUs: number,
  nowUs: number,
): number {
  if (!key.isHeld) return 0;
  const { retryAfterUs, random, because } = key.answer;
  const before = state.cooldown;
  const next = afterBadAnswer(before, key, { kind, startedUs, nowUs, retryAfterUs, random, because });
  if (next === undefined || next === before) {
    if (before !== undefined && isProbe) settleProbe(state, before, "done");
    return 0;
  }
  state.probe = "";
  state.cooldown = next;
  return Math.max(1, kind === "rate_limited" ? next.throttleStep : next.errorStep);
}

function settleProbe(state: KeyState, cooldown: CooldownState, probe: "due" | "done"): void {
  state.probe = "";
  state.cooldown = { ...cooldown, probe };
}
