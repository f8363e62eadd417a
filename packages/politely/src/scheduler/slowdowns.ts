import type { Adaptive } from "../core/adaptive.js";
import type { Holds } from "../core/key.js";
import type { Slab } from "./slab.js";
import { HAS_SLOWDOWN } from "./slab.js";

/** Who asks a key to be slower than its policy: the site's headers, its robots.txt, or what was learned from its answers. */
export type SlowdownSource = "headers" | "robots" | "adaptive";

/** All of them, in a fixed order. */
export const SOURCES: readonly SlowdownSource[] = ["headers", "robots", "adaptive"];

type Row = Pick<Holds, SlowdownSource>;

/** Which keys are to be slower than their policy, and until when. */
export class Slowdowns {
  /** What the answers of keys with an adaptive rule have taught, by row. At full speed there is no slowdown, and still something to know. */
  readonly learned = new Map<number, Adaptive>();
  readonly #rows = new Map<number, Row>();

  constructor(readonly slab: Slab) {}

  /** Sets or, with undefined, takes away what one source asks of a key. */
  set<Source extends SlowdownSource>(slot: number, source: Source, slowdown: Row[Source]): void {
    const row = this.#rows.get(slot) ?? {};
    row[source] = slowdown;
    if (SOURCES.every((each) => row[each] === undefined)) this.#clear(slot);
    else {
      this.#rows.set(slot, row);
      this.slab.setFlag(slot, HAS_SLOWDOWN, true);
    }
  }

  get<Source extends SlowdownSource>(slot: number, source: Source): Row[Source] {
    return this.#rows.get(slot)?.[source];
  }

  /** When a start is possible for all that one source asks, gaps running from `spacedFromUs`; minus infinity when it asks nothing. What is over is forgotten. */
  readyAt(slot: number, source: SlowdownSource, spacedFromUs: number, nowUs: number): number {
    const slowdown = this.#rows.get(slot)?.[source];
    if (slowdown === undefined) return Number.NEGATIVE_INFINITY;
    if (slowdown.untilUs <= nowUs) {
      this.set(slot, source, undefined);
      return Number.NEGATIVE_INFINITY;
    }
    const { gapUs, holdUntilUs, untilUs } = slowdown;
    return Math.min(untilUs, gapUs === 0 ? holdUntilUs : Math.max(holdUntilUs, spacedFromUs + gapUs));
  }

  /** Every source that is not content with a start now, in a fixed order. */
  *causes(slot: number, spacedFromUs: number, nowUs: number): Iterable<{ source: SlowdownSource; atUs: number }> {
    for (const source of SOURCES) {
      const atUs = this.readyAt(slot, source, spacedFromUs, nowUs);
      if (atUs > nowUs) yield { source, atUs };
    }
  }

  /** Whether forgetting the key would be a gift. What robots.txt asks is asked again with the next request, so only its running gap counts. */
  isOwed(slot: number, lastUs: number, nowUs: number): boolean {
    const row = this.#rows.get(slot);
    if (row === undefined) return false;
    return SOURCES.some((source) => {
      // Before the first start, or after a reset of pacing, what is asked stops nobody and is owed all the same.
      const readyUs = this.readyAt(slot, source, lastUs, nowUs);
      return source === "robots" ? readyUs > nowUs : row[source] !== undefined;
    });
  }

  /** Forgets everything about a key, what was learned included. */
  forget(slot: number): void {
    this.learned.delete(slot);
    this.#clear(slot);
  }

  #clear(slot: number): void {
    if (this.#rows.delete(slot)) this.slab.setFlag(slot, HAS_SLOWDOWN, false);
  }
}
