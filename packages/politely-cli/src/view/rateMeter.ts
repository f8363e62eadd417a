/** How far back a rate looks. */
const SPAN_MS = 5_000;
/** Looks closer together than this change nothing. */
const STEP_MS = 100;

/** How fast a count grows now: over the last five seconds, or since the first look where that is less. */
export class RateMeter {
  // At most SPAN_MS / STEP_MS looks and one more, oldest first.
  readonly #looks: { readonly atMs: number; readonly count: number }[] = [];

  /** Notes what the count is at `nowMs`, and returns its growth a second; 0 at the first look. */
  look(nowMs: number, count: number): number {
    const newest = this.#looks.at(-1);
    if (newest === undefined || nowMs - newest.atMs >= STEP_MS) this.#looks.push({ atMs: nowMs, count });
    while (this.#looks.length > 2 && nowMs - (this.#looks[1]?.atMs ?? nowMs) >= SPAN_MS) this.#looks.shift();
    const oldest = this.#looks[0];
    if (oldest === undefined || nowMs <= oldest.atMs) return 0;
    return ((count - oldest.count) * 1_000) / (nowMs - oldest.atMs);
  }
}
