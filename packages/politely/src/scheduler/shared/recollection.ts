import type { SharedRule, TakeReply } from "../../shared/operation.js";
import { times } from "../../shared/record.js";
import { ONE } from "../cost.js";
import { costAt, type LaneCost } from "../lane.js";
import type { Plan } from "./plan.js";
import { groupsFor, type StartGroup, StartLog } from "./startLog.js";
import { pauseEndUs } from "./stopWords.js";

/** Keys that are left alone of which that is remembered, at most; of more, those longest known are forgotten. */
const HOLDS_MOST = 100_000;
/** Keys whose starts are remembered, at most. */
const KEYS_MOST = 100_000;
/** With so many, what no limit counts any more is looked for. */
const KEYS_MANY = 4_096;
/** This part of them is forgotten at once when there are too many. */
const FORGOTTEN_PART = 64;
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

/** The starts at one key. */
interface KnownKey {
  readonly log: StartLog;
  /** For how long a start matters to any limit of the key. */
  countedForUs: number;
}

/** What a recollection is made with. */
export interface RecollectionOptions {
  /** Starts are remembered. Default true; false where nobody will ask for them, and then they take no memory. */
  readonly hasStarts?: boolean;
  /** Starts had to be forgotten. */
  readonly onForgotten?: (message: string) => void;
}

/**
 * What this process has been told by a store, for the time when that is away: a store that goes forgives nothing.
 *
 * The starts of a key take 24 bytes for each of at most 256 groups, of fewer where there are more than 4,000 keys; 100,000 keys at most. Of more, those longest
 * known are forgotten, and every key that is not known counts as spent until all that was forgotten is over. Instants are of this process's clock.
 */
export class Recollection {
  readonly #starts = new Map<string, KnownKey>();
  readonly #holds = new Map<string, Hold>();
  /** With so many keys, it is time to tidy up. */
  #tidyAt = KEYS_MANY;
  /** By then, all starts that were forgotten are over. */
  #unsureUntilUs = Number.NEGATIVE_INFINITY;

  constructor(readonly options: RecollectionOptions = {}) {}

  /** Notes what a store answered. */
  heard(plan: Plan, cost: LaneCost, { nowUs: saidUs, starts, stop }: TakeReply, nowUs: number): void {
    const { storeKeys } = plan;
    if (starts.length > 0) {
      this.started(plan, cost, { startedUs: nowUs, count: starts.length });
      // Whoever starts is not held: what was known is over, or somebody ended it.
      for (const key of storeKeys) if ((this.#holds.get(key)?.saidUs ?? saidUs) < saidUs) this.#holds.delete(key);
    }
    if (stop === undefined || !isHold(stop.kind)) return;
    // What is left of a quota may do for somebody who wants less.
    if (stop.kind === "quota" && cost !== ONE) return;
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
    if (this.options.hasStarts === false) return;
    plan.storeKeys.forEach((key, index) => {
      let known = this.#starts.get(key);
      if (known === undefined) {
        if (this.#starts.size >= this.#tidyAt) this.#tidy(startedUs);
        known = { log: new StartLog(1), countedForUs: 0 };
        this.#starts.set(key, known);
      }
      known.countedForUs = countedForUs(plan.keys[index].shared);
      const units = cost === ONE ? undefined : [times(costAt(cost, index), count)];
      if (!known.log.add(startedUs, count, units)) return;
      known.log.trim(startedUs - known.countedForUs, groupsFor(this.#starts.size));
    });
  }

  /** Somebody here has ended the pause of a key. */
  resumed(storeKey: string): void {
    if (this.#holds.get(storeKey)?.kind === "pause") this.#holds.delete(storeKey);
  }

  /** Somebody here has reset a key. */
  forget(storeKey: string): void {
    this.#holds.delete(storeKey);
    this.takeStarts(storeKey);
  }

  /** The policy has changed: a quota that was spent may not be. */
  configured(): void {
    for (const [key, { kind }] of this.#holds) if (kind === "quota") this.#holds.delete(key);
  }

  /** Notes that a key is to be left alone. */
  hold(storeKey: string, hold: Hold): void {
    const known = this.#holds.get(storeKey);
    if (known !== undefined && known.untilUs >= hold.untilUs) return;
    if (this.#holds.size >= HOLDS_MOST) forgetFirst(this.#holds);
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
    const known = this.#starts.get(storeKey);
    if (known === undefined || known.log.size === 0) return [];
    // That it is known is remembered.
    this.#starts.set(storeKey, { ...known, log: new StartLog(1) });
    return known.log.groups;
  }

  /** Until when a key of a plan counts as spent, since its starts may have been forgotten, and which; undefined when none may have been. */
  unsureOf({ storeKeys }: Plan, nowUs: number): { readonly untilUs: number; readonly index: number } | undefined {
    if (this.#unsureUntilUs <= nowUs) return undefined;
    const index = storeKeys.findIndex((key) => !this.#starts.has(key));
    return index < 0 ? undefined : { untilUs: this.#unsureUntilUs, index };
  }

  /** Drops what no limit counts any more, makes the rest smaller where there are many, and forgets some keys where there are too many. */
  #tidy(nowUs: number): void {
    const most = groupsFor(2 * this.#starts.size);
    for (const [key, known] of this.#starts) {
      if (known.log.lastUs + known.countedForUs <= nowUs) this.#starts.delete(key);
      else known.log.trim(nowUs - known.countedForUs, most);
    }
    if (this.#starts.size >= KEYS_MOST) this.#forgetSome(nowUs);
    this.#tidyAt = Math.max(KEYS_MANY, Math.min(KEYS_MOST, 2 * this.#starts.size));
  }

  #forgetSome(nowUs: number): void {
    const wasSure = this.#unsureUntilUs <= nowUs;
    let left = Math.ceil(KEYS_MOST / FORGOTTEN_PART);
    for (const [key, { log, countedForUs: forUs }] of this.#starts) {
      if (left-- === 0) break;
      this.#starts.delete(key);
      this.#unsureUntilUs = Math.max(this.#unsureUntilUs, log.lastUs + forUs);
    }
    const message = `the starts at more than ${KEYS_MOST} keys matter at once, and the first were forgotten; should the store go away, keys that are not known count as spent. Use fewer hosts in one process, or outage "closed"`;
    if (wasSure) this.options.onForgotten?.(message);
  }
}

function isHold(kind: string): kind is Hold["kind"] {
  return HOLDS.includes(kind);
}

function forgetFirst(known: Map<string, unknown>): void {
  for (const [name] of known) {
    known.delete(name);
    return;
  }
}

/** For how long a start matters to any limit of a key, in microseconds; Infinity with a quota. */
export function countedForUs({ gapUs, rateCount, ratePerUs, burst, windows, quota }: SharedRule): number {
  if (quota > 0) return Number.POSITIVE_INFINITY;
  let longestUs = Math.max(gapUs, rateCount === 0 ? 0 : (burst * ratePerUs) / rateCount);
  for (let index = 1; index < windows.length; index += 3) longestUs = Math.max(longestUs, windows[index]);
  return longestUs;
}
