import { type Ahead, type Key, ROW, type Tell } from "../key.js";
import type { Rule } from "../rule.js";

const { LAST_US } = ROW;

/** The instant that gaps run from: the last start, or where things count from the answer the last answer; while one is due, when its permit lapses. */
export function spacedFromUs(key: Key, rule: Rule): number {
  const lastUs = key.words[key.at + LAST_US];
  const { rest } = key;
  if (!rule.fromAnswer || rest === undefined) return lastUs;
  const first = rest.places?.first;
  return first === undefined ? Math.max(lastUs, rest.answeredUs) : first.startedUs + rule.maxHoldUs;
}

/** Whether a start is in flight whose answer gaps and windows run from. */
export function isAnswerDue(key: Key, rule: Rule): boolean {
  return rule.fromAnswer && key.rest?.places?.first !== undefined;
}

/** Two starts are never closer than `gapUs`. */
export function gapReadyAt(key: Key, rule: Rule, ahead: Ahead, nowUs: number, tell?: Tell): number {
  const latestUs = spacedFromUs(key, rule) + rule.gapUs;
  const atUs = ahead.requests === 0 ? latestUs : Math.max(latestUs, nowUs) + ahead.requests * rule.gapUs;
  if (tell === undefined || atUs <= nowUs) return atUs;
  const isAwaited = isAnswerDue(key, rule);
  const earliestUs = isAwaited ? nowUs + (ahead.requests + 1) * rule.gapUs : atUs;
  const words = `at least ${rule.text.minDelay} between starts`;
  tell({ limit: "minDelay", atUs: earliestUs, isAwaited, latestUs, words });
  return atUs;
}

/** Notes a start. One that was recorded late does not move the last start back. */
export function gapTake(key: Key, atUs: number): void {
  const { words, at } = key;
  if (atUs > words[at + LAST_US]) words[at + LAST_US] = atUs;
}

/** The newest start was never sent: the one before it is the last again. */
export function gapGiveBack(key: Key, previousUs: number): void {
  key.words[key.at + LAST_US] = previousUs;
}
