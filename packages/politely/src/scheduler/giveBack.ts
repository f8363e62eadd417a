import { rateOwedAt, rateOwedWithout } from "../shared/rate.js";
import type { Cost } from "./cost.js";
import { countedWindows } from "./formerLimits.js";
import type { Ledger, Taken } from "./ledger.js";
import { ROW } from "./slab.js";

const { LAST_US, OWED, SEEN_US, UNITS } = ROW;

/** Gives back what an open start took; see `Ledger.giveBack`. */
export function giveBack(ledger: Ledger, taken: Taken, unused: Cost, nowUs: number, isWhole: boolean): void {
  const { slot } = taken;
  const { rule } = ledger.profileOf(slot);
  const { words, halves } = ledger.slab.chunkOf(slot);
  const word = ledger.slab.wordOf(slot);
  const laterUnits = slot === taken.slot ? ledger.unitsSince(taken, slot) : Number.POSITIVE_INFINITY;
  if (unused.rate < 0) halves[2 * word + UNITS] -= unused.rate;
  if (rule.rateCount !== 0 && unused.rate !== 0) {
    const owed = rateOwedAt(rule.rateCount, words[word + OWED], words[word + SEEN_US], nowUs);
    words[word + OWED] =
      unused.rate > 0
        ? rateOwedWithout(owed, unused.rate * rule.ratePerUs, laterUnits * rule.ratePerUs)
        : Math.min(Number.MAX_SAFE_INTEGER, owed - unused.rate * rule.ratePerUs);
    words[word + SEEN_US] = nowUs;
  }
  if (isWhole && laterUnits === 0) words[word + LAST_US] = taken.previousUs;
  const isLogged = taken.hold?.isLogged ?? true;
  if (isLogged && laterUnits < Number.POSITIVE_INFINITY && unused.window !== 0) {
    countedWindows(ledger, slot, nowUs).forEach((window, index) => {
      ledger.logs.adjust(ledger.log(slot, index), window, taken.startedUs, -unused.window, nowUs);
    });
  }
  if (rule.quota !== undefined && !ledger.ties.isForgiven(taken, slot)) {
    ledger.quotas.giveBack(slot, taken.period, unused.quota);
  }
}
