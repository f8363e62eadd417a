import type { Plan } from "./plan.js";

/**
 * The most requests of a plan that are in flight at one moment, of those whose starts are known.
 *
 * An answer that comes at the very moment of a start has left before it.
 */
export function peakInFlight({ hosts, latencyMs }: Pick<Plan, "hosts" | "latencyMs">): number {
  const starts = new Float64Array(hosts.reduce((sum, host) => sum + host.starts.length, 0));
  let end = 0;
  for (const host of hosts) {
    starts.set(host.starts, end);
    end += host.starts.length;
  }
  starts.sort();
  let first = 0;
  let peak = 0;
  for (let index = 0; index < starts.length; index++) {
    while (first < index && starts[first] + latencyMs <= starts[index]) first += 1;
    peak = Math.max(peak, index - first + 1);
  }
  return peak;
}
