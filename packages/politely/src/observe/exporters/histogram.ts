/** Counts numbers by size. Bounds are upper ones, included; what is larger than the last is counted too. */
export class Histogram {
  /** Not cumulative; the last place is for what is beyond all bounds. */
  readonly counts: number[];
  sum = 0;
  count = 0;

  constructor(readonly bounds: readonly number[]) {
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  add(value: number): void {
    const { bounds, counts } = this;
    let index = 0;
    while (index < bounds.length && value > bounds[index]) index += 1;
    counts[index] += 1;
    this.sum += value;
    this.count += 1;
  }

  /** Adds what another with the same bounds has counted. */
  absorb(other: Histogram): void {
    other.counts.forEach((count, index) => {
      this.counts[index] += count;
    });
    this.sum += other.sum;
    this.count += other.count;
  }
}

/** Upper bounds of waits, in seconds. The alarm of waits is at 5. */
export const WAIT_BOUNDS: readonly number[] = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300];
/** Upper bounds of intervals between starts, in seconds. The alarms of a limit of 2 s are at 1.5 and 3. */
export const INTERVAL_BOUNDS: readonly number[] = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 5, 10, 30, 60];
/** Upper bounds of how many were in flight when one started. */
export const IN_FLIGHT_BOUNDS: readonly number[] = [1, 2, 3, 5, 10, 20, 50, 100];
