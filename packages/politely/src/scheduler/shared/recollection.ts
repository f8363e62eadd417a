import type { TakeReply } from "../../core/shared/operation.js";
import { costAt, type LaneCost } from "../lane.js";
import type { Cost } from "../ledger.js";
import type { Plan } from "./plan.js";
import { pauseEndUs } from "./stopWords.js";

/** Lanes and keys of which something is remembered, at most; of more, those longest known are forgotten. */
const LANES_MOST = 10_000;
/** Answers with starts that are remembered for each lane, at most. */
const ANSWERS_MOST = 1_000;
/** From so many on, those that no limit counts any more are dropped. */
const ANSWERS_MANY = 64;
/** What holds a key whoever asks. The other limits follow from the starts that are counted. */
const HOLDS: readonly string[] = ["cooldown", "headers", "pause", "quota"];

/** Some starts that the store granted together. Instants are of this process's clock. */
export interface RecentStarts {
  readonly atUs: number;
  readonly count: number;
  readonly cost: Cost;
}

/** A key that is to be left alone for a while. */
export interface Hold {
  readonly untilUs: number;
  readonly kind: "cooldown" | "headers" | "pause" | "quota";
  readonly because: string;
  /** The store's time when it said so. */
  readonly saidUs: number;
}

/**
 * What this process has been told by a store, for the time when that is away: a store that goes forgives nothing.
 *
 * Instants are of this process's clock.
 */
export class Recollection {
  readonly #starts = new Map<string, RecentStarts[]>();
  readonly #holds = new Map<string, Hold>();

  /** Notes what a store answered. */
  heard(plan: Plan, cost: LaneCost, { nowUs: saidUs, starts, stop }: TakeReply, nowUs: number): void {
    const { storeKeys } = plan;
    if (starts.length > 0) {
      storeKeys.forEach((key, index) => {
        this.#note(key, plan, { atUs: nowUs, count: starts.length, cost: costAt(cost, index) });
      });
      // Whoever starts is not held: what was known is over, or somebody ended it.
      for (const key of storeKeys) if ((this.#holds.get(key)?.saidUs ?? saidUs) < saidUs) this.#holds.delete(key);
    }
    if (stop === undefined || !isHold(stop.kind)) return;
    const endUs = stop.kind === "pause" ? pauseEndUs(stop) : stop.readyUs;
    const untilUs = nowUs + Math.max(0, endUs - saidUs);
    const because = stop.kind === "pause" ? "" : stop.because;
    this.hold(storeKeys[stop.key], { untilUs, kind: stop.kind, because, saidUs });
  }

  /** Somebody here has ended the pause of a key. */
  resumed(storeKey: string): void {
    if (this.#holds.get(storeKey)?.kind === "pause") this.#holds.delete(storeKey);
  }

  /** Notes that a key is to be left alone. */
  hold(storeKey: string, hold: Hold): void {
    const known = this.#holds.get(storeKey);
    if (known !== undefined && known.untilUs >= hold.untilUs) return;
    forgetFirst(this.#holds);
    this.#holds.set(storeKey, hold);
  }

  /** What holds one of these keys longest, and which; undefined when nothing does. */
  holdOf({ storeKeys }: Plan, nowUs: number): { readonly hold: Hold; readonly index: number } | undefined {
    let found: { readonly hold: Hold; readonly index: number } | undefined;
    storeKeys.forEach((key, index) => {
      const hold = this.#holds.get(key);
      if (hold === undefined || hold.untilUs <= nowUs) return;
      if (found === undefined || hold.untilUs > found.hold.untilUs) found = { hold, index };
    });
    return found;
  }

  /** Gives the starts at a key that are remembered, the oldest first, and forgets them. */
  takeStarts(storeKey: string): readonly RecentStarts[] {
    const starts = this.#starts.get(storeKey) ?? [];
    this.#starts.delete(storeKey);
    return starts;
  }

  #note(name: string, plan: Plan, starts: RecentStarts): void {
    let known = this.#starts.get(name);
    if (known === undefined) {
      forgetFirst(this.#starts);
      known = [];
      this.#starts.set(name, known);
    }
    known.push(starts);
    if (known.length % ANSWERS_MANY !== 0) return;
    const sinceUs = starts.atUs - countedForUs(plan);
    const first = known.findIndex(({ atUs }) => atUs > sinceUs);
    known.splice(0, Math.max(first, known.length - ANSWERS_MOST));
  }
}

function isHold(kind: string): kind is Hold["kind"] {
  return HOLDS.includes(kind);
}

function forgetFirst(known: Map<string, unknown>): void {
  if (known.size < LANES_MOST) return;
  for (const [name] of known) {
    known.delete(name);
    return;
  }
}

/** For how long a start matters to any limit of a plan. */
function countedForUs({ keys }: Plan): number {
  let longestUs = 0;
  for (const { shared } of keys) {
    const { gapUs, rateCount, ratePerUs, burst, windows, quota } = shared;
    const bucketUs = rateCount === 0 ? 0 : (burst * ratePerUs) / rateCount;
    longestUs = Math.max(longestUs, gapUs, bucketUs, quota > 0 ? Number.POSITIVE_INFINITY : 0);
    for (let index = 1; index < windows.length; index += 3) longestUs = Math.max(longestUs, windows[index]);
  }
  return longestUs;
}
