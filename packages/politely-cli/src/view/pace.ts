/** How far back a pace looks, at least. */
const SPAN_MS = 60_000;
/** Growth closer together than this is one step. */
const STEP_MS = 1_000;
/** So many make a pace, however long they took. */
const LEAST = 5;

/**
 * The pace of a count that grows: over the last minute, or over its last five where these took longer.
 *
 * So a long cooldown at the beginning is forgotten after a minute, and short ones that come again and again are a part of the pace.
 */
export class Pace {
  // At most one for each step of the span, five before it, and the newest. The oldest first.
  readonly #looks: { readonly atMs: number; readonly count: number }[] = [];
  #count: number | undefined;
  #grewAtMs = 0;

  /** Notes what the count is at `nowMs`. Time runs from the first growth: what came before was the way there. */
  look(nowMs: number, count: number): void {
    const hasGrown = this.#count !== undefined && count !== this.#count;
    this.#count = count;
    if (!hasGrown) return;
    this.#grewAtMs = nowMs;
    const newest = this.#looks.at(-1);
    if (newest === undefined || nowMs - newest.atMs >= STEP_MS) this.#looks.push({ atMs: nowMs, count });
    while (this.#canDropOldest(nowMs, count)) this.#looks.shift();
  }

  /** Time for one more; undefined before five came after the first. It grows while nothing comes. */
  msEach(nowMs: number): number | undefined {
    const oldest = this.#looks[0];
    if (oldest === undefined || this.#count === undefined) return undefined;
    const grown = this.#count - oldest.count;
    if (grown < LEAST) return undefined;
    return Math.max((this.#grewAtMs - oldest.atMs) / grown, (nowMs - oldest.atMs) / (grown + 1));
  }

  #canDropOldest(nowMs: number, count: number): boolean {
    const second = this.#looks[1];
    return second !== undefined && nowMs - second.atMs >= SPAN_MS && count - second.count >= LEAST;
  }
}
