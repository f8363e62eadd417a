import type { QuotaRule, Rule } from "../core/rule.js";
import { rateReadyAt } from "../shared/rate.js";
import type { Ledger } from "./ledger.js";
import { ROW } from "./slab.js";
import { SOURCES } from "./slowdowns.js";

const { OWED, SEEN_US } = ROW;

// Until when a row owes something, in one place: who lets rows go, who takes limits away and who makes new keys of old ones ask here.

/** When nothing is owed to the gap, bucket, windows and quota of a row any more; at or before `nowUs` when nothing is now. Starts in flight come on top. */
export function paidAt(ledger: Ledger, slot: number, nowUs: number): number {
  const { rule } = ledger.profileOf(slot);
  let atUs = nowUs;
  if (rule.gapUs !== 0) atUs = Math.max(atUs, ledger.gapAt(slot));
  if (rule.rateCount !== 0) atUs = Math.max(atUs, bucketPaidAt(ledger, slot, rule));
  for (let index = 0; index < rule.windows.length; index++) {
    const handle = ledger.log(slot, index);
    const window = rule.windows[index];
    if (ledger.logs.used(handle, window, nowUs) > 0) {
      atUs = Math.max(atUs, ledger.logs.newestUs(handle) + window.perUs);
    }
  }
  return rule.quota === undefined ? atUs : Math.max(atUs, quotaPaidAt(ledger, slot, rule.quota, nowUs));
}

/** When nothing is owed to a bucket whose debt the row has. */
export function bucketPaidAt(ledger: Ledger, slot: number, { rateCount }: Pick<Rule, "rateCount">): number {
  const { words } = ledger.slab.chunkOf(slot);
  const word = ledger.slab.wordOf(slot);
  return rateReadyAt(rateCount, words[word + OWED], words[word + SEEN_US], 0);
}

/** When the period ends in which something of a quota was spent; now when nothing was. */
export function quotaPaidAt(ledger: Ledger, slot: number, quota: QuotaRule, nowUs: number): number {
  return ledger.quotas.readyAt(slot, quota, quota.count, nowUs);
}

/** When nothing is owed at a row for any reason, whoever has asked for it. Starts in flight come on top. */
export function owesUntil(ledger: Ledger, slot: number, nowUs: number): number {
  const stops = [
    ledger.cooldowns.get(slot)?.untilUs,
    ledger.pauses.get(slot),
    ledger.former.get(slot)?.untilUs,
    ...SOURCES.map((source) => ledger.slowdowns.get(slot, source)?.untilUs),
  ];
  return stops.reduce<number>((latestUs, untilUs = nowUs) => Math.max(latestUs, untilUs), paidAt(ledger, slot, nowUs));
}
