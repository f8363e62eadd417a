import { defaultHoldUs, hourUs, type LimitSpec, type RateSpec, type WindowSpec } from "./spec.js";
import { type Hold, inOrder, type Start } from "./trace.js";

/*
 * Each checker looks at every start, or every pair of starts, and says the first thing that is wrong, or undefined.
 * Nothing here is clever: it is what a person would do with the list and a pencil.
 */

/** Finds an interval of length P, open on one side, that holds more than N units. Unused starts do not count. */
export function windowViolation(
  trace: readonly Start[],
  { count, perUs }: WindowSpec,
  sinceUs = -Infinity,
): string | undefined {
  const starts = inOrder(trace).filter((start) => start.unused !== true);
  for (const last of starts) {
    if (last.atUs < sinceUs) continue;
    // (t, t + P] with its end at this start.
    const inside = starts.filter((start) => start.atUs > last.atUs - perUs && start.atUs <= last.atUs);
    const units = sum(inside.map((start) => start.cost));
    if (units > BigInt(count)) {
      return `${units} units in the ${perUs} µs up to ${last.atUs}, ${count} allowed`;
    }
  }
  return undefined;
}

/** Finds two starts whose closed span holds more than `burst + count * span / per` units. Unused starts do not count. */
export function bucketViolation(trace: readonly Start[], { count, perUs, burst }: RateSpec): string | undefined {
  const starts = inOrder(trace).filter((start) => start.unused !== true);
  for (let first = 0; first < starts.length; first++) {
    let units = 0n;
    for (let last = first; last < starts.length; last++) {
      units += BigInt(starts[last].cost);
      const spanUs = BigInt(starts[last].atUs - starts[first].atUs);
      if (units * BigInt(perUs) > BigInt(burst) * BigInt(perUs) + BigInt(count) * spanUs) {
        return `${units} units from ${starts[first].atUs} to ${starts[last].atUs} µs, burst ${burst} at ${count} per ${perUs} µs`;
      }
    }
  }
  return undefined;
}

/** Finds two starts closer than the gap. Unused starts do not count. */
export function gapViolation(trace: readonly Start[], gapUs: number, sinceUs = -Infinity): string | undefined {
  const starts = inOrder(trace).filter((start) => start.unused !== true);
  for (let index = 1; index < starts.length; index++) {
    const betweenUs = starts[index].atUs - starts[index - 1].atUs;
    if (starts[index].atUs >= sinceUs && betweenUs < gapUs) {
      return `starts at ${starts[index - 1].atUs} and ${starts[index].atUs} µs are ${betweenUs} apart, gap ${gapUs}`;
    }
  }
  return undefined;
}

/** Finds a start made while `limit` others were in flight. A place given back at the same instant is free. */
export function concurrencyViolation(
  trace: readonly Start[],
  limit: number,
  maxHoldUs = defaultHoldUs,
): string | undefined {
  const starts = inOrder(trace);
  for (let index = 0; index < starts.length; index++) {
    const { atUs } = starts[index];
    const others = starts.filter((other, place) => place < index && answeredUs(other, maxHoldUs) > atUs);
    if (others.length >= limit) return `start at ${atUs} µs with ${others.length} in flight, ${limit} allowed`;
  }
  return undefined;
}

/** Finds a start made when the units in flight, or answered less than P ago, left no room for it. */
export function answerWindowViolation(
  trace: readonly Start[],
  { count, perUs }: WindowSpec,
  maxHoldUs = defaultHoldUs,
): string | undefined {
  const starts = inOrder(trace).filter((start) => start.unused !== true);
  for (let index = 0; index < starts.length; index++) {
    const { atUs, cost } = starts[index];
    const occupying = starts.filter((other, place) => place < index && answeredUs(other, maxHoldUs) + perUs > atUs);
    const units = sum(occupying.map((start) => start.cost)) + BigInt(cost);
    if (units > BigInt(count)) return `${units} units open or answered within ${perUs} µs of ${atUs}, ${count} allowed`;
  }
  return undefined;
}

/** Finds a start made less than the gap after the answer of any earlier one. */
export function answerGapViolation(
  trace: readonly Start[],
  gapUs: number,
  maxHoldUs = defaultHoldUs,
): string | undefined {
  if (gapUs === 0) return undefined;
  const starts = inOrder(trace).filter((start) => start.unused !== true);
  for (let index = 0; index < starts.length; index++) {
    const { atUs } = starts[index];
    const open = starts.find((other, place) => place < index && answeredUs(other, maxHoldUs) + gapUs > atUs);
    if (open !== undefined) return `start at ${atUs} µs, but that of ${open.atUs} was answered less than ${gapUs} ago`;
  }
  return undefined;
}

/** Finds an hour of the wall clock with more than `count` units. `wallUs` is the wall time of instant 0. */
export function hourQuotaViolation(trace: readonly Start[], count: number, wallUs: number): string | undefined {
  const hours = new Map<number, bigint>();
  for (const start of trace) {
    if (start.unused === true) continue;
    const hour = Math.floor((wallUs + start.atUs) / hourUs);
    const units = (hours.get(hour) ?? 0n) + BigInt(start.cost);
    hours.set(hour, units);
    if (units > BigInt(count)) return `${units} units in hour ${hour}, ${count} allowed`;
  }
  return undefined;
}

/** Finds a start inside a hold. The instants at both ends are allowed. */
export function holdViolation(trace: readonly Start[], holds: readonly Hold[]): string | undefined {
  for (const { fromUs, untilUs } of holds) {
    const inside = trace.find(({ atUs }) => atUs > fromUs && atUs < untilUs);
    if (inside !== undefined) return `start at ${inside.atUs} µs inside the hold from ${fromUs} to ${untilUs}`;
  }
  return undefined;
}

/** Checks every limit of a spec; the first thing wrong, with the kind of limit before it. */
export function specViolation(trace: readonly Start[], spec: LimitSpec, wallUs = 0): string | undefined {
  const { gapUs, rate, windows = [], hourQuota, concurrency, fromAnswer, maxHoldUs = defaultHoldUs } = spec;
  const found: (readonly [string, string | undefined])[] = [];
  if (rate !== undefined) found.push(["rate", bucketViolation(trace, rate)]);
  if (gapUs !== undefined) found.push(["gap", gapViolation(trace, gapUs)]);
  for (const window of windows) found.push(["window", windowViolation(trace, window)]);
  if (fromAnswer === true) {
    if (gapUs !== undefined) found.push(["answer gap", answerGapViolation(trace, gapUs, maxHoldUs)]);
    for (const window of windows) found.push(["answer window", answerWindowViolation(trace, window, maxHoldUs)]);
  }
  if (hourQuota !== undefined) found.push(["quota", hourQuotaViolation(trace, hourQuota, wallUs)]);
  if (concurrency !== undefined) found.push(["concurrency", concurrencyViolation(trace, concurrency, maxHoldUs)]);
  const first = found.find(([, problem]) => problem !== undefined);
  return first === undefined ? undefined : `${first[0]}: ${first[1]}`;
}

/** When a start stopped being in flight: its release, or `maxHold` after the start. */
export function answeredUs(start: Start, maxHoldUs: number): number {
  return Math.min(start.releasedUs ?? Number.POSITIVE_INFINITY, start.atUs + maxHoldUs);
}

function sum(costs: readonly number[]): bigint {
  return costs.reduce((total, cost) => total + BigInt(cost), 0n);
}
