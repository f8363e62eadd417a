import type { HostPlan } from "./plan.js";

/**
 * How busy a host is over time, in `cells` equal parts of `spanMs`: 0 for nothing, 1 for its busiest part. Parts after its end are -1.
 *
 * A start counts over the time until the next one, so that an even pace looks even however it falls on the parts.
 */
export function densityOf({ starts, requests, endsAtMs }: HostPlan, spanMs: number, cells: number): number[] {
  const cellMs = Math.max(spanMs, 0.001) / cells;
  const sums = new Float64Array(cells);
  const known = starts.length;
  for (let index = 0; index < known; index++) {
    const fromMs = starts[index];
    const toMs = Math.max(fromMs, index + 1 < known ? starts[index + 1] : known === requests ? endsAtMs : fromMs);
    spread(sums, fromMs / cellMs, toMs / cellMs);
  }
  // What lies beyond the horizon goes on as before.
  if (known < requests && known > 0) spread(sums, starts[known - 1] / cellMs, endsAtMs / cellMs, requests - known);
  const most = sums.reduce((top, sum) => Math.max(top, sum), 0);
  const last = Math.min(cells, Math.max(1, Math.ceil(endsAtMs / cellMs - 1e-9)));
  return Array.from(sums, (sum, cell) => (cell >= last ? -1 : most === 0 ? 0 : sum / most));
}

/** Adds `amount` to the cells from one place to another, each its part. */
function spread(sums: Float64Array, from: number, to: number, amount = 1): void {
  const last = sums.length - 1;
  const first = Math.min(last, Math.floor(from));
  const end = Math.min(last, Math.floor(to));
  if (end === first) {
    sums[first] += amount;
    return;
  }
  for (let cell = first; cell <= end; cell++) {
    const part = Math.min(to, cell + 1) - Math.max(from, cell);
    sums[cell] += (amount * Math.max(0, part)) / (to - from);
  }
}
