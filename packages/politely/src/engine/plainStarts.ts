import { ROW } from "../core/key.js";
import { owedAt as coreOwedAt } from "../core/limits/rate.js";
import type { Target } from "../types.js";
import type { Books } from "./books.js";
import type { Engine } from "./engine.js";
import type { Keys } from "./keys.js";
import { HeldPermit as Permit } from "./permit.js";
import type { Profile } from "./profile.js";
import { PROFILE_MASK, type Slab } from "./slab.js";

// What is taken out of its import once costs nothing later: V8 reads an imported constant anew at each use.
const { FLIGHT, LAST_US, OWED, PROFILE, SEEN_US, UNITS } = ROW;
const owedAt = coreOwedAt;
const HeldPermit = Permit;
const NEVER = Number.NEGATIVE_INFINITY;
const LARGEST_NUMBER = PROFILE_MASK;

/** So many different targets in a row, and the next are not compared with the one before. */
const HOT_MISSES = 4;

/**
 * The short way: starts of hosts that are known by the very text of the target and have a gap and a bucket at most, decided by arithmetic on their row.
 *
 * The same arithmetic as `core/decide.ts`, without the questions whose answers are known; a property compares the two. It is short on purpose: among a
 * million hosts most of the time is spent waiting for memory, and a processor looks only some 250 instructions ahead for the next thing to fetch.
 */
export class PlainStarts {
  readonly #engine: Engine;
  readonly #slab: Slab;
  readonly #books: Books;
  readonly #keys: Keys;
  #hotKey = "";
  #hotSlot = -1;
  #hotMisses = 0;
  /** The number of the profile that was last found to be simple and in force, with no bit set beside it. */
  #number = -1;
  #profile: Profile | undefined = undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#slab = engine.slab;
    this.#books = engine.books;
    this.#keys = engine.keys;
  }

  /** Rows, rules or listeners are others now. */
  forget(): void {
    this.forgetKey();
    this.#number = -1;
    this.#profile = undefined;
  }

  /** A row is given back, and may become another's. */
  forgetKey(): void {
    this.#hotKey = "";
    this.#hotSlot = -1;
  }

  /** The permit; undefined when it would have to wait, which counts as refused unless it `isPatient`; null when it cannot be decided here. */
  start(target: Target, isPatient: boolean): Permit | undefined | null {
    if (!this.#engine.isPlain || typeof target !== "string") return null;
    const slot = this.#slotOf(target);
    return slot < 0 ? null : this.#decide(target, slot, isPatient);
  }

  /**
   * The row of a target that is a known key; -1 when it is none.
   *
   * A caller with one host gives the same string again and again: then no look-up is needed. One with many hosts must not
   * pay for a comparison that always fails, so after a few of those only the look-up is done, until two in a row agree.
   */
  #slotOf(target: string): number {
    if (this.#hotMisses < HOT_MISSES && target === this.#hotKey) return this.#hotSlot;
    const slot = this.#keys.hosts.get(target);
    if (slot === undefined) return -1;
    if (this.#hotMisses < HOT_MISSES || slot === this.#hotSlot) {
      this.#hotMisses = slot === this.#hotSlot ? 0 : this.#hotMisses + 1;
      this.#hotKey = target;
    }
    this.#hotSlot = slot;
    return slot;
  }

  /**
   * The clock is read between the look-up and the row, so that a processor that waits for one does not wait for the other. The look-up is a call of its own: where most
   * hosts are new it finds nothing, and V8 would not inline what mostly does not happen.
   */
  #decide(target: string, slot: number, isPatient: boolean): Permit | undefined | null {
    const nowUs = this.#engine.nowUs();
    const slab = this.#slab;
    const { words, halves } = slab.chunkOf(slot);
    const word = slab.wordOf(slot);
    const half = 2 * word;
    const number = halves[half + PROFILE];
    const profile = number === this.#number ? this.#profile : this.#simpleProfile(number);
    if (profile === undefined) return null;

    const { gapUs, rateCount } = profile;
    const previousUs = words[word + LAST_US];
    // Starts in flight that have come to nothing are counted as lost first.
    if (halves[half + FLIGHT] !== 0 && previousUs + profile.maxHoldUs <= nowUs) return null;
    let isReady = previousUs + gapUs <= nowUs;
    if (rateCount !== 0) {
      const owed = owedAt(rateCount, words[word + OWED], words[word + SEEN_US], nowUs) + profile.ratePerUs;
      isReady = isReady && owed <= profile.owedMost;
      if (isReady) {
        words[word + OWED] = owed;
        words[word + SEEN_US] = nowUs;
      }
    }
    if (!isReady) {
      if (!isPatient) this.#books.count(slot, "refused");
      return undefined;
    }
    words[word + LAST_US] = nowUs;
    halves[half + FLIGHT] += 1;
    const unitsAfter = (halves[half + UNITS] + 1) >>> 0;
    halves[half + UNITS] = unitsAfter;
    this.#books.grantedAtOnce(words, word, nowUs);
    this.#keys.granted(nowUs);
    const sinceUs = previousUs === NEVER ? undefined : nowUs - previousUs;
    return new HeldPermit(this.#engine.arbiter, target, slot, nowUs, unitsAfter, sinceUs);
  }

  /** The profile of a row by its number, which has further bits when anything is out of the ordinary; undefined when arithmetic on the row is not enough. */
  #simpleProfile(number: number): Profile | undefined {
    if (number > LARGEST_NUMBER) return undefined;
    const profile = this.#keys.profiles.at(number);
    if (!profile.isSimple || profile.era !== this.#keys.era.number) return undefined;
    this.#number = number;
    this.#profile = profile;
    return profile;
  }
}
