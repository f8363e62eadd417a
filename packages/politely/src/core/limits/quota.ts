import type { Calendar } from "../calendar.js";
import type { Ahead, Cost, Key, Tell } from "../key.js";
import type { Rule } from "../rule.js";

/** Units spent in the present period. The period only grows: a wall clock set back stays in the one it was in. */
export function quotaUsed({ rest, calendar }: Key, quota: Calendar): number {
  const use = rest?.quota;
  if (use === undefined) return 0;
  return calendar.periodAt(quota, calendar.wallMs()).startsAtMs > use.period ? 0 : use.used;
}

/** At most `count` units in each period of the calendar. The instant may move when the wall clock does. */
export function quotaReadyAt(key: Key, rule: Rule, cost: Cost, nowUs: number, ahead: Ahead, tell?: Tell): number {
  const { quota } = rule;
  if (quota === undefined || quotaUsed(key, quota) + cost.quota + ahead.units.quota <= quota.count) return nowUs;
  const atUs = periodEndUs(key, quota, nowUs);
  tell?.("quota", atUs, `quota ${rule.text.quota}`);
  return atUs;
}

function periodEndUs({ calendar }: Key, quota: Calendar, nowUs: number): number {
  const wallMs = calendar.wallMs();
  return nowUs + Math.max(1, Math.ceil((calendar.periodAt(quota, wallMs).endsAtMs - wallMs) * 1000));
}

/** Spends units and says in which period. A start of so long ago that it was in an earlier one spends nothing of this. */
export function quotaTake(key: Key, { per, timeZone }: Calendar, units: number, agoUs: number): number {
  const quota = { per, timeZone };
  const { calendar } = key;
  const wallMs = calendar.wallMs();
  const period = calendar.periodAt(quota, wallMs).startsAtMs;
  if (agoUs > 0 && wallMs - agoUs / 1000 < period) return -1;
  key.needRest().quota = { per, timeZone, period, used: quotaUsed(key, quota) + units };
  return period;
}

/** Returns units spent in `period`; what was spent in an earlier one is forgiven already. */
export function quotaGiveBack({ rest }: Key, period: number, units: number): void {
  const use = rest?.quota;
  if (rest !== undefined && use?.period === period) rest.quota = { ...use, used: Math.max(0, use.used - units) };
}

/** When the period ends in which something was spent, also of a quota that the rule has no more; `nowUs` when nothing was. */
export function quotaOwesUntil(key: Key, nowUs: number): number {
  const use = key.rest?.quota;
  return use === undefined || quotaUsed(key, use) === 0 ? nowUs : periodEndUs(key, use, nowUs);
}
