import type { Ahead, Key, Tell } from "../key.js";
import type { QuotaRule, Rule } from "../rule.js";

/** Units spent in the present period. The period only grows: a wall clock set back stays in the one it was in. */
export function quotaUsed(key: Key, quota: QuotaRule): number {
  const { rest, calendar } = key;
  if (rest === undefined || rest.quotaUsed === 0) return 0;
  return calendar.periodAt(quota, calendar.wallMs()).index > rest.quotaPeriod ? 0 : rest.quotaUsed;
}

/** At most `count` units in each period of the calendar. The instant may move when the wall clock does. */
export function quotaReadyAt(key: Key, rule: Rule, cost: number, ahead: Ahead, nowUs: number, tell?: Tell): number {
  const { quota } = rule;
  if (quota === undefined || quotaUsed(key, quota) + cost + ahead.units.quota <= quota.count) return nowUs;
  const { calendar } = key;
  const wallMs = calendar.wallMs();
  const index = key.rest?.quotaPeriod ?? 0;
  const now = calendar.periodAt(quota, wallMs);
  const { endsAtMs } = index > now.index ? calendar.periodNumber(quota, index) : now;
  const atUs = nowUs + Math.max(1, Math.ceil((endsAtMs - wallMs) * 1000));
  tell?.({ limit: "quota", atUs, isAwaited: false, latestUs: atUs, words: `quota ${rule.text.quota}` });
  return atUs;
}

/** Spends units and says in which period. */
export function quotaTake(key: Key, quota: QuotaRule, units: number): number {
  const rest = key.needRest();
  const used = quotaUsed(key, quota);
  const { index } = key.calendar.periodAt(quota, key.calendar.wallMs());
  rest.quotaPeriod = Math.max(rest.quotaPeriod, index);
  rest.quotaUsed = used + units;
  return rest.quotaPeriod;
}

/** Returns units spent in `period`; what was spent in an earlier one is forgiven already. */
export function quotaGiveBack(key: Key, period: number, units: number): void {
  const { rest } = key;
  if (rest?.quotaPeriod === period) rest.quotaUsed = Math.max(0, rest.quotaUsed - units);
}

/** When the period ends in which something was spent; `nowUs` when nothing was. */
export function quotaOwesUntil(key: Key, rule: Rule, nowUs: number): number {
  const { quota } = rule;
  if (quota === undefined || quotaUsed(key, quota) === 0) return nowUs;
  const { calendar } = key;
  const wallMs = calendar.wallMs();
  return nowUs + Math.max(1, Math.ceil((calendar.periodAt(quota, wallMs).endsAtMs - wallMs) * 1000));
}
