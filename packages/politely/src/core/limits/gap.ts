import { type Ahead, type Key, ROW, type Tell } from "../key.js";
import type { Rule } from "../rule.js";

const { LAST_US, UNITS } = ROW;

/** The last start that a `reset` has not forgotten; minus Infinity when there was none. */
export function lastUs({ words, halves, at, rest }: Key): number {
  const startUs = words[at + LAST_US];
  const cut = rest?.cut;
  // Every start takes a unit, so the count tells starts of one instant apart.
  const isForgotten = cut !== undefined && (startUs < cut.atUs || halves[2 * at + UNITS] === cut.units);
  return isForgotten ? Number.NEGATIVE_INFINITY : startUs;
}

/** The instant that gaps run from: the last start, or where things count from the answer the last answer; while one is due, when its permit lapses. */
export function spacedFromUs(key: Key, rule: Rule): number {
  const { rest } = key;
  if (rest === undefined) return key.words[key.at + LAST_US];
  if (!rule.fromAnswer) return lastUs(key);
  const first = rest.places?.first;
  return first === undefined ? Math.max(lastUs(key), rest.answeredUs) : first.startedUs + rule.maxHoldUs;
}

/** Whether a start is in flight whose answer gaps and windows run from. */
export function isAnswerDue({ rest }: Key, rule: Rule): boolean {
  return rule.fromAnswer && rest?.places?.first !== undefined;
}

/** Two starts are never closer than `gapUs`. */
export function gapReadyAt(key: Key, rule: Rule, nowUs: number, ahead: Ahead, tell?: Tell): number {
  if (rule.gapUs === 0) return nowUs;
  const latestUs = spacedFromUs(key, rule) + rule.gapUs;
  const atUs = ahead.requests === 0 ? latestUs : Math.max(latestUs, nowUs) + ahead.requests * rule.gapUs;
  if (tell === undefined || atUs <= nowUs) return atUs;
  const words = `at least ${rule.text.minDelay} between starts`;
  if (isAnswerDue(key, rule)) tell("minDelay", nowUs + (ahead.requests + 1) * rule.gapUs, words, latestUs);
  else tell("minDelay", atUs, words);
  return atUs;
}

/** Notes a start. One that was recorded late does not move the last start back. */
export function gapTake({ words, at }: Key, atUs: number): void {
  if (atUs > words[at + LAST_US]) words[at + LAST_US] = atUs;
}

/** When the gap after the last start is over. */
export function gapOwesUntil(key: Key, rule: Rule): number {
  return rule.gapUs === 0 ? Number.NEGATIVE_INFINITY : spacedFromUs(key, rule) + rule.gapUs;
}
