import type { Rule } from "../core/rule.js";
import type { SharedRule, StopKind, Units } from "./operation.js";

/** The part of a rule that a store needs. */
export function sharedRuleOf(rule: Rule): SharedRule {
  const isBounded = rule.concurrency !== Number.POSITIVE_INFINITY;
  return {
    gapUs: rule.gapUs,
    rateCount: rule.rateCount,
    ratePerUs: rule.ratePerUs,
    burst: rule.burst,
    windows: rule.windows.flatMap(({ count, perUs, grainUs }) => [count, perUs, grainUs]),
    quota: rule.quota?.count ?? 0,
    calendar: rule.quota === undefined ? "" : `${rule.quota.per} ${rule.quota.timeZone}`,
    concurrency: isBounded ? rule.concurrency : 0,
    fromAnswer: rule.fromAnswer,
  };
}

/** A text that is the same for the same numbers. */
export function ruleIdOf(rule: SharedRule): string {
  const { gapUs, rateCount, ratePerUs, burst, windows, quota, calendar, concurrency, fromAnswer } = rule;
  const numbers = [gapUs, rateCount, ratePerUs, burst, windows.join(" "), quota, concurrency, fromAnswer ? 1 : 0];
  return `${numbers.join(",")},${calendar}`;
}

/** The numbers of one limit of a rule, by which a stop says what it is about, whoever's policy that is: count, time in microseconds, burst. */
export function limitNumbers(rule: SharedRule, kind: StopKind, window: number): string {
  if (kind === "minDelay") return String(rule.gapUs);
  if (kind === "rate") return `${rule.rateCount}/${rule.ratePerUs}/${rule.burst}`;
  if (kind === "window") return `${rule.windows[3 * window]}/${rule.windows[3 * window + 1]}`;
  return kind === "quota" ? `${rule.quota} ${rule.calendar}` : String(rule.concurrency);
}

/** Whether somebody has to know who is in flight. */
export function isFollowed({ concurrency, fromAnswer }: SharedRule): boolean {
  return concurrency > 0 || fromAnswer;
}

/**
 * One part of a rule when it is divided among `parts` processes that cannot speak to one another, with room for a request of this cost.
 *
 * In the long run the parts add up to at most the whole for gaps, rates and windows: where a part has to be larger for the cost to fit, a window is longer in
 * turn. What cannot be divided, a place or what one request takes of a quota or burst, each process has at least once.
 */
export function partOf(rule: SharedRule, parts: number, cost: Units): SharedRule {
  const share = (count: number, least: number): number => Math.max(1, least, Math.floor(count / parts));
  const windows: number[] = [];
  for (let index = 0; index < rule.windows.length; index += 3) {
    const [count, perUs, grainUs] = rule.windows.slice(index, index + 3);
    const own = share(count, cost.window);
    windows.push(own, perUs * Math.ceil(Math.max(1, (own * parts) / count)), grainUs);
  }
  const burst = share(rule.burst, cost.rate);
  return {
    ...rule,
    gapUs: rule.gapUs * parts,
    ratePerUs: Math.min(rule.ratePerUs * parts, Math.floor(Number.MAX_SAFE_INTEGER / burst / 2)),
    burst,
    windows,
    quota: rule.quota === 0 ? 0 : share(rule.quota, cost.quota),
    concurrency: rule.concurrency === 0 ? 0 : share(rule.concurrency, 1),
  };
}
