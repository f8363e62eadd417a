import { formatDuration } from "../../policy/duration.js";
import {
  type AuditRule,
  type Crowd,
  closestPair,
  crowdedRun,
  fullestPeriod,
  fullestRun,
  greatestCrowd,
  overflowingRun,
  type Run,
  type UnitsOf,
} from "./runs.js";
import { type Asked, sorted, type Timeline, type Trace } from "./trace.js";
import type { AuditViolation, IgnoredRetryAfter } from "./types.js";

/** What one key is judged by. */
export interface Case {
  readonly trace: Trace;
  /** Everything that was counted under the key. */
  readonly ids: Uint32Array;
  readonly timeline: Timeline;
  readonly rule: AuditRule;
  /** What an entry took from a kind of limit. */
  readonly unitsOf: (id: number, kind: "rate" | "window" | "quota") => number;
  readonly wallAtZeroMs: number;
  readonly maxProof: number;
}

/** What a limit says of what broke it. */
type Finding = Pick<AuditViolation, "limit" | "allowed" | "found" | "says"> & { readonly text: string | undefined };

/** The tightest violation of each limit of the rule, in the order in which the policy's fields are documented. */
export function judgeKey(it: Case): AuditViolation[] {
  const { rule } = it;
  const windows = rule.windows.map((window, index) => windowViolation(it, window, rule.text.windows[index]));
  const found = [gapViolation(it), rateViolation(it), ...windows, quotaViolation(it), concurrencyViolation(it)];
  return found.filter((violation) => violation !== undefined);
}

function gapViolation(it: Case): AuditViolation | undefined {
  const { rule, timeline } = it;
  const { gapUs } = rule;
  if (gapUs === 0) return undefined;
  const spanOf = ({ first, last }: Run): number => timeline.hi[last] - timeline.lo[first];
  const pair = closestPair(timeline);
  const isTooClose = pair !== undefined && spanOf(pair) < gapUs;
  const run = isTooClose ? pair : crowdedRun(timeline, 1, gapUs);
  const { minDelay: text } = rule.text;
  if (run !== undefined) {
    const spanUs = spanOf(run);
    const isExact = [run.first, run.last].every((index) => timeline.lo[index] === timeline.hi[index]);
    const apart = isExact ? formatDuration(spanUs) : `less than ${formatDuration(spanUs + 1)}`;
    const says = isTooClose
      ? `two starts ${apart} apart, at least ${text} asked for`
      : `${run.units} starts within ${formatDuration(spanUs + 1)}, at least ${text} from one to the next asked for`;
    const found = Math.floor(spanUs / (run.units - 1)) / 1000;
    return byRun(it, run, { limit: "minDelay", text, allowed: gapUs / 1000, found, says });
  }
  return sinceAnswer(it, { most: 1, perUs: gapUs, unitsOf: () => 1 }, (found) => {
    const says = `a start while ${found - 1} before it had been answered less than ${text} ago, or not at all`;
    return { limit: "minDelay", text, allowed: 1, found, says };
  });
}

function rateViolation(it: Case): AuditViolation | undefined {
  const { rule, timeline } = it;
  const { rateCount: count, ratePerUs: perUs, burst } = rule;
  const run = count === 0 ? undefined : overflowingRun(timeline, rule, unitsAt(it, "rate"));
  if (run === undefined) return undefined;
  const spanUs = run.first === run.last ? 0 : timeline.hi[run.last] - timeline.lo[run.first];
  const allowed = Math.floor(burst + (spanUs * count) / perUs);
  const { rate: text } = rule.text;
  const says = `${amount(run)} within ${formatDuration(spanUs)}, at most ${allowed} allowed by rate ${text}`;
  return byRun(it, run, { limit: "rate", text, allowed, found: run.units, says });
}

function windowViolation(
  it: Case,
  { count, perUs }: AuditRule["windows"][number],
  text: string | undefined,
): AuditViolation | undefined {
  const { timeline, unitsOf } = it;
  const units = unitsAt(it, "window");
  const window = { limit: "window", text, allowed: count } as const;
  const within = formatDuration(perUs);
  const fullest = fullestRun(timeline, perUs, units);
  if (fullest === undefined) return undefined;
  if (fullest.units > count) {
    const says = `${amount(fullest)} within ${within}, at most ${count} allowed by window ${text}`;
    return byRun(it, fullest, { ...window, found: fullest.units, says });
  }
  // Starts of unequal cost could be told apart in one interval, and looking at them in one order would not be fair.
  const cost = units(0);
  const isEqual = timeline.ids.every((_, index) => units(index) === cost);
  const crowded = isEqual ? crowdedRun(timeline, Math.floor(count / cost), perUs) : undefined;
  if (crowded !== undefined) {
    const span = formatDuration(timeline.hi[crowded.last] - timeline.lo[crowded.first] + 1);
    const found = crowded.units * cost;
    const allowed = crowded.allowed * cost;
    const says = `${amount({ ...crowded, units: found })} within ${span}, at most ${allowed} fit there by window ${text}`;
    return byRun(it, crowded, { ...window, allowed, found, says });
  }
  return sinceAnswer(it, { most: count, perUs, unitsOf: (id) => unitsOf(id, "window") }, (found) => {
    const says = `${found} units in flight or answered within ${within}, at most ${count} allowed by window ${text}`;
    return { ...window, found, says };
  });
}

function quotaViolation(it: Case): AuditViolation | undefined {
  const { timeline, rule } = it;
  const { quota } = rule;
  if (quota === undefined) return undefined;
  const period = fullestPeriod(timeline, quota, unitsAt(it, "quota"), it.wallAtZeroMs);
  if (period === undefined) return undefined;
  const { count: allowed, per, timeZone } = quota;
  const { quota: text } = rule.text;
  const says = `${amount(period)} in one ${per} of ${timeZone}, at most ${allowed} allowed by quota ${text}`;
  return byRun(it, period, { limit: "quota", text, allowed, found: period.units, says });
}

function concurrencyViolation(it: Case): AuditViolation | undefined {
  const { trace, ids, rule } = it;
  const { concurrency: allowed, maxHoldUs } = rule;
  if (allowed === Number.POSITIVE_INFINITY) return undefined;
  // A place that was never given back is free again after maxHold.
  const untilUs = (id: number): number => Math.min(trace.endOf(id), trace.loOf(id) + maxHoldUs);
  const crowd = greatestCrowd(trace, ids, { untilUs, unitsOf: () => 1 });
  if (crowd === undefined || crowd.units <= allowed) return undefined;
  const says = `${crowd.units} in flight at once, at most ${allowed} allowed`;
  const finding = { limit: "concurrency", text: rule.text.concurrency, allowed, found: crowd.units, says } as const;
  return byCrowd(it, crowd, finding, "start");
}

/** The greatest crowd of starts that are in flight, or were answered less than `perUs` ago. Where no end is known, the start is all there is to count from. */
function sinceAnswer(
  it: Case,
  { most, perUs, unitsOf }: { readonly most: number; readonly perUs: number; readonly unitsOf: (id: number) => number },
  say: (found: number) => Finding,
): AuditViolation | undefined {
  const { trace, timeline, rule } = it;
  if (!rule.fromAnswer) return undefined;
  const untilUs = (id: number): number => {
    const loUs = trace.loOf(id);
    const endUs = trace.endOf(id);
    return Math.min(Number.isNaN(endUs) ? loUs : endUs, loUs + rule.maxHoldUs) + perUs;
  };
  const crowd = greatestCrowd(trace, timeline.ids, { untilUs, unitsOf });
  return crowd !== undefined && crowd.units > most ? byCrowd(it, crowd, say(crowd.units), "answer") : undefined;
}

function unitsAt({ timeline, unitsOf }: Case, kind: "rate" | "window" | "quota"): UnitsOf {
  return (index) => unitsOf(timeline.ids[index], kind);
}

function byRun(it: Case, { first, last }: Run, finding: Finding): AuditViolation {
  const { lo, hi, ids } = it.timeline;
  const span = { fromMs: lo[first] / 1000, untilMs: hi[last] / 1000 };
  return violation(it, finding, { ...span, countFrom: "start" }, ids.subarray(first, last + 1));
}

function byCrowd(it: Case, { ids, atUs }: Crowd, finding: Finding, countFrom: "start" | "answer"): AuditViolation {
  const fromUs = ids.reduce((least, id) => Math.min(least, it.trace.loOf(id)), atUs);
  return violation(it, finding, { fromMs: fromUs / 1000, untilMs: atUs / 1000, countFrom }, ids);
}

function violation(
  { trace, maxProof }: Case,
  { text = "", ...finding }: Finding,
  place: Pick<AuditViolation, "fromMs" | "untilMs" | "countFrom">,
  ids: Uint32Array,
): AuditViolation {
  const named = ids.length <= maxProof ? [...ids] : [...ids.subarray(0, maxProof - 1), ids[ids.length - 1]];
  return { ...finding, text, ...place, proof: named.map((id) => trace.mark(id)), proofCount: ids.length };
}

/** Starts where each took one unit, else units. */
function amount({ units, first, last }: Run): string {
  const starts = last - first + 1;
  return units === starts ? `${units} ${starts === 1 ? "start" : "starts"}` : `${units} units in ${starts} starts`;
}

/**
 * Finds the starts that surely came after an answer and before the time it had asked for was over.
 *
 * A start at or before the answer was on the way already. Of all answers there have been, the one that asks to stay away longest
 * counts. At most `most` are named, those that were earliest by most; all are counted.
 */
export function ignoredRetryAfters(trace: Trace, ids: Uint32Array, asked: readonly Asked[], most: number) {
  const answers = asked.toSorted((one, other) => one.answered.hi - other.answered.hi);
  const starts = asked.length === 0 ? ids.subarray(0, 0) : ids.filter((id) => trace.isSent(id));
  let found: { readonly id: number; readonly by: Asked; readonly earlyUs: number }[] = [];
  const worst = (): typeof found =>
    found.toSorted((one, other) => other.earlyUs - one.earlyUs || one.id - other.id).slice(0, most);
  let count = 0;
  let heard = 0;
  let longest: Asked | undefined;
  for (const id of sorted(starts, (each) => trace.loOf(each))) {
    for (; heard < answers.length && answers[heard].answered.hi < trace.loOf(id); heard += 1) {
      if (longest === undefined || untilOf(answers[heard]) > untilOf(longest)) longest = answers[heard];
    }
    if (longest === undefined || trace.hiOf(id) >= untilOf(longest)) continue;
    count += 1;
    found.push({ id, by: longest, earlyUs: untilOf(longest) - trace.hiOf(id) });
    if (found.length >= 1_000 + most) found = worst();
  }
  return { count, worst: worst().map(({ id, by, earlyUs }) => described(trace, id, by, earlyUs)) };
}

/** The earliest that the time asked for can have been over. */
function untilOf({ answered, waitUs }: Asked): number {
  return answered.lo + waitUs;
}

function described(trace: Trace, id: number, by: Asked, earlyUs: number): IgnoredRetryAfter {
  const isExact = trace.loOf(id) === trace.hiOf(id);
  // Nobody wants to read the microseconds of a minute.
  const roundUs = earlyUs >= 1_000_000 ? 1_000 : 1;
  const early = formatDuration(Math.floor(earlyUs / roundUs) * roundUs);
  const says = `started ${isExact ? "" : "at least "}${early} before a Retry-After of ${formatDuration(by.waitUs)} was over`;
  const times = { retryAfterMs: by.waitUs / 1000, earlyMs: earlyUs / 1000 };
  return { asked: trace.mark(by.id), start: trace.mark(id), ...times, says };
}
