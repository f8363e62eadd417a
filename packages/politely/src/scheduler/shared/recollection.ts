import type { TakeReply } from "../../core/shared/operation.js";
import { times } from "../../core/shared/record.js";
import { costAt, type LaneCost } from "../lane.js";
import type { Plan } from "./plan.js";
import { type StartGroup, StartGroups } from "./startGroups.js";
import { pauseEndUs } from "./stopWords.js";

/** Lanes and keys of which something is remembered, at most; of more, those longest known are forgotten. */
const LANES_MOST = 10_000;
/** From so many groups of starts on, those that no limit counts any more are dropped. */
const GROUPS_MANY = 64;
/** What holds a key whoever asks. The other limits follow from the starts that are counted. */
const HOLDS: readonly string[] = ["cooldown", "headers", "pause", "quota"];

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
  readonly #starts = new Map<string, StartGroups>();
  readonly #holds = new Map<string, Hold>();

  /** Notes what a store answered. */
  heard(plan: Plan, cost: LaneCost, { nowUs: saidUs, starts, stop }: TakeReply, nowUs: number): void {
    const { storeKeys } = plan;
    if (starts.length > 0) {
      this.started(plan, cost, { startedUs: nowUs, count: starts.length });
      // Whoever starts is not held: what was known is over, or somebody ended it.
      for (const key of storeKeys) if ((this.#holds.get(key)?.saidUs ?? saidUs) < saidUs) this.#holds.delete(key);
    }
    if (stop === undefined || !isHold(stop.kind)) return;
    const endUs = stop.kind === "pause" ? pauseEndUs(stop) : stop.readyUs;
    const untilUs = nowUs + Math.max(0, endUs - saidUs);
    const because = stop.kind === "pause" ? "" : stop.because;
    this.hold(storeKeys[stop.key], { untilUs, kind: stop.kind, because, saidUs });
  }

  /** Notes starts that the store knows of: it granted them, or was told. */
  started(
    plan: Plan,
    cost: LaneCost,
    { startedUs, count }: { readonly startedUs: number; readonly count: number },
  ): void {
    plan.storeKeys.forEach((key, index) => {
      let known = this.#starts.get(key);
      if (known === undefined) {
        forgetFirst(this.#starts);
        known = new StartGroups();
        this.#starts.set(key, known);
      }
      known.add(startedUs, count, [times(costAt(cost, index), count)]);
      if (known.groups.length % GROUPS_MANY === 0) known.forgetBefore(startedUs - countedForUs(plan));
    });
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
  takeStarts(storeKey: string): readonly StartGroup[] {
    const groups = this.#starts.get(storeKey)?.groups ?? [];
    this.#starts.delete(storeKey);
    return groups;
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
