import type { Cost } from "../cost.js";
import { costAt, type LaneCost } from "../lane.js";

/** Whether two costs are the same at every key. */
export function isSameCost(one: LaneCost, other: LaneCost): boolean {
  if (one === other) return true;
  const count = Math.max(Array.isArray(one) ? one.length : 1, Array.isArray(other) ? other.length : 1);
  for (let index = 0; index < count; index++) {
    if (!isEqual(costAt(one, index), costAt(other, index))) return false;
  }
  return true;
}

function isEqual(one: Cost, other: Cost): boolean {
  return one.rate === other.rate && one.window === other.window && one.quota === other.quota;
}
