import type { Limits, PolicyInput } from "politely";
import { planAlone } from "./alone.js";
import { longRunGapMs } from "./pace.js";
import type { PlanOptions } from "./plan.js";
import { PlanTask } from "./planTask.js";

/** Tells how long a run still takes, again and again while it goes. */
export interface Estimator {
  /**
   * How long it takes until the last answer, in milliseconds, with `left` requests at each key; 0 when none is left.
   *
   * A key is taken to be on schedule: as many of its requests have started as are no longer left. Costs one look-up for each key.
   */
  remainingMs(left: ReadonlyMap<string, number>): number;
}

/** Starts that are planned one by one, over all rules together. Beyond its share of them a rule goes on at the pace it has in the long run. */
const MOST_STARTS = 200_000;
const LEAST_PER_RULE = 64;

/**
 * Makes an estimator for a run of `totals` requests at each key. Takes at most about a second, whatever the list.
 *
 * The estimate is exact for hosts that share nothing and have up to 200,000 requests by the number of rules. Hosts that share a budget
 * (`global`, `concurrency`) need at least this long: the slowest host alone, or all requests through that budget. Keys that
 * `totals` does not have count as new ones under the default limits. Throws as `planRun` does.
 */
export function createEstimator(
  totals: ReadonlyMap<string, number>,
  policy: PolicyInput,
  options: PlanOptions = {},
): Estimator {
  const task = new PlanTask(totals, policy, options);
  const { rules, shared, assumed } = task;
  const courses = new Map<Limits | undefined, Course>();
  const most = new Map<Limits | undefined, number>();
  for (const [key, total] of totals) {
    const limits = rules.get(key)?.limits;
    most.set(limits, Math.max(total, most.get(limits) ?? 0));
  }
  const share = Math.max(LEAST_PER_RULE, Math.floor(MOST_STARTS / (most.size + 1)));
  const courseOf = (limits: Limits | undefined, count: number): Course => {
    let course = courses.get(limits);
    if (course === undefined) {
      const { starts } = finish(planAlone(limits, Math.max(1, Math.min(count, share)), assumed));
      course = { starts, gapMs: limits === undefined ? 0 : longRunGapMs(limits, assumed.latencyMs) };
      courses.set(limits, course);
    }
    return course;
  };

  return {
    remainingMs(left) {
      let longestMs = 0;
      let leftInAll = 0;
      for (const [key, count] of left) {
        if (count <= 0) continue;
        const rule = rules.get(key) ?? task.ruleOf(key);
        const total = Math.max(count, totals.get(key) ?? count);
        longestMs = Math.max(longestMs, spanMs(courseOf(rule.limits, most.get(rule.limits) ?? count), count, total));
        if (rule.limits !== undefined) leftInAll += count;
      }
      if (shared !== undefined && leftInAll > 0) {
        const total = Math.max(leftInAll, task.requests);
        longestMs = Math.max(longestMs, spanMs(courseOf(shared, total), leftInAll, total));
      }
      return [...left.values()].some((count) => count > 0) ? longestMs + assumed.latencyMs : 0;
    },
  };
}

/** The curve of a rule, and how it goes on. */
interface Course {
  readonly starts: Float64Array;
  readonly gapMs: number;
}

/** From the start before the last `left` of `total` requests to the last start. */
function spanMs(course: Course, left: number, total: number): number {
  return startMs(course, total - 1) - (left === total ? 0 : startMs(course, total - left - 1));
}

/** When the start with that number, from 0, takes place: as planned, or beyond that at the pace of the long run. */
function startMs({ starts, gapMs }: Course, index: number): number {
  const last = starts.length - 1;
  return index <= last ? starts[index] : starts[last] + (index - last) * gapMs;
}

function finish<Result>(steps: Generator<unknown, Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
