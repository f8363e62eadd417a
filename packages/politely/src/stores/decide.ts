import { isBadAnswer } from "../core/answer.js";
import { adopt, forgetPacing as forget } from "../core/change.js";
import { end, giveBack, owesUntil, readyAt, record, take, unitsSince } from "../core/decide.js";
import { type Ahead, type Cost, isNothing, NOBODY, ROW, type Taken } from "../core/key.js";
import { holdsHear, holdsTake, needHolds } from "../core/limits/holds.js";
import { inFlight, isFollowed, placesOf, placesTake } from "../core/limits/places.js";
import { owedAt, owedIn } from "../core/limits/rate.js";
import { hasLogs, windowViews } from "../core/limits/window.js";
import type { Rule } from "../core/rule.js";
import {
  type AskedKey,
  type Grant,
  type GrantPart,
  type HeldPlace,
  type Hold,
  type KeyView,
  type LimitOperation,
  type LookOperation,
  type LookReply,
  MEMBER_US,
  MEMORY_US,
  PLACE_LEAST_US,
  placeName,
  type RecordOperation,
  type RenewOperation,
  type RenewReply,
  type ReplyTo,
  type Sender,
  type SettleOperation,
  type SettleReply,
  type TakeOperation,
  type TakeReply,
  type TakeStop,
  type Told,
} from "./operations.js";
import { heldPlaceOf, type Memory, processOf, readText, type StoredKey, type Turn, textOf } from "./storedKey.js";

// The operations on the keys of a store. What the limits say is asked of `core/`; here stands what only a fleet has: starts granted a little ahead,
// a line of askers at each key, places with an owner, and replies that are given twice.

const { FLIGHT, LAST_US, OWED, SEEN_US, UNITS } = ROW;

/** Who does not come within this time after its turn is out of the line. */
const LATE_US = 1_000_000;
/** Seeing a process again so soon is not noted. */
const SIGHT_US = 250_000;
/** A clock that was set back by more than this takes the past along; by less, it stands still for a moment. */
export const BEHIND_MOST_US = 2_000_000;
/** What only an answer can end is looked at again after this long at least, and by the first in line at most. */
const LOOK_LEAST_US = 10_000;
const LOOK_MOST_US = 1_000_000;
/** The same for an asker that is told when its turn has come. */
const LOOK_MOST_TOLD_US = 30_000_000;
/** Those who are about to look, and so stand before others who wait for places. */
const SOON_US = 250_000;
/** So many behind the first one come in its stead, one after the other: it may be gone. */
const STAND_INS = 3;
/** However far away its turn is, whoever waits asks again after this: those before it may be gone. */
const ASK_AGAIN_US = 110_000_000;
/** As long as nobody knows how long places are held. */
const FIRST_HOLD_US = 1_000_000;
const MEMBERS_MOST = 10_000;
const LINE_MOST = 10_000;
const MEMORIES_MOST = 1_000;

/** What in a reply is an instant. */
const INSTANTS: ReadonlySet<string> = new Set([
  "startedUs",
  "previousUs",
  "atUs",
  "turnUs",
  "awaitedUntilUs",
  "untilUs",
]);

/** Carries out an operation on keys that nobody else changes meanwhile. Changes them, but for a `look`. */
export function decide<Op extends LimitOperation>(
  states: readonly StoredKey[],
  operation: Op,
  clockUs: number,
): ReplyTo<Op>;
export function decide(states: readonly StoredKey[], operation: LimitOperation, clockUs: number): object {
  for (const state of states) if (state.changedUs > clockUs + BEHIND_MOST_US) state.move(clockUs - state.changedUs);
  const nowUs = Math.max(clockUs, ...states.map(({ changedUs }) => changedUs));
  for (const state of states) state.changedUs = nowUs;
  switch (operation.kind) {
    case "take":
      return once(states, operation, nowUs, () => takeStarts(states, operation, nowUs));
    case "settle":
      // What gives nothing back may be carried out twice.
      return operation.keys.every(({ unused }) => isNothing(unused))
        ? settle(states, operation, nowUs)
        : once(states, operation, nowUs, () => settle(states, operation, nowUs));
    case "record":
      return once(states, operation, nowUs, () => recordStarts(states, operation, nowUs));
    case "renew":
      return renew(states, operation, nowUs);
    case "look":
      return look(states, operation, nowUs);
  }
}

/** Whether an operation was carried out before, so that it changes nothing now. */
export function isDone([{ memories }]: readonly StoredKey[], operation: LimitOperation): boolean {
  return "asker" in operation && (memories.get(operation.asker)?.number ?? 0) >= operation.number;
}

/** Gives the reply of before to an operation that comes again. */
function once<Reply extends object>(
  [first]: readonly StoredKey[],
  sender: Sender,
  nowUs: number,
  act: () => Reply,
): Reply {
  const { memories } = first;
  const { asker, number } = sender;
  const known = memories.get(asker);
  // Also where it says that it comes for the first time: one that was held up may come after it was sent again. Nobody waits for the reply to an older one.
  if (known !== undefined && known.number >= number) return { ...remembered<Reply>(known), nowUs };
  const reply = act();
  memories.delete(asker);
  memories.set(asker, { number, atUs: nowUs, movedUs: 0, reply: textOf(reply) });
  for (const [oldest, { atUs }] of memories) {
    if (atUs + MEMORY_US > nowUs && memories.size <= MEMORIES_MOST) break;
    memories.delete(oldest);
  }
  return reply;
}

/** A reply as it was; its instants are moved with all others where the clock was set back since. */
function remembered<Reply>({ movedUs, reply }: Memory): Reply {
  return readText<Reply>(reply, (number, name) => (INSTANTS.has(name) ? number + movedUs : number));
}

/** Grants up to `count` starts, each taking from all keys, in the order of those who came; whoever gets less stands in line. */
function takeStarts(states: readonly StoredKey[], operation: TakeOperation, nowUs: number): TakeReply {
  const { asker, count, horizonUs, keys } = operation;
  // Who comes for the first time stands behind all others.
  let sinceUs = Number.POSITIVE_INFINITY;
  // Whose turn has come takes the next start, whoever else is late.
  let isDue = false;
  states.forEach((state, index) => {
    const turn = state.line.get(asker);
    sinceUs = Math.min(sinceUs, turn?.sinceUs ?? sinceUs);
    isDue ||= turn !== undefined && turn.turnUs <= nowUs + horizonUs;
    state.line.delete(asker);
    dropLate(state, nowUs);
    prepare(state, keys[index], nowUs);
    see(state, processOf(asker), nowUs);
  });
  const grants: Grant[] = [];
  let granted = 0;
  while (granted < count) {
    const beforeUs = isDue ? Number.NEGATIVE_INFINITY : sinceUs;
    const aheads = states.map((state, index) => aheadIn(state, beforeUs, soonUs(keys[index].rule, nowUs)));
    const readyUs = Math.max(...states.map((state, index) => readyOf(state, keys[index], 1, nowUs, aheads[index])));
    const atUs = Math.ceil(Math.max(readyUs, nowUs) / operation.grainUs) * operation.grainUs;
    if (!(atUs <= nowUs + horizonUs)) break;
    // Over a slow way, what is before a start that is granted ahead would be lost to those who stand there.
    if (operation.inTurn !== undefined && atUs > nowUs && aheads.some(({ requests }) => requests > 0)) break;
    const together = togetherAt(states, operation, count - granted, nowUs, atUs, aheads);
    grants.push(grant(states, operation, granted, together, atUs, nowUs));
    granted += together;
    // It had its turn.
    if (granted >= (operation.inTurn ?? 1)) [sinceUs, isDue] = [Number.POSITIVE_INFINITY, false];
  }
  for (const [index, state] of states.entries()) keep(state, keys[index].rule, nowUs);
  return {
    nowUs,
    grants,
    stop: granted < count ? standInLine(states, operation, sinceUs, nowUs, count - granted) : undefined,
    members: Math.max(...states.map(({ members }) => members.size)),
    isHeld: states.some(({ rest }) => rest?.holds?.incident !== undefined),
    isFollowed: states.some(({ rest }) => rest?.places !== undefined),
  };
}

/** Lets a key be read under the rule of whoever asks: what lapsed is free, debts are in its rate, and kinds of limit that are new to the key know the starts that it knows. */
function prepare(state: StoredKey, { rule, slowUs }: Pick<AskedKey, "rule" | "slowUs">, nowUs: number): void {
  const rest = state.needRest();
  lapse(state, rule, nowUs);
  if (!isFollowed(rule) && rest.places?.count === 0) rest.places = undefined;
  const { measure, quota } = rest;
  const isNewBucket = rule.rateCount > 0 && measure === undefined;
  if (rule.rateCount > 0 && measure !== undefined) convertDebt(state, measure, rule, nowUs);
  const isNewQuota =
    rule.quota !== undefined && (quota?.per !== rule.quota.per || quota.timeZone !== rule.quota.timeZone);
  if (isNewBucket || isNewQuota || !hasLogs(state, rule)) {
    adopt(state, isNewBucket ? { ...rule, rateCount: 0 } : rule, rule, nowUs);
  }
  if (rule.rateCount > 0) {
    const { rateCount, ratePerUs, burst } = rule;
    rest.measure = { rateCount, ratePerUs, burst };
  }
  const isSlow = slowUs > 0;
  const slowdown = {
    gapUs: slowUs,
    holdUntilUs: Number.NEGATIVE_INFINITY,
    untilUs: Number.POSITIVE_INFINITY,
    because: "",
  };
  if (isSlow || rest.holds?.robots !== undefined) needHolds(state).robots = isSlow ? slowdown : undefined;
}

/** A debt is paid at the slower of the rate it was made in and the asker's, and then counts in the asker's. */
function convertDebt(
  { words }: StoredKey,
  from: NonNullable<StoredKey["rest"]>["measure"] & object,
  to: Rule,
  nowUs: number,
): void {
  if (from.rateCount === to.rateCount && from.ratePerUs === to.ratePerUs) return;
  const isSlower = from.rateCount / from.ratePerUs < to.rateCount / to.ratePerUs;
  const paidUs = isSlower ? Math.max(nowUs, words[SEEN_US]) : words[SEEN_US];
  const owed = isSlower ? owedAt(from.rateCount, words[OWED], words[SEEN_US], nowUs) : words[OWED];
  words[OWED] = owedIn(owed, from, to);
  words[SEEN_US] = paidUs;
}

/** Frees places that were held for too long, or that their process has not named for their lifetime. */
function lapse(state: StoredKey, rule: Rule, nowUs: number): void {
  for (const place of placesOf(state)) {
    const { maxHoldUs, aliveUntilUs } = heldPlaceOf(place);
    const untilUs = Math.min(place.startedUs + maxHoldUs, aliveUntilUs);
    if (untilUs <= nowUs) end(state, rule, place, Math.max(untilUs, place.startedUs), place.pendingUnits);
  }
}

function see({ members }: StoredKey, process: string, nowUs: number): void {
  if ((members.get(process) ?? Number.NEGATIVE_INFINITY) + SIGHT_US > nowUs) return;
  members.delete(process);
  members.set(process, nowUs);
  for (const [oldest, seenUs] of members) {
    if (seenUs + MEMBER_US > nowUs && members.size <= MEMBERS_MOST) break;
    members.delete(oldest);
  }
}

/** Sees to it that a key is kept for as long as it owes something to somebody with that rule. */
function keep(state: StoredKey, rule: Rule, nowUs: number): void {
  const untilUs = owesUntil(state, rule, nowUs);
  state.keepUntilUs = Math.max(state.keepUntilUs, nowUs + MEMBER_US, Number.isFinite(untilUs) ? untilUs : 0);
  for (const place of placesOf(state))
    state.keepUntilUs = Math.max(state.keepUntilUs, place.startedUs + heldPlaceOf(place).maxHoldUs);
  if (untilUs === Number.POSITIVE_INFINITY) state.keepUntilUs = Number.MAX_SAFE_INTEGER;
}

function readyOf(state: StoredKey, { rule, cost }: AskedKey, requests: number, nowUs: number, ahead: Ahead): number {
  return readyAt(state, rule, requests === 1 ? cost : times(cost, requests), nowUs, ahead);
}

function times({ rate, window, quota }: Cost, count: number): Cost {
  return { rate: rate * count, window: window * count, quota: quota * count };
}

/** How many starts fit in one instant. Where requests count and not units, one at a time. */
function togetherAt(
  states: readonly StoredKey[],
  { keys }: TakeOperation,
  most: number,
  nowUs: number,
  atUs: number,
  aheads: readonly Ahead[],
): number {
  const isSingle = states.some(({ rest }, index) => {
    const { rule, slowUs } = keys[index];
    return rule.gapUs > 0 || slowUs > 0 || rest?.places !== undefined || isFollowed(rule) || rest?.holds !== undefined;
  });
  if (isSingle) return 1;
  // What is never there at once is not granted for one instant, though it would be there by then.
  const room = Math.min(most, ...keys.map(({ rule, cost }) => roomOf(rule, cost)));
  const fits = (count: number): boolean =>
    states.every((state, index) => readyOf(state, keys[index], count, nowUs, aheads[index]) <= atUs);
  let least = 1;
  let over = room + 1;
  // Most often one fits, or all do.
  if (room > 1 && fits(room)) return room;
  while (over - least > 1) {
    const middle = (least + over) >>> 1;
    if (fits(middle)) least = middle;
    else over = middle;
  }
  return least;
}

/** How many starts of that cost a rule can ever allow at once. */
function roomOf({ burst, rateCount, windows }: Rule, cost: Cost): number {
  const rate = rateCount === 0 ? Number.POSITIVE_INFINITY : Math.floor(burst / cost.rate);
  return Math.max(1, Math.min(rate, ...windows.map(({ count }) => Math.floor(count / cost.window))));
}

function grant(
  states: readonly StoredKey[],
  { asker, number, keys }: TakeOperation,
  from: number,
  count: number,
  atUs: number,
  nowUs: number,
): Grant {
  const place = placeName(asker, number, from);
  const parts = states.map((state, index): GrantPart => {
    const { rule, cost } = keys[index];
    const previousUs = state.words[LAST_US];
    const unitsBefore = state.halves[UNITS];
    const { period, place: taken } = takeAt(state, rule, times(cost, count), atUs, nowUs);
    const held: HeldPlace = {
      id: place,
      maxHoldUs: rule.maxHoldUs,
      aliveUntilUs: nowUs + Math.max(PLACE_LEAST_US, rule.permitTtlUs),
    };
    if (taken !== undefined) taken.permit = held;
    state.starts += count;
    if (state.rest?.holds !== undefined) holdsTake(state.rest.holds, place, atUs);
    return { previousUs, unitsBefore, period };
  });
  const [first] = states;
  const token = Math.max(first.token + 1, Math.floor(atUs));
  first.token = token + count - 1;
  return { startedUs: atUs, count, token, parts };
}

/** Takes from a key. Where anybody has to know starts in flight, all of them have a place. */
function takeAt(state: StoredKey, rule: Rule, cost: Cost, atUs: number, nowUs: number): Taken {
  const taken = take(state, rule, cost, atUs, nowUs);
  if (taken.place !== undefined) return taken;
  state.halves[FLIGHT] = 0;
  return state.rest?.places === undefined ? taken : { ...taken, place: placesTake(state, atUs, cost.window, 0) };
}

/** Those who did not come at their turn are out of the line. */
function dropLate({ line }: StoredKey, nowUs: number): void {
  for (const [asker, { turnUs }] of line) if (turnUs + LATE_US <= nowUs) line.delete(asker);
}

/** Up to when those in line may come in time. Where places are waited for nobody knows when one is free: those who are about to look. */
function soonUs({ concurrency }: Rule, nowUs: number): number {
  return concurrency === Number.POSITIVE_INFINITY ? concurrency : nowUs + SOON_US;
}

/** Those in line at a key who came before, and have their turn up to an instant. */
function aheadIn({ line }: StoredKey, sinceUs: number, untilUs: number): Ahead {
  if (line.size === 0) return NOBODY;
  let requests = 0;
  const units = { rate: 0, window: 0, quota: 0 };
  for (const { sinceUs: theirsUs, turnUs, count, cost } of line.values()) {
    if (theirsUs >= sinceUs || turnUs > untilUs) continue;
    requests += count;
    units.rate += cost.rate;
    units.window += cost.window;
    units.quota += cost.quota;
  }
  return requests === 0 ? NOBODY : { requests, units };
}

/** Finds what stops an asker and when its turn is, and lets it stand in line there. */
function standInLine(
  states: readonly StoredKey[],
  operation: TakeOperation,
  sinceUs: number,
  nowUs: number,
  wanted: number,
): TakeStop {
  const told: Told[] = [];
  let at = 0;
  let latestUs = Number.NEGATIVE_INFINITY;
  let isAwaited = false;
  states.forEach((state, index) => {
    const { rule, cost } = operation.keys[index];
    tellOf(told, index, state, rule, cost, nowUs);
    const before = aheadIn(state, sinceUs, soonUs(rule, nowUs));
    let mostUs = nowUs;
    let isMostAwaited = false;
    const readyUs = readyAt(state, rule, cost, nowUs, before, (_limit, atUs, _words, untilUs) => {
      if ((untilUs ?? atUs) < mostUs) return;
      mostUs = untilUs ?? atUs;
      isMostAwaited = untilUs !== undefined || atUs === Number.POSITIVE_INFINITY;
    });
    if (readyUs <= latestUs) return;
    at = index;
    latestUs = readyUs;
    isAwaited = isMostAwaited;
  });
  const latest = (one: Told): number => one.awaitedUntilUs ?? one.atUs;
  const behind: Told = { index: at, limit: "queue", atUs: latestUs, words: "others are ahead" };
  const stop = told.sort((a, b) => latest(b) - latest(a))[0] ?? behind;
  const { cost, rule } = operation.keys[at];
  const { line } = states[at];
  let lastUs = nowUs - 1;
  let rank = 0;
  for (const turn of line.values()) {
    lastUs = Math.max(lastUs, turn.sinceUs);
    rank += turn.sinceUs < sinceUs ? 1 : 0;
  }
  // Over a slow way it is enough to come when called, and to look later whether the call was lost.
  const isCalled = operation.isTold && operation.inTurn !== undefined;
  // To look for an answer is of no use before all that is known of is over.
  const knownUs = Math.max(nowUs, ...told.filter(isKnown).map(({ atUs }) => atUs));
  // Behind somebody whose turn has come and who does not come it is enough to look now and then.
  const leastUs = nowUs + (told.length === 0 ? LOOK_LEAST_US : 1);
  const readyUs = isAwaited
    ? Math.max(knownUs, lookAgainAt(states[at], rule, rank, operation.isTold, nowUs) + (isCalled ? LOOK_MOST_US : 0))
    : latestUs;
  const turnUs = Math.min(Math.max(readyUs, leastUs), nowUs + ASK_AGAIN_US);
  // No two have come at the same instant.
  const standsUs = sinceUs === Number.POSITIVE_INFINITY ? lastUs + 1 : sinceUs;
  const inTurn = Math.min(wanted, operation.inTurn ?? 1);
  if (operation.doesWait && line.size < LINE_MOST)
    line.set(operation.asker, { sinceUs: standsUs, turnUs, count: inTurn, cost: times(cost, inTurn), isCalled });
  return { ...stop, turnUs };
}

function isKnown({ atUs, awaitedUntilUs }: Told): boolean {
  return awaitedUntilUs === undefined && Number.isFinite(atUs);
}

function tellOf(told: Told[], index: number, state: StoredKey, rule: Rule, cost: Cost, nowUs: number): void {
  readyAt(state, rule, cost, nowUs, NOBODY, (limit, atUs, words, awaitedUntilUs, because) => {
    told.push({ index, limit, atUs, words, awaitedUntilUs, because });
  });
}

/** When to look whether an answer has come: the first in line as places are likely to be free, the others one hold later each, or a little later in its stead. */
function lookAgainAt(
  { rest, heldUs }: StoredKey,
  { concurrency }: Rule,
  ahead: number,
  isTold: boolean,
  nowUs: number,
): number {
  const mostUs = isTold ? LOOK_MOST_TOLD_US : LOOK_MOST_US;
  const likelyUs = heldUs === 0 ? FIRST_HOLD_US / 4 : heldUs;
  const ageUs = nowUs - (rest?.places?.first?.startedUs ?? nowUs);
  // The longer it has been held already, the longer it may go on.
  const firstUs = Math.min(Math.max(likelyUs - ageUs, Math.ceil(ageUs / 8), LOOK_LEAST_US), mostUs);
  if (ahead === 0) return nowUs + firstUs;
  const together = concurrency < Number.POSITIVE_INFINITY ? concurrency : Math.max(1, rest?.places?.count ?? 1);
  const turnUs = firstUs + Math.ceil((ahead * likelyUs) / together);
  const insteadUs = Math.max(firstUs, likelyUs - ageUs) + ahead * (LATE_US + SOON_US);
  return nowUs + (ahead <= STAND_INS ? Math.min(turnUs, insteadUs) : turnUs);
}

/** Takes a start back, or hears its answer while it goes on. */
function settle(states: readonly StoredKey[], operation: SettleOperation, nowUs: number): SettleReply {
  const { answer, grantedUs, isOver, keys, place, random } = operation;
  // Instants from before the clock was set back are not to hold anything until it has come there again.
  const latestUs = nowUs + LATE_US;
  const startedUs = Math.min(operation.startedUs, latestUs);
  const holds: Hold[] = [];
  const wake: string[] = [];
  states.forEach((state, index) => {
    const { rule, cost, previousUs, unitsAfter, period, unused, isMeant } = keys[index];
    prepare(state, { rule, slowUs: 0 }, nowUs);
    see(state, processOf(place), nowUs);
    const held = placesOf(state).find((one) => heldPlaceOf(one).id === place);
    const taken = { startedUs, previousUs: Math.min(previousUs, latestUs), unitsAfter, cost, period, place: held };
    const laterUnits = unitsSince(state, taken);
    const isUnused = answer.kind === "unused";
    if (!isNothing(unused)) giveBack(state, rule, taken, unused, nowUs, isUnused);
    if (isUnused) state.starts = Math.max(0, state.starts - 1);
    if (isOver && held !== undefined) {
      const answeredUs = Math.max(nowUs, startedUs);
      if (!isUnused) state.heldUs = heldAfter(state.heldUs, answeredUs - startedUs);
      end(state, rule, held, answeredUs, isUnused ? undefined : cost.window - unused.window);
      wake.push(...firstInLine(state, nowUs));
    }
    const later = laterUnits < Number.POSITIVE_INFINITY ? laterUnits : 0;
    const at = { who: place, startedUs: Math.min(grantedUs, startedUs), nowUs, isMeant, laterUnits: later, random };
    hear(state, index, rule, operation, at, holds, wake);
    keep(state, rule, nowUs);
  });
  return { nowUs, holds, wake };
}

/** Learns from an answer at one key. */
function hear(
  state: StoredKey,
  index: number,
  rule: Rule,
  { answer }: Pick<SettleOperation, "answer">,
  at: Parameters<typeof holdsHear>[3],
  holds: Hold[],
  wake: string[],
): void {
  const { isMeant, nowUs } = at;
  if (isMeant && answer.kind === "rate_limited") state.throttled += 1;
  const isNews = isMeant && (isBadAnswer(answer.kind) || answer.budget !== undefined);
  if (!isNews && state.rest?.holds?.incident === undefined) return;
  const known = needHolds(state);
  const { probe } = known;
  const isHit = holdsHear(known, rule, answer, at);
  const { incident } = known;
  if (probe !== undefined && known.probe === undefined && !isHit) wake.push(...firstInLine(state, nowUs));
  if (!isHit || incident === undefined) return;
  const { because, errorStep, throttleStep, untilUs } = incident;
  holds.push({ index, untilUs, step: Math.max(1, answer.kind === "rate_limited" ? throttleStep : errorStep), because });
}

/** It falls fast and rises slowly: who looks too soon asks once more, who looks too late leaves a place empty. */
function heldAfter(knownUs: number, us: number): number {
  if (knownUs === 0) return Math.max(1, Math.min(us, FIRST_HOLD_US));
  if (us < knownUs) return Math.max(1, us < knownUs / 2 ? us : Math.ceil((knownUs + us) / 2));
  return knownUs + Math.ceil(Math.min(us - knownUs, knownUs) / 2);
}

/** The one whose turn it is now, since something was given back. It may not hear of it: then it comes at the turn that it was told. */
function firstInLine(state: StoredKey, nowUs: number): string[] {
  dropLate(state, nowUs);
  let first: [string, Turn] | undefined;
  for (const one of state.line) if (first === undefined || isBefore(one, first)) first = one;
  if (first?.[1].isCalled === true) first[1].turnUs = nowUs;
  return first === undefined ? [] : [first[0]];
}

/** Of two who came at one instant, at different keys, one is before the other all the same. */
function isBefore([asker, { sinceUs }]: [string, Turn], [other, turn]: [string, Turn]): boolean {
  return sinceUs < turn.sinceUs || (sinceUs === turn.sinceUs && asker < other);
}

function recordStarts(states: readonly StoredKey[], operation: RecordOperation, nowUs: number): SettleReply {
  const { agesUs, answer, asker, counts, keys, meant, owed, pauseUs, random, reset, units } = operation;
  const holds: Hold[] = [];
  const wake: string[] = [];
  states.forEach((state, index) => {
    const { rule, cost } = keys[index];
    if (reset !== undefined) forget(state, nowUs, reset === "all");
    prepare(state, keys[index], nowUs);
    see(state, processOf(asker), nowUs);
    agesUs.forEach((ageUs, which) => {
      const whole = times(cost, counts[which]);
      const spent = units?.[which];
      const charged = spent === undefined ? whole : { rate: spent, window: spent, quota: spent };
      record(state, rule, owed === undefined ? charged : { ...charged, rate: 0 }, nowUs - ageUs, nowUs);
      state.starts += counts[which];
    });
    const debt = owed?.[index] ?? 0;
    if (debt > 0) record(state, rule, { rate: debt, window: 0, quota: 0 }, nowUs - (agesUs.at(-1) ?? 0), nowUs);
    if (answer !== undefined) {
      const startedUs = nowUs - (agesUs.at(-1) ?? 0);
      const at = { who: undefined, startedUs, nowUs, isMeant: index === meant, laterUnits: 0, random };
      hear(state, index, rule, { answer }, at, holds, wake);
    }
    if (pauseUs !== undefined) needHolds(state).pausedUntilUs = pauseUs === 0 ? undefined : nowUs + pauseUs;
    if (pauseUs === 0 || reset !== undefined) wake.push(...firstInLine(state, nowUs));
    keep(state, rule, nowUs);
  });
  return { nowUs, holds, wake };
}

function renew(states: readonly StoredKey[], operation: RenewOperation, nowUs: number): RenewReply {
  const { completeBefore, gone, isLeaving, places, process, rules } = operation;
  const wake: string[] = [];
  states.forEach((state, index) => {
    const rule = rules[index];
    // First what it says of itself: it lives.
    if (isLeaving) state.members.delete(process);
    else see(state, process, nowUs);
    for (const asker of gone) if (state.line.delete(asker)) wake.push(...firstInLine(state, nowUs));
    const named = new Map(places[index].map((one) => [one.id, one]));
    for (const place of placesOf(state)) {
      const held = heldPlaceOf(place);
      const { id } = held;
      const renewed = named.get(id);
      if (renewed !== undefined) {
        place.permit = { ...held, aliveUntilUs: nowUs + renewed.ttlUs };
        named.delete(id);
        continue;
      }
      const number = Number(id.split("#")[1]);
      if (processOf(id) !== process || (number >= completeBefore && !isLeaving)) continue;
      end(state, rule, place, nowUs, place.pendingUnits);
      wake.push(...firstInLine(state, nowUs));
    }
    // Those that the store has forgotten.
    for (const { id, startedUs, units, pendingUnits, maxHoldUs, ttlUs } of named.values()) {
      if (startedUs + maxHoldUs <= nowUs) continue;
      placesTake(state, startedUs, units, pendingUnits).permit = { id, maxHoldUs, aliveUntilUs: nowUs + ttlUs };
    }
    lapse(state, rule, nowUs);
    keep(state, rule, nowUs);
  });
  return { nowUs, wake, members: Math.max(...states.map(({ members }) => members.size)) };
}

function look(states: readonly StoredKey[], { keys }: LookOperation, nowUs: number): LookReply {
  const told: Told[] = [];
  const views = states.map((state, index): KeyView => {
    const { rule, cost } = keys[index];
    dropLate(state, nowUs);
    prepare(state, keys[index], nowUs);
    tellOf(told, index, state, rule, cost, nowUs);
    const { words, rest } = state;
    const owed = owedAt(rule.rateCount, words[OWED], words[SEEN_US], nowUs);
    return {
      lastUs: words[LAST_US],
      starts: state.starts,
      throttled: state.throttled,
      inFlight: inFlight(state, rule, nowUs),
      waiting: state.line.size,
      heldUntilUs: rest?.holds?.incident?.untilUs ?? Number.NEGATIVE_INFINITY,
      tokens: rule.rateCount === 0 ? 0 : Math.max(0, rule.burst - Math.ceil(owed / rule.ratePerUs)),
      windows: windowViews(state, rule, nowUs),
    };
  });
  return { nowUs, told, keys: views, members: Math.max(...states.map(({ members }) => members.size)) };
}
