import type { WindowSpec } from "./spec.js";

/** A start as windows count it. */
export interface CountedStart {
  readonly atUs: number;
  readonly units: number;
  /** It was returned: the site never saw it. */
  isUnused: boolean;
  /** Its key may have been forgotten, but for its last start, after it was returned. */
  isForgotten: boolean;
}

interface Kept extends WindowSpec {
  readonly untilUs: number;
}

/**
 * What windows that change know of the starts made before: at least what is said in docs/decisions/0001, at most everything.
 *
 * A window in force knows the starts inside it, as far as twice its count. One that became shorter or smaller, or went away beside others, is
 * remembered until nothing that was inside it at the change would be. The last start is always known, if only as one unit; while
 * there is no window, of the starts made meanwhile no other is.
 */
export class WindowMemory {
  readonly all: CountedStart[] = [];
  #known: { readonly start: CountedStart; readonly units: number }[] = [];
  #kept: Kept | undefined = undefined;

  constructor(public windows: readonly WindowSpec[]) {}

  start(atUs: number, units: number, isUnused = false): CountedStart {
    const start = { atUs, units, isUnused, isForgotten: false };
    this.all.push(start);
    if (this.windows.length > 0) this.#known.push({ start, units });
    return start;
  }

  /** Puts other windows in force. */
  change(next: readonly WindowSpec[], nowUs: number): void {
    const kept = this.#kept !== undefined && this.#kept.untilUs > nowUs ? [this.#kept] : [];
    const before = [...this.windows.map((window) => ({ ...window, untilUs: nowUs + window.perUs })), ...kept];
    const gone = before.filter(
      (window) =>
        !next.some(({ count, perUs }) => count >= window.count && perUs >= window.perUs) &&
        this.#inside(window, nowUs).length > 0,
    );
    const inside = new Set(before.flatMap((window) => this.#inside(window, nowUs)));
    const last = this.all.at(-1);
    this.#known = this.#known.filter((each) => inside.has(each));
    if (last !== undefined && !this.#known.some(({ start }) => start === last)) {
      this.#known.push({ start: last, units: 1 });
    }
    this.#kept = gone.length === 0 ? undefined : united(gone, next);
    this.windows = next;
  }

  /** A key that owes nothing may be forgotten, but for when its last start was, returned or not. */
  mayForget(nowUs: number): void {
    for (const start of this.all) start.isForgotten = start.isUnused;
    const all = this.#kept === undefined ? this.windows : [...this.windows, this.#kept];
    if (all.every((window) => this.#inside(window, nowUs).length === 0)) this.#kept = undefined;
  }

  /** Whether units must be refused, since starts that are known for certain leave no room. */
  mustRefuse(units: number, nowUs: number): boolean {
    return this.windows.some(({ count, perUs }) => {
      const inside = this.#known.filter(({ start }) => !start.isUnused && start.atUs + perUs > nowUs);
      return inside.reduce((sum, each) => sum + each.units, units) > count;
    });
  }

  /** Whether units must be granted, since all starts ever made leave room. */
  mustGrant(units: number, nowUs: number): boolean {
    return this.windows.every(({ count, perUs }) => {
      const inside = this.all.filter((start) => (!start.isUnused || start.isForgotten) && start.atUs + perUs > nowUs);
      return inside.reduce((sum, start) => sum + start.units, units) <= count;
    });
  }

  /** The newest starts in a window that its log has for certain. */
  #inside({ count, perUs }: WindowSpec, nowUs: number): { readonly start: CountedStart; readonly units: number }[] {
    const inside = this.#known.filter(({ start }) => !start.isUnused && start.atUs + perUs > nowUs);
    let units = 0;
    return inside
      .toReversed()
      .filter((each) => {
        const isIn = units < 2 * count;
        units += each.units;
        return isIn;
      })
      .toReversed();
  }
}

function united(gone: readonly Kept[], next: readonly WindowSpec[]): Kept {
  return {
    count: Math.max(...[...gone, ...next].map(({ count }) => count)),
    perUs: Math.max(...gone.map(({ perUs }) => perUs)),
    untilUs: Math.max(...gone.map(({ untilUs }) => untilUs)),
  };
}
