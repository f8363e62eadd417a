import { type Permit, type PolicyInput, politely } from "politely";
import { VirtualClock } from "politely/testing";
import type { Plan } from "../../src/plan/plan.js";
import type { PlayOptions } from "./playThrough.js";

/** What an engine had against a plan. */
export interface Objections {
  /** Starts of the plan that the limits did not allow. */
  readonly refused: readonly string[];
  /** Starts that were possible at a moment when something happened, and that the plan did not make. */
  readonly left: readonly string[];
}

/** Plays a plan's starts to a limiter with the whole policy, one moment after the other. Each start must be granted, and after them nobody else. */
export function replay(plan: Plan, policy: PolicyInput, { latencyMs, wallMs }: PlayOptions): Objections {
  const clock = new VirtualClock({ wallMs });
  const limiter = politely(policy, { clock });
  const flight: { readonly atMs: number; readonly permit: Permit }[] = [];
  const next = new Map(plan.hosts.map(({ key }) => [key, 0]));
  const refused: string[] = [];
  const left: string[] = [];
  const moments = plan.hosts.flatMap(({ starts }) => [...starts].flatMap((ms) => [ms, wholeUs(ms + latencyMs)]));
  for (const ms of [...new Set(moments)].sort((a, b) => a - b)) {
    clock.stall(Math.max(0, ms - clock.now()));
    while (flight.length > 0 && flight[0].atMs <= ms) flight.shift()?.permit.release("success");
    // Several starts of one moment may have been made in any order; those of no latency free their place for each other.
    for (const { key, starts } of plan.hosts) {
      for (let index = next.get(key) ?? 0; starts[index] === ms; index++) {
        next.set(key, index + 1);
        const permit = limiter.tryAcquire(key);
        if (permit === undefined) refused.push(`${key} at ${ms}`);
        else if (latencyMs === 0) permit.release("success");
        else flight.push({ atMs: wholeUs(ms + latencyMs), permit });
      }
    }
    for (const { key, requests } of plan.hosts) {
      if ((next.get(key) ?? 0) < requests && limiter.check(key).proceed) left.push(`${key} at ${ms}`);
    }
  }
  return { refused, left };
}

/** The nearest whole microsecond, without what a sum of binary fractions adds. */
function wholeUs(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
