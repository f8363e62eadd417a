import type { Units } from "../../shared/operation.js";
import type { Plan } from "./plan.js";
import { countedForUs } from "./recollection.js";
import { groupsFor, StartLog } from "./startLog.js";

/** Lanes of which starts are kept, at most. */
const LANES_MOST = 100_000;
/** When there are so many, what no limit counts any more is looked for, at most so often. */
const TIDY_US = 1_000_000;

/** The starts of one lane that a store does not know of. */
export interface MissedLane<Note> {
  /** Whose they are, as of the first. */
  readonly note: Note;
  readonly log: StartLog;
}

/** Some starts at one instant of this process's clock; `units` for each key, undefined for one of everything. */
export interface StartsMade {
  readonly startedUs: number;
  readonly count: number;
  readonly units: readonly Units[] | undefined;
}

/**
 * The starts that a store does not know of, lane by lane: 100,000 lanes at most, each in at most 256 groups of 24 bytes, or in fewer where there are many.
 *
 * No start is dropped while a limit counts it.
 */
export class MissedLanes<Note extends { readonly plan: Plan }> {
  readonly #lanes = new Map<string, MissedLane<Note>>();
  #tidiedUs = Number.NEGATIVE_INFINITY;
  #isSaid = false;

  get size(): number {
    return this.#lanes.size;
  }

  /** Whether a start at these keys can be remembered. */
  hasRoomFor(storeKeys: readonly string[], nowUs: number): boolean {
    if (this.#lanes.size < LANES_MOST || this.#lanes.has(nameOf(storeKeys))) return true;
    this.#tidy(nowUs);
    return this.#lanes.size < LANES_MOST;
  }

  /** Adds starts. False when there is no room for them. */
  add(note: Note, { startedUs, count, units }: StartsMade, nowUs: number): boolean {
    const { storeKeys } = note.plan;
    if (!this.hasRoomFor(storeKeys, nowUs)) return false;
    const name = nameOf(storeKeys);
    let lane = this.#lanes.get(name);
    if (lane === undefined) {
      lane = { note, log: new StartLog(storeKeys.length) };
      this.#lanes.set(name, lane);
    }
    if (lane.log.add(startedUs, count, units)) lane.log.trim(Number.NEGATIVE_INFINITY, groupsFor(this.#lanes.size));
    return true;
  }

  /** Hands over the lane that is known for longest; undefined when there is none. */
  take(): MissedLane<Note> | undefined {
    for (const [name, lane] of this.#lanes) {
      this.#lanes.delete(name);
      this.#isSaid = false;
      return lane;
    }
    return undefined;
  }

  /** Says that there is no room, once until there is. */
  sayFull(say: (message: string) => void, store: string): void {
    if (this.#isSaid) return;
    this.#isSaid = true;
    say(
      `the starts of ${LANES_MOST} lanes wait to be told to ${store}: others wait until it is back, and what is recorded there by hand is not told. Use fewer hosts in one process, or outage "closed"`,
    );
  }

  #tidy(nowUs: number): void {
    if (nowUs < this.#tidiedUs + TIDY_US) return;
    this.#tidiedUs = nowUs;
    for (const [name, { note, log }] of this.#lanes) {
      const forUs = Math.max(...note.plan.keys.map(({ shared }) => countedForUs(shared)));
      if (log.lastUs + forUs <= nowUs) this.#lanes.delete(name);
    }
  }
}

function nameOf(storeKeys: readonly string[]): string {
  return storeKeys.length === 1 ? storeKeys[0] : storeKeys.join("\n");
}
