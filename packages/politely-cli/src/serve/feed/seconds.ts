/** How many seconds a timeline goes back. */
export const TIMELINE_SECONDS = 120;
/** Over how many of them a rate is taken. */
const RATE_SECONDS = 10;

/**
 * Counts starts and refusals by the site in each of the last 120 seconds.
 *
 * Instants are milliseconds of one monotonic clock. What is older than the newest second by 120 or more is not counted. A
 * count stops at what a cell of `cells` can hold.
 */
export class Seconds {
  #newestSec = Number.NEGATIVE_INFINITY;
  #firstMs = Number.POSITIVE_INFINITY;
  readonly #most: number;

  /** `cells` has room for 240 numbers, all 0. */
  constructor(readonly cells: Uint16Array | Uint32Array = new Uint16Array(2 * TIMELINE_SECONDS)) {
    this.#most = 2 ** (8 * cells.BYTES_PER_ELEMENT) - 1;
  }

  started(atMs: number): void {
    this.#firstMs = Math.min(this.#firstMs, atMs);
    this.#count(atMs, 0);
  }

  throttled(atMs: number): void {
    this.#count(atMs, TIMELINE_SECONDS);
  }

  /**
   * Starts a second over the last ten whole seconds: under 1/s that is 1, and not a little more or less each time. Where the first start is not that long ago, over
   * the time since then, at least one second.
   */
  perSecond(nowMs: number): number {
    const second = Math.floor(nowMs / 1_000);
    this.#turnTo(second);
    const isNew = this.#firstMs > (second - RATE_SECONDS) * 1_000;
    let starts = isNew ? (this.cells[cellOf(second)] ?? 0) : 0;
    for (let back = 1; back <= RATE_SECONDS; back++) starts += this.cells[cellOf(second - back)] ?? 0;
    return (starts * 1_000) / (isNew ? Math.max(nowMs - this.#firstMs, 1_000) : RATE_SECONDS * 1_000);
  }

  /** Both counts of the last 120 seconds, the oldest first. */
  lists(nowMs: number): { readonly starts: number[]; readonly throttled: number[] } {
    this.#turnTo(Math.floor(nowMs / 1_000));
    const cells = Array.from({ length: TIMELINE_SECONDS }, (_, index) =>
      cellOf(this.#newestSec - TIMELINE_SECONDS + 1 + index),
    );
    return {
      starts: cells.map((cell) => this.cells[cell] ?? 0),
      throttled: cells.map((cell) => this.cells[cell + TIMELINE_SECONDS] ?? 0),
    };
  }

  #count(atMs: number, offset: number): void {
    const second = Math.floor(atMs / 1_000);
    this.#turnTo(second);
    if (second <= this.#newestSec - TIMELINE_SECONDS) return;
    const cell = cellOf(second) + offset;
    this.cells[cell] = Math.min(this.#most, (this.cells[cell] ?? 0) + 1);
  }

  /** Empties the cells of the seconds that begin now. A second that has passed changes nothing. */
  #turnTo(second: number): void {
    if (second - this.#newestSec >= TIMELINE_SECONDS) {
      this.cells.fill(0);
      this.#newestSec = second;
    }
    while (this.#newestSec < second) {
      this.#newestSec += 1;
      const cell = cellOf(this.#newestSec);
      this.cells[cell] = 0;
      this.cells[cell + TIMELINE_SECONDS] = 0;
    }
  }
}

function cellOf(second: number): number {
  return ((second % TIMELINE_SECONDS) + TIMELINE_SECONDS) % TIMELINE_SECONDS;
}
