import type { PolicyInput } from "politely";
import { longPoleOf } from "./longPole.js";
import type { Plan, PlanOptions, PlanProgress } from "./plan.js";
import { PlanTask } from "./planTask.js";

/**
 * Plans a run: `counts` says how many requests each key has, all of them asked for at the beginning, in the order of the map.
 *
 * Runs the engine on virtual time. Hosts that share nothing are planned once for each rule; with `global` or `concurrency`
 * every start of every host is played through, about 5 s for a million. Takes no notice of `maxWait` and `maxQueue`, of robots.txt
 * and of bad answers. Throws `PolicyError` for a policy that is none, `RangeError` for an option or a count that makes no sense.
 */
export function planRun(counts: ReadonlyMap<string, number>, policy: PolicyInput, options: PlanOptions = {}): Plan {
  const steps = planSteps(counts, policy, options);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The same in small steps, for those who have something else to do meanwhile. */
export function* planSteps(
  counts: ReadonlyMap<string, number>,
  policy: PolicyInput,
  options: PlanOptions = {},
): Generator<PlanProgress, Plan> {
  const task = new PlanTask(counts, policy, options);
  const hosts = yield* task.hosts(task.rules, task.shared);
  const { latencyMs } = task.assumed;
  const isEstimate = hosts.some(({ starts, requests }) => starts.length < requests);
  const longPole = yield* longPoleOf(task, hosts, options.hasWhatIf ?? true);
  return {
    requests: task.requests,
    durationMs: hosts[0]?.endsAtMs ?? 0,
    isEstimate,
    latencyMs,
    concurrency: options.concurrency,
    hosts,
    longPole,
  };
}
