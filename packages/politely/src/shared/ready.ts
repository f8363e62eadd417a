import { cooldownReadyAt } from "./cooldown.js";
import type { KeyState, Track } from "./keyState.js";
import { NEVER_US } from "./keyState.js";
import type { SharedRule, StopKind, TakeKey, Units } from "./operation.js";
import { rateOwedAt, rateReadyAt } from "./rate.js";
import { limitNumbers } from "./ruleNumbers.js";
import { isUsed, turnPage, unitsInFlight } from "./tracks.js";
import { windowReadyAt } from "./window.js";
import { windowsOf } from "./windowLog.js";

/** The least and the most time between two looks at something that only an answer, a release or a person can change. */
const POLL_LEAST_US = 10_000;
export const POLL_MOST_US = 250_000;
/** Where starts are further apart than this, the second in line looks whether the first has come. */
export const STANDBY_US = 1_000_000;
/** Fewer than so many others in line look more often than they would have to. */
export const FEW = 10;

/** What lets a start wait. */
export interface Block {
  readonly kind: StopKind;
  /** When it ends if nothing happens. */
  readonly atUs: number;
  /** When it ends at the soonest, as far as anybody knows. */
  readonly readyUs: number;
  /** When to look again: when it ends, or sooner if something may end it sooner. */
  readonly againUs: number;
  /** Something may end it sooner, or put it off. */
  readonly isEvent: boolean;
  readonly because: string;
}

/** Those who go first at a key: how many starts, and what these take together. */
export interface Ahead extends Units {
  readonly starts: number;
}

/** Nobody goes first. */
export const NOBODY: Ahead = { starts: 0, rate: 0, window: 0, quota: 0 };

/** Stands for a wait whose end is no event. */
const NO_EVENT = -1;

/**
 * Told of everything that does not allow a start at once, and why: what was answered, or whose limit it is.
 *
 * `paceUs` is set where an event may end it sooner or put it off: the time that is expected between two starts here, or 0 when nobody knows.
 */
type Tell = (kind: StopKind, atUs: number, paceUs: number, why: string | SharedRule, window?: number) => void;

/**
 * What lets a start at this key wait longest, when these others go first; undefined when nothing does.
 *
 * `readyUs` and `againUs` are the latest of all blocks, and `isEvent` is true when any of them may end sooner or be put off.
 */
export function blockAt(state: KeyState, key: TakeKey, nowUs: number, ahead: Ahead): Block | undefined {
  let found: Block | undefined;
  eachBlock(state, key, nowUs, ahead, (block) => {
    found = found === undefined ? block : bothBlocks(found, block);
  });
  return found;
}

/** Two blocks as one: the one that ends last, or the first of two that end together. */
export function bothBlocks(one: Block, other: Block): Block {
  const longest = other.atUs > one.atUs ? other : one;
  return {
    ...longest,
    readyUs: Math.max(one.readyUs, other.readyUs),
    againUs: Math.max(one.againUs, other.againUs),
    isEvent: one.isEvent || other.isEvent,
  };
}

/** Everything that does not allow a start now, the latest first. */
export function blocksAt(state: KeyState, key: TakeKey, nowUs: number): Block[] {
  const blocks: Block[] = [];
  eachBlock(state, key, nowUs, NOBODY, (block) => blocks.push(block));
  return blocks.sort((a, b) => b.atUs - a.atUs);
}

function eachBlock(state: KeyState, key: TakeKey, nowUs: number, ahead: Ahead, found: (block: Block) => void): void {
  const pollUs = Math.max(POLL_LEAST_US, Math.min(POLL_MOST_US, Math.ceil((nowUs - state.lastUs) / 8)));
  const tell: Tell = (kind, atUs, paceUs, why, window = 0) => {
    if (atUs <= nowUs) return;
    const isEvent = paceUs !== NO_EVENT;
    const readyUs = isEvent ? Math.min(atUs, nowUs + pollUs) : atUs;
    const againUs = isEvent ? lookAgainAt(state, { atUs, paceUs, pollUs, nowUs, ahead: ahead.starts }) : atUs;
    const because = typeof why === "string" ? why : limitNumbers(why, kind, window);
    found({ kind, atUs, readyUs, againUs, isEvent, because });
  };
  const { cooldown, headroom } = state;
  const { fromAnswer } = key.rule;
  const isPending = fromAnswer && state.places.length > 0;
  const answerUs = isPending ? answerAfter(state) : NO_EVENT;
  if (state.pausedUntilUs > nowUs) tell("pause", state.pausedUntilUs, 0, String(state.pausedUntilUs));
  if (cooldown !== undefined) {
    const readyUs = cooldownReadyAt(cooldown, key.rule.gapUs);
    if (cooldown.probe === "out") tell("probe", readyUs, 0, cooldown.because);
    else tell("cooldown", afterHold(readyUs, state, key, nowUs, ahead), NO_EVENT, cooldown.because);
  }
  if (headroom !== undefined && headroom.untilUs > nowUs) {
    const spacedUs = headroom.gapUs > 0 ? spacedAt(state, headroom.gapUs, fromAnswer, nowUs, ahead.starts) : nowUs;
    const endUs = afterHold(headroom.untilUs, state, key, nowUs, ahead);
    tell(
      "headers",
      Math.min(endUs, Math.max(headroom.holdUntilUs, spacedUs)),
      paceAfter(answerUs, headroom.gapUs),
      headroom.because,
    );
  }
  if (key.slowUs > 0) {
    const atUs = spacedAt(state, key.slowUs, fromAnswer, nowUs, ahead.starts);
    tell("minDelay", atUs, paceAfter(answerUs, key.slowUs), "");
  }
  for (const track of state.tracks) {
    if (!isBinding(track, key, nowUs)) continue;
    // Another policy stops nobody for longer than it lives.
    const isOther = track.ruleId !== key.ruleId;
    const tellOther: Tell = (kind, atUs, ...rest) => tell(kind, Math.min(atUs, track.usedUs), ...rest);
    trackBlocks(state, track, key, nowUs, ahead, isOther ? tellOther : tell);
  }
}

/** Whether a policy counts for somebody who asks: it is its own, or somebody else uses it. */
function isBinding(track: Track, key: TakeKey, nowUs: number): boolean {
  return track.ruleId === key.ruleId || isUsed(track, nowUs);
}

/** When so much has come together in the buckets and windows of a key that its cost fits, when these others go first; Infinity when only an answer can tell. */
export function savedUpAt(state: KeyState, key: TakeKey, nowUs: number, ahead: Ahead): number {
  let readyUs = nowUs;
  for (const track of state.tracks) {
    if (!isBinding(track, key, nowUs)) continue;
    const { rule } = track;
    if (rule.rateCount > 0) readyUs = Math.max(readyUs, bucketAt(track, key.cost.rate + ahead.rate, nowUs));
    windowsOf(rule.windows).forEach((_, index) => {
      readyUs = Math.max(readyUs, windowAt(state, track, index, key.cost.window + ahead.window, nowUs).atUs);
    });
  }
  return readyUs;
}

/** When a bucket has room for so many units. From now on: one that was idle has saved up no more than its burst for those ahead. */
function bucketAt({ rule, owed, owedUs }: Track, units: number, nowUs: number): number {
  const fromUs = Math.max(nowUs, owedUs);
  const room = (rule.burst - units) * rule.ratePerUs;
  return rateReadyAt(rule.rateCount, rateOwedAt(rule.rateCount, owed, owedUs, fromUs), fromUs, room);
}

/** When a window has room for so many units, and how often it has to be filled before; Infinity when only an answer can make room. */
function windowAt(
  state: KeyState,
  { rule, logs }: Track,
  index: number,
  units: number,
  nowUs: number,
): { readonly atUs: number; readonly rounds: number } {
  const [count, perUs, grainUs] = rule.windows.slice(3 * index, 3 * index + 3);
  const window = { count, perUs, grainUs };
  const rounds = units > window.count ? Math.ceil(units / window.count) - 1 : 0;
  const pending = rule.fromAnswer ? unitsInFlight(state) : 0;
  const atUs = windowReadyAt(logs[index], 0, window, nowUs, units - rounds * window.count, pending);
  return { atUs: atUs + rounds * window.perUs, rounds };
}

function trackBlocks(state: KeyState, track: Track, key: TakeKey, nowUs: number, ahead: Ahead, tell: Tell): void {
  const { rule } = track;
  const { places } = state;
  const isPending = rule.fromAnswer && places.length > 0;
  const freeUs = places.length === 0 ? nowUs : firstFreeUs(state);
  const answerUs = answerAfter(state);
  if (rule.gapUs > 0) {
    const atUs = spacedAt(state, rule.gapUs, rule.fromAnswer, nowUs, ahead.starts);
    tell("minDelay", atUs, isPending ? answerUs + rule.gapUs : NO_EVENT, rule);
  }
  if (rule.rateCount > 0) tell("rate", bucketAt(track, key.cost.rate + ahead.rate, nowUs), NO_EVENT, rule);
  windowsOf(rule.windows).forEach((window, index) => {
    const { atUs, rounds } = windowAt(state, track, index, key.cost.window + ahead.window, nowUs);
    if (atUs !== Number.POSITIVE_INFINITY) tell("window", atUs, NO_EVENT, rule, index);
    else {
      const paceUs = Math.ceil((answerUs + window.perUs) / window.count);
      tell("window", freeUs + window.perUs * (1 + rounds), paceUs, rule, index);
    }
  });
  if (rule.quota > 0) {
    turnPage(track, key, nowUs);
    const isSpent = track.quotaUsed + key.cost.quota + ahead.quota > rule.quota;
    if (isSpent) tell("quota", afterHold(track.quotaUntilUs, state, key, nowUs, ahead), NO_EVENT, rule);
  }
  if (rule.concurrency > 0 && places.length + ahead.starts >= rule.concurrency) {
    tell("concurrency", Math.max(freeUs, nowUs + 1), Math.ceil(answerUs / rule.concurrency), rule);
  }
}

/** When a gap allows a start to somebody with so many in front. Where it runs from the answer and one is due, when that place ends by itself. */
function spacedAt(state: KeyState, gapUs: number, fromAnswer: boolean, nowUs: number, ahead: number): number {
  const { lastUs, answeredUs, places } = state;
  if (!fromAnswer) return afterGap(lastUs, gapUs, nowUs, ahead);
  if (places.length > 0) return firstFreeUs(state) + gapUs * (1 + ahead);
  return afterGap(Math.max(lastUs, answeredUs), gapUs, nowUs, ahead);
}

/** When a gap after `lastUs` allows a start to somebody with so many in front, of whom the first may start now at the earliest. */
function afterGap(lastUs: number, gapUs: number, nowUs: number, ahead: number): number {
  const firstUs = lastUs === NEVER_US ? nowUs : Math.max(nowUs, lastUs + gapUs);
  return firstUs + ahead * gapUs;
}

/** When a hold is over for somebody with so many in front: these go first, at the pace of the key, so that not all come at once. */
function afterHold(untilUs: number, state: KeyState, key: TakeKey, nowUs: number, ahead: Ahead): number {
  if (ahead.starts === 0 || untilUs <= nowUs) return untilUs;
  let spreadUs = ahead.starts * key.slowUs;
  for (const track of state.tracks) {
    if (!isBinding(track, key, nowUs)) continue;
    const { rule } = track;
    spreadUs = Math.max(spreadUs, ahead.starts * rule.gapUs);
    const beyond = ahead.rate + key.cost.rate - rule.burst;
    if (rule.rateCount > 0) spreadUs = Math.max(spreadUs, Math.ceil((beyond * rule.ratePerUs) / rule.rateCount));
    for (const { count, perUs } of windowsOf(rule.windows)) {
      spreadUs = Math.max(spreadUs, Math.floor((ahead.window + key.cost.window - 1) / count) * perUs);
    }
  }
  return untilUs + spreadUs;
}

/** When the first place is free again if nobody gives one back. */
function firstFreeUs(state: KeyState): number {
  let atUs = Number.MAX_SAFE_INTEGER;
  for (const { expiresUs, holdUntilUs } of state.places) atUs = Math.min(atUs, expiresUs, holdUntilUs);
  return atUs;
}

/** How long after its start a request is likely to be answered: as others were lately, and a little later. */
function answerAfter({ heldUs }: KeyState): number {
  return heldUs + Math.min(POLL_MOST_US, Math.ceil(heldUs / 16));
}

function paceAfter(answerUs: number, gapUs: number): number {
  return answerUs === NO_EVENT ? NO_EVENT : answerUs + gapUs;
}

/**
 * When to look again at something that an event ends, with so many in front.
 *
 * The first looks when the event is likely, and then ever more rarely the longer nothing has started, so that a long wait is
 * cheap and a short one sharp. Each of the others comes one start later than the one before it, and later still the longer nothing has started: not all look for the same event.
 * Where that is long, it comes just after that one: if that is gone, nothing is lost, and else it learns when its own turn is.
 * A few need not be so sparing: one of them looks each second, however wrong the estimate is.
 */
function lookAgainAt({ lastUs, line }: KeyState, { atUs, paceUs, pollUs, nowUs, ahead }: Look): number {
  const firstUs = Math.min(atUs, Math.max(nowUs + pollUs, lastUs + paceUs));
  const spareUs = paceUs > 0 ? pollUs - POLL_LEAST_US : pollUs;
  const stepUs = Math.max(paceUs, Math.min(STANDBY_US, 2 * spareUs));
  const isClose = paceUs <= STANDBY_US || ahead === 0;
  const againUs = isClose ? firstUs + ahead * stepUs : firstUs + POLL_MOST_US + (ahead - 1) * stepUs;
  return line.length < FEW ? Math.min(againUs, nowUs + (line.length + 1) * STANDBY_US) : againUs;
}

/** What is known of an event: when it is over without one, the pace of starts, the time between two looks, and how many look first. */
interface Look {
  readonly atUs: number;
  readonly paceUs: number;
  readonly pollUs: number;
  readonly nowUs: number;
  readonly ahead: number;
}
