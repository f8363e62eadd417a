import { formatDuration } from "../../policy/duration.js";
import { overflowingRun } from "./bucket.js";
import type { Entries } from "./entries.js";
import { type Crowd, greatestCrowd } from "./occupancy.js";
import { type AuditRule, fullestPeriod } from "./quota.js";
import { closestPair, crowdedRun, fullestRun, type Run } from "./spacing.js";
import type { Timeline } from "./timeline.js";
import type { AuditLimit, AuditViolation } from "./types.js";

/** What one key is judged by. */
export interface Case {
  readonly entries: Entries;
  /** Everything that was counted under the key. */
  readonly ids: Uint32Array;
  readonly timeline: Timeline;
  readonly rule: AuditRule;
  /** What an entry took from a kind of limit. */
  readonly unitsOf: (id: number, kind: "rate" | "window" | "quota") => number;
  readonly wallAtZeroMs: number;
  readonly maxProof: number;
}

/** The tightest violation of each limit of the rule, in the order in which the policy's fields are documented. */
export function judgeKey(it: Case): AuditViolation[] {
  const { rule } = it;
  const found = [gapViolation(it), rateViolation(it)];
  for (const [index, window] of rule.windows.entries()) {
    found.push(windowViolation(it, window, rule.text.windows[index] ?? ""));
  }
  found.push(quotaViolation(it), concurrencyViolation(it));
  return found.filter((violation) => violation !== undefined);
}

function gapViolation(it: Case): AuditViolation | undefined {
  const { rule, timeline } = it;
  const { gapUs } = rule;
  if (gapUs === 0) return undefined;
  const pair = closestPair(timeline);
  const isTooClose = pair !== undefined && timeline.hi[pair.last] - timeline.lo[pair.first] < gapUs;
  const run = isTooClose ? pair : crowdedRun(timeline, 1, gapUs);
  const text = rule.text.minDelay ?? "";
  if (run !== undefined) {
    const spanUs = timeline.hi[run.last] - timeline.lo[run.first];
    const foundUs = Math.floor(spanUs / (run.units - 1));
    const isExact =
      timeline.lo[run.first] === timeline.hi[run.first] && timeline.lo[run.last] === timeline.hi[run.last];
    const apart = isExact ? formatDuration(spanUs) : `less than ${formatDuration(spanUs + 1)}`;
    const says = isTooClose
      ? `two starts ${apart} apart, at least ${text} asked for`
      : `${run.units} starts within ${formatDuration(spanUs + 1)}, at least ${text} from one to the next asked for`;
    return byRun(it, run, { limit: "minDelay", text, allowed: gapUs / 1000, found: foundUs / 1000, says });
  }
  if (!rule.fromAnswer) return undefined;
  const crowd = sinceAnswer(it, gapUs, () => 1);
  if (crowd === undefined || crowd.units <= 1) return undefined;
  const says = `a start while ${crowd.units - 1} before it had been answered less than ${text} ago, or not at all`;
  return byCrowd(it, crowd, { limit: "minDelay", text, allowed: 1, found: crowd.units, says }, "answer");
}

function rateViolation(it: Case): AuditViolation | undefined {
  const { rule, timeline, unitsOf } = it;
  const { rateCount: count, ratePerUs: perUs, burst } = rule;
  if (count === 0) return undefined;
  const run = overflowingRun(timeline, { count, perUs, burst }, (index) => unitsOf(timeline.ids[index], "rate"));
  if (run === undefined) return undefined;
  const text = rule.text.rate ?? "";
  const spanUs = run.first === run.last ? 0 : timeline.hi[run.last] - timeline.lo[run.first];
  const allowed = Math.floor(burst + (spanUs * count) / perUs);
  const says = `${amount(run.units, run)} within ${formatDuration(spanUs)}, at most ${allowed} allowed by rate ${text}`;
  return byRun(it, run, { limit: "rate", text, allowed, found: run.units, says });
}

function windowViolation(it: Case, window: AuditRule["windows"][number], text: string): AuditViolation | undefined {
  const { rule, timeline, unitsOf } = it;
  const { count, perUs } = window;
  const units = (index: number): number => unitsOf(timeline.ids[index], "window");
  const fullest = fullestRun(timeline, perUs, units);
  if (fullest === undefined) return undefined;
  if (fullest.units > count) {
    const says = `${amount(fullest.units, fullest)} within ${formatDuration(perUs)}, at most ${count} allowed by window ${text}`;
    return byRun(it, fullest, { limit: "window", text, allowed: count, found: fullest.units, says });
  }
  // Starts of unequal cost could be told apart in one interval, and looking at them in one order would not be fair.
  const cost = units(0);
  const isEqual = timeline.ids.every((_, index) => units(index) === cost);
  const crowded = isEqual ? crowdedRun(timeline, Math.floor(count / cost), perUs) : undefined;
  if (crowded !== undefined) {
    const spanUs = timeline.hi[crowded.last] - timeline.lo[crowded.first] + 1;
    const found = crowded.units * cost;
    const allowed = crowded.allowed * cost;
    const says = `${amount(found, crowded)} within ${formatDuration(spanUs)}, at most ${allowed} fit there by window ${text}`;
    return byRun(it, crowded, { limit: "window", text, allowed, found, says });
  }
  if (!rule.fromAnswer) return undefined;
  const crowd = sinceAnswer(it, perUs, (id) => unitsOf(id, "window"));
  if (crowd === undefined || crowd.units <= count) return undefined;
  const says = `${crowd.units} units in flight or answered within ${formatDuration(perUs)}, at most ${count} allowed by window ${text}`;
  return byCrowd(it, crowd, { limit: "window", text, allowed: count, found: crowd.units, says }, "answer");
}

function quotaViolation(it: Case): AuditViolation | undefined {
  const { rule, timeline, unitsOf } = it;
  const { quota } = rule;
  if (quota === undefined) return undefined;
  const units = (index: number): number => unitsOf(timeline.ids[index], "quota");
  const period = fullestPeriod(timeline, quota, units, it.wallAtZeroMs);
  if (period === undefined) return undefined;
  const text = rule.text.quota ?? "";
  const says = `${amount(period.units, period)} in one ${quota.per} of ${quota.timeZone}, at most ${quota.count} allowed by quota ${text}`;
  return byRun(it, period, { limit: "quota", text, allowed: quota.count, found: period.units, says });
}

function concurrencyViolation(it: Case): AuditViolation | undefined {
  const { rule, entries, ids } = it;
  const { concurrency, maxHoldUs } = rule;
  if (concurrency === Number.POSITIVE_INFINITY) return undefined;
  // A place that was never given back is free again after maxHold.
  const untilUs = (id: number): number => Math.min(entries.endOf(id), entries.loOf(id) + maxHoldUs);
  const crowd = greatestCrowd(entries, ids, { untilUs, unitsOf: () => 1 });
  if (crowd === undefined || crowd.units <= concurrency) return undefined;
  const says = `${crowd.units} in flight at once, at most ${concurrency} allowed`;
  const text = rule.text.concurrency ?? "";
  return byCrowd(it, crowd, { limit: "concurrency", text, allowed: concurrency, found: crowd.units, says }, "start");
}

/** The greatest crowd of starts that are in flight, or were answered less than `perUs` ago. Where no end is known, the start is all there is to count from. */
function sinceAnswer(
  { entries, timeline, rule }: Case,
  perUs: number,
  unitsOf: (id: number) => number,
): Crowd | undefined {
  const untilUs = (id: number): number => {
    const loUs = entries.loOf(id);
    const endUs = entries.endOf(id);
    return Math.min(Number.isNaN(endUs) ? loUs : endUs, loUs + rule.maxHoldUs) + perUs;
  };
  return greatestCrowd(entries, timeline.ids, { untilUs, unitsOf });
}

interface Finding {
  readonly limit: AuditLimit;
  readonly text: string;
  readonly allowed: number;
  readonly found: number;
  readonly says: string;
}

function byRun(it: Case, { first, last }: Pick<Run, "first" | "last">, finding: Finding): AuditViolation {
  const { timeline } = it;
  const span = { fromMs: timeline.lo[first] / 1000, untilMs: timeline.hi[last] / 1000 };
  return { ...finding, ...span, countFrom: "start", ...proofOf(it, timeline.ids.subarray(first, last + 1)) };
}

function byCrowd(it: Case, crowd: Crowd, finding: Finding, countFrom: "start" | "answer"): AuditViolation {
  const fromUs = crowd.ids.reduce((least, id) => Math.min(least, it.entries.loOf(id)), crowd.atUs);
  return { ...finding, fromMs: fromUs / 1000, untilMs: crowd.atUs / 1000, countFrom, ...proofOf(it, crowd.ids) };
}

function proofOf({ entries, maxProof }: Case, ids: Uint32Array): Pick<AuditViolation, "proof" | "proofCount"> {
  const named = ids.length <= maxProof ? [...ids] : [...ids.subarray(0, maxProof - 1), ids[ids.length - 1]];
  return { proof: named.map((id) => entries.mark(id)), proofCount: ids.length };
}

/** Starts where each took one unit, else units. */
function amount(units: number, { first, last }: Pick<Run, "first" | "last">): string {
  const starts = last - first + 1;
  return units === starts ? `${units} ${starts === 1 ? "start" : "starts"}` : `${units} units in ${starts} starts`;
}
