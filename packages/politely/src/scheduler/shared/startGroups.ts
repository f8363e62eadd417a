import type { Units } from "../../core/shared/operation.js";

/** Groups that are kept, at most. */
const GROUPS_MOST = 1_024;
/** When there are more, starts are put together that are closer to one another than this part of their age. */
const AGE_PART = 256;
/** What is younger than this counts as this old then. */
const AGE_LEAST_US = 1_000;

/** Some starts that count as of one instant, on this process's clock. */
export interface StartGroup {
  /** The instant of the first of them. */
  readonly fromUs: number;
  /** The instant of the last of them, at which all are counted. */
  readonly atUs: number;
  readonly count: number;
  /** What they took together, for each key. */
  readonly units: readonly Units[];
}

/**
 * Remembers any number of starts in bounded memory: 1,024 groups at most, the oldest first.
 *
 * No start is dropped, and none counts as of an earlier instant than its own, so nothing is forgiven. Where there are too many to
 * tell apart, a start counts as of a later one; by the less the younger it is.
 */
export class StartGroups {
  #groups: StartGroup[] = [];

  get groups(): readonly StartGroup[] {
    return this.#groups;
  }

  /** Adds starts. Those before the newest count as of that, as in the log of a window. */
  add(startedUs: number, count: number, units: readonly Units[]): void {
    const group = { fromUs: startedUs, atUs: startedUs, count, units };
    const last = this.#groups.length - 1;
    if (last >= 0 && this.#groups[last].atUs >= startedUs) {
      this.#groups[last] = together(this.#groups[last], { ...group, atUs: this.#groups[last].atUs });
      return;
    }
    this.#groups.push(group);
    if (this.#groups.length > GROUPS_MOST) this.#coarsen(startedUs);
  }

  /** Forgets what was before an instant, but never the newest group. */
  forgetBefore(us: number): void {
    const first = this.#groups.findIndex(({ atUs }) => atUs >= us);
    this.#groups.splice(0, first < 0 ? this.#groups.length - 1 : first);
  }

  #coarsen(nowUs: number): void {
    for (let part = AGE_PART; this.#groups.length > GROUPS_MOST / 2; part /= 2) {
      const merged: StartGroup[] = [];
      for (const group of this.#groups) {
        const last = merged.length - 1;
        const spanUs = Math.max(AGE_LEAST_US, nowUs - group.atUs) / part;
        if (last >= 0 && group.atUs - merged[last].fromUs <= spanUs) merged[last] = together(merged[last], group);
        else merged.push(group);
      }
      this.#groups = merged;
    }
  }
}

function together(one: StartGroup, later: StartGroup): StartGroup {
  const units = one.units.map(({ rate, window, quota }, index) => {
    const more = later.units[index];
    return { rate: rate + more.rate, window: window + more.window, quota: quota + more.quota };
  });
  return { fromUs: one.fromUs, atUs: later.atUs, count: one.count + later.count, units };
}
