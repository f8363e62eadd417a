import type { Rule, WindowRule } from "../core/rule.js";
import type { LimitKind } from "../observe/types.js";
import { type CooldownState, cooldownReadyAt, isCooldownForgotten } from "../shared/cooldown.js";
import { gapReadyAt } from "../shared/gap.js";
import { rateOwedAt, rateReadyAt } from "../shared/rate.js";
import type { Cost } from "./cost.js";
import { type Hold, Holds, LooseFlights } from "./flight.js";
import { countedWindows, type FormerLimits, logAnswer } from "./formerLimits.js";
import { giveBack } from "./giveBack.js";
import { paidAt } from "./owing.js";
import { type Profile, Profiles, profileOf } from "./profile.js";
import { Quotas } from "./quotas.js";
import { HAS_COOLDOWN, HAS_PAUSE, HAS_SLOWDOWN, layoutFor, ROW, Slab } from "./slab.js";
import { Slowdowns } from "./slowdowns.js";
import { Ties } from "./ties.js";
import { NO_LOG, WindowLogs } from "./windowLogs.js";

const { LAST_US, OWED, SEEN_US, UNITS } = ROW;

/** Units since a start whose ties to its row are cut: nothing of it is left to give back. */
export const FORGOTTEN_UNITS = Number.POSITIVE_INFINITY;

/** What a start took from one key, as far as it is needed to give it back. */
export interface Taken {
  readonly slot: number;
  readonly startedUs: number;
  /** The start before; minus Infinity when there was none. */
  readonly previousUs: number;
  /** Units ever taken from the bucket, this start included. */
  readonly unitsAfter: number;
  readonly cost: Cost;
  readonly hold: Hold | undefined;
  /** The quota's period it was counted in; -1 without a quota. */
  readonly period: number;
}

/** What happens outside when a permit is held too long. */
export interface LedgerListener {
  holdLapsed(hold: Hold, nowUs: number): void;
  looseLapsed(slot: number, count: number): void;
  wallMs(): number;
}

/**
 * The limits of every key, over rows of numbers. It decides and counts; who waits, and for how long, is not its business.
 *
 * `readyAt` looks and changes nothing that could be observed; `take` must only follow a `readyAt` that allows it,
 * or record a start that has already happened.
 */
export class Ledger {
  readonly slab: Slab;
  readonly logs = new WindowLogs();
  readonly loose: LooseFlights;
  readonly quotas: Quotas;
  readonly cooldowns = new Map<number, CooldownState>();
  /** Limits that a change of policy has taken away or made shorter while they were owed to, until nothing is owed any more. They may come back. */
  readonly former = new Map<number, FormerLimits>();
  /** The permit that goes first after a key's cooldown. */
  readonly probes = new Map<number, object>();
  readonly pauses = new Map<number, number>();
  readonly slowdowns: Slowdowns;
  readonly holds = new Map<number, Holds>();
  readonly ties: Ties;
  readonly profiles: Profiles;
  /** What the last `readyAt` found most binding. */
  binding: LimitKind | undefined;
  /** How much later than its answer a start may come without anything being lost: what a bucket can still save up. */
  slackUs = 0;

  constructor(
    hasStats: boolean,
    readonly listener: LedgerListener,
    profile = profileOf,
  ) {
    this.profiles = new Profiles(profile);
    this.slab = new Slab(layoutFor(0, false, hasStats));
    this.slowdowns = new Slowdowns(this.slab);
    this.ties = new Ties(this.slab);
    this.quotas = new Quotas(this.slab, () => listener.wallMs());
    this.loose = new LooseFlights(this.slab, (slot, count) => listener.looseLapsed(slot, count));
  }

  /** Widens the rows when a rule needs more of them than any before, or there are more logs than windows. */
  makeRoomFor(rule: Rule, logCount = rule.windows.length): void {
    const { windowCount, quotaAt, statsAt } = this.slab.layout;
    const hasQuota = quotaAt >= 0 || rule.quota !== undefined;
    if (logCount <= windowCount && hasQuota === quotaAt >= 0) return;
    this.slab.relayout(layoutFor(Math.max(windowCount, logCount), hasQuota, statsAt >= 0));
  }

  profileOf(slot: number): Profile {
    return this.profiles.at(this.slab.profileNumber(slot));
  }

  /** When a start of that cost is possible at this key; at or before `nowUs` means now. Sets `binding`. */
  readyAt(slot: number, cost: Cost, nowUs: number): number {
    const { rule, isFollowed, isOff } = this.profileOf(slot);
    let at = nowUs;
    this.binding = undefined;
    this.slackUs = 0;
    if (this.slab.hasFlag(slot, HAS_PAUSE)) at = this.#later(at, this.#pauseAt(slot, nowUs), "pause");
    if (isOff) return at;
    if (isFollowed) this.lapse(slot, nowUs);
    if (this.slab.hasFlag(slot, HAS_COOLDOWN)) at = this.#later(at, this.cooldownAt(slot), this.#cooldownKind(slot));
    if (this.slab.hasFlag(slot, HAS_SLOWDOWN)) {
      const causes = this.slowdowns.causes(slot, this.spacedFromUs(slot), nowUs);
      for (const { source, atUs } of causes) at = this.#later(at, atUs, source);
    }
    if (rule.gapUs !== 0) at = this.#later(at, this.gapAt(slot), "minDelay");
    if (rule.rateCount !== 0) at = this.#later(at, this.rateAt(slot, cost), "rate");
    for (let index = 0; index < rule.windows.length; index++) {
      at = this.#later(at, this.windowAt(slot, index, cost, nowUs), "window");
    }
    if (rule.quota !== undefined)
      at = this.#later(at, this.quotas.readyAt(slot, rule.quota, cost.quota, nowUs), "quota");
    if (isFollowed) at = this.#later(at, this.concurrencyAt(slot, nowUs), "concurrency");
    if (this.binding === "rate") this.slackUs = ((rule.burst - cost.rate) * rule.ratePerUs) / rule.rateCount;
    return at;
  }

  #later(at: number, candidate: number, kind: LimitKind): number {
    if (candidate <= at) return at;
    this.binding = kind;
    return candidate;
  }

  #cooldownKind(slot: number): LimitKind {
    return this.cooldowns.get(slot)?.probe === "out" ? "probe" : "cooldown";
  }

  /** When the key's pause ends. One that is over is forgotten. */
  #pauseAt(slot: number, nowUs: number): number {
    const untilUs = this.pauses.get(slot) ?? nowUs;
    if (untilUs <= nowUs) this.setPause(slot, undefined);
    return untilUs;
  }

  cooldownAt(slot: number): number {
    const state = this.cooldowns.get(slot);
    return state === undefined ? Number.NEGATIVE_INFINITY : cooldownReadyAt(state, this.profileOf(slot).rule.gapUs);
  }

  gapAt(slot: number): number {
    return gapReadyAt(this.spacedFromUs(slot), this.profileOf(slot).rule.gapUs);
  }

  /** What gaps run from: the last start or, where things count from the answer, that; while one is due, when its permit lapses. */
  spacedFromUs(slot: number): number {
    const { rule } = this.profileOf(slot);
    const holds = rule.fromAnswer ? this.holds.get(slot) : undefined;
    if (holds?.first !== undefined) return holds.first.startedUs + rule.maxHoldUs;
    return Math.max(this.lastUs(slot), holds?.answeredUs ?? Number.NEGATIVE_INFINITY);
  }

  rateAt(slot: number, cost: Cost): number {
    const { rule } = this.profileOf(slot);
    const { words } = this.slab.chunkOf(slot);
    const word = this.slab.wordOf(slot);
    return rateReadyAt(
      rule.rateCount,
      words[word + OWED],
      words[word + SEEN_US],
      (rule.burst - cost.rate) * rule.ratePerUs,
    );
  }

  windowAt(slot: number, index: number, cost: Cost, nowUs: number): number {
    const { rule } = this.profileOf(slot);
    const holds = rule.fromAnswer ? this.holds.get(slot) : undefined;
    const pending = holds?.pendingUnits ?? 0;
    const at = this.logs.readyAt(this.log(slot, index), rule.windows[index], nowUs, cost.window, pending);
    if (at !== Number.POSITIVE_INFINITY || holds?.first === undefined) return at;
    return holds.first.startedUs + rule.maxHoldUs + rule.windows[index].perUs;
  }

  concurrencyAt(slot: number, nowUs: number): number {
    const { rule } = this.profileOf(slot);
    if (this.inFlight(slot, nowUs) < rule.concurrency) return nowUs;
    const first = this.holds.get(slot)?.first;
    return first === undefined ? this.loose.lapseAt(nowUs) : first.startedUs + rule.maxHoldUs;
  }

  inFlight(slot: number, nowUs: number): number {
    return this.loose.count(slot, nowUs) + (this.holds.get(slot)?.count ?? 0);
  }

  lastUs(slot: number): number {
    return this.slab.chunkOf(slot).words[this.slab.wordOf(slot) + LAST_US];
  }

  /** Units owed to the bucket at `nowUs`, in unit-microseconds. */
  owedAt(slot: number, nowUs: number): number {
    const { words } = this.slab.chunkOf(slot);
    const word = this.slab.wordOf(slot);
    return rateOwedAt(this.profileOf(slot).rule.rateCount, words[word + OWED], words[word + SEEN_US], nowUs);
  }

  /** Units inside a window now, those in flight included. */
  windowUsed(slot: number, index: number, nowUs: number): number {
    const { rule } = this.profileOf(slot);
    const pending = rule.fromAnswer ? (this.holds.get(slot)?.pendingUnits ?? 0) : 0;
    return this.logs.used(this.log(slot, index), rule.windows[index], nowUs) + pending;
  }

  /** Counts a start that is granted now, and holds its place. */
  take(slot: number, cost: Cost, nowUs: number): Taken {
    const { rule, isFollowed } = this.profileOf(slot);
    const previousUs = this.lastUs(slot);
    const period = this.#count(slot, cost, nowUs);
    if (!rule.fromAnswer) this.logStart(slot, nowUs, cost.window);
    let hold: Hold | undefined;
    if (isFollowed) hold = this.holdsOf(slot).add(slot, nowUs, cost.window, !rule.fromAnswer);
    else this.loose.begin(slot, nowUs);
    return {
      slot,
      startedUs: nowUs,
      previousUs,
      unitsAfter: this.slab.chunkOf(slot).halves[2 * this.slab.wordOf(slot) + UNITS],
      cost,
      hold,
      period,
    };
  }

  /** Counts a start that has been made and answered without asking, as far as the past is still known. */
  record(slot: number, cost: Cost, startedUs: number, nowUs: number): void {
    const { rule } = this.profileOf(slot);
    // Those held too long are logged first: a log takes no start from before its newest.
    this.lapse(slot, nowUs);
    this.#count(slot, cost, startedUs);
    this.logStart(slot, rule.fromAnswer ? nowUs : startedUs, cost.window);
    if (rule.fromAnswer) this.holdsOf(slot).answeredUs = nowUs;
  }

  /** Counts a start in gap, bucket and quota; returns the quota's period. */
  #count(slot: number, cost: Cost, startedUs: number): number {
    const { rule } = this.profileOf(slot);
    const { words, halves } = this.slab.chunkOf(slot);
    const word = this.slab.wordOf(slot);
    if (startedUs > words[word + LAST_US]) words[word + LAST_US] = startedUs;
    if (rule.rateCount !== 0) {
      const owed = rateOwedAt(rule.rateCount, words[word + OWED], words[word + SEEN_US], startedUs);
      words[word + OWED] = Math.min(Number.MAX_SAFE_INTEGER, owed + cost.rate * rule.ratePerUs);
      words[word + SEEN_US] = Math.max(words[word + SEEN_US], startedUs);
    }
    halves[2 * word + UNITS] += cost.rate;
    return rule.quota === undefined ? -1 : this.quotas.spend(slot, rule.quota, cost.quota);
  }

  /** Whether the start still holds its place. If not, its row may be another key's by now. */
  isOpen(taken: Taken, nowUs: number): boolean {
    return taken.hold === undefined ? this.loose.isOpen(taken.startedUs, nowUs) : taken.hold.isLive;
  }

  /** Whether the row of a start that is settled now is certainly still its key's. */
  wasOpen(taken: Taken, nowUs: number): boolean {
    return taken.hold === undefined ? this.loose.isOpen(taken.startedUs, nowUs) : !taken.hold.isLapsed;
  }

  /** Frees the place of an open start. With `countFrom: "answer"` its gap and windows begin now, with `units`; undefined if it was never sent. */
  end(taken: Taken, nowUs: number, units: number | undefined): void {
    if (taken.hold === undefined) this.loose.end(taken.slot, taken.startedUs, nowUs);
    else this.#endHold(taken.hold, nowUs, units);
  }

  /** Gives back what an open start took, as much as the other starts allow; a negative cost is owed on top. `isWhole`: it was never sent, so the gap goes back too. Call it before `end`. */
  giveBack(taken: Taken, unused: Cost, nowUs: number, isWhole: boolean): void {
    giveBack(this, taken, unused, nowUs, isWhole);
  }

  /** Units taken from the row after that start; `FORGOTTEN_UNITS` when its ties are cut, 0 when the row is another by now. */
  unitsSince(taken: Taken, slot: number): number {
    return taken.slot === slot ? this.ties.unitsSince(taken) : 0;
  }

  /** Frees the places of permits held past `maxHold`. */
  lapse(slot: number, nowUs: number): void {
    const holds = this.holds.get(slot);
    if (holds === undefined) return;
    const { maxHoldUs } = this.profileOf(slot).rule;
    while (holds.first !== undefined && holds.first.startedUs + maxHoldUs <= nowUs) {
      const hold = holds.first;
      hold.isLapsed = true;
      this.#endHold(hold, hold.startedUs + maxHoldUs, hold.units);
      this.listener.holdLapsed(hold, nowUs);
    }
  }

  /** Whether the key is in no way different from a new one. */
  isFresh(slot: number, nowUs: number): boolean {
    if (paidAt(this, slot, nowUs) > nowUs) return false;
    if (this.slab.hasFlag(slot, HAS_PAUSE) && this.#pauseAt(slot, nowUs) > nowUs) return false;
    if ((this.former.get(slot)?.untilUs ?? nowUs) > nowUs) return false;
    if (this.slowdowns.isOwed(slot, this.spacedFromUs(slot), nowUs)) return false;
    const cooldown = this.cooldowns.get(slot);
    if (cooldown !== undefined && !isCooldownForgotten(cooldown, nowUs)) return false;
    if (this.inFlight(slot, nowUs) === 0) return true;
    // What ends here owes from its end on.
    this.lapse(slot, nowUs);
    return this.inFlight(slot, nowUs) === 0 && paidAt(this, slot, nowUs) <= nowUs;
  }

  /** Drops everything a fresh key does not need, but its row. */
  forget(slot: number): void {
    this.forgetWindows(slot);
    this.setCooldown(slot, undefined);
    this.slowdowns.forget(slot);
    this.former.delete(slot);
    this.ties.forget(slot);
    this.holds.delete(slot);
  }

  forgetWindows(slot: number): void {
    for (let index = 0; index < this.slab.layout.windowCount; index++) {
      this.logs.release(this.log(slot, index));
      this.setLog(slot, index, NO_LOG);
    }
  }

  setCooldown(slot: number, state: CooldownState | undefined): void {
    if (state === undefined) {
      this.cooldowns.delete(slot);
      this.probes.delete(slot);
    } else this.cooldowns.set(slot, state);
    this.slab.setFlag(slot, HAS_COOLDOWN, state !== undefined);
  }

  setPause(slot: number, untilUs: number | undefined): void {
    if (untilUs === undefined) this.pauses.delete(slot);
    else this.pauses.set(slot, untilUs);
    this.slab.setFlag(slot, HAS_PAUSE, untilUs !== undefined);
  }

  holdsOf(slot: number): Holds {
    let holds = this.holds.get(slot);
    if (holds === undefined) {
      holds = new Holds();
      this.holds.set(slot, holds);
    }
    return holds;
  }

  #endHold(hold: Hold, atUs: number, units: number | undefined): void {
    const holds = this.holdsOf(hold.slot);
    holds.remove(hold);
    if (units !== undefined && units > 0 && !hold.isLogged) logAnswer(this, hold.slot, atUs, units);
    // Also for a start that was logged before the rule began to count from answers, or when it has stopped to and may begin again: its gap begins now.
    if (units !== undefined && (!hold.isLogged || this.profileOf(hold.slot).rule.fromAnswer)) {
      holds.answeredUs = Math.max(holds.answeredUs, atUs);
    }
    if (holds.count === 0 && holds.answeredUs === Number.NEGATIVE_INFINITY) this.holds.delete(hold.slot);
  }

  /** Counts units in every window of the key, or in those that it is said to have logs of. */
  logStart(slot: number, atUs: number, units: number, logged?: readonly WindowRule[]): void {
    const { rule } = this.profileOf(slot);
    const windows = logged ?? (this.former.size === 0 ? rule.windows : countedWindows(this, slot, atUs));
    for (let index = 0; index < windows.length; index++) {
      this.setLog(slot, index, this.logs.append(this.log(slot, index), windows[index], atUs, units));
    }
  }

  /** The handle of a window's log. */
  log(slot: number, index: number): number {
    return this.slab.chunkOf(slot).halves[2 * this.slab.wordOf(slot) + this.slab.layout.windowsAt + index];
  }

  setLog(slot: number, index: number, handle: number): void {
    this.slab.chunkOf(slot).halves[2 * this.slab.wordOf(slot) + this.slab.layout.windowsAt + index] = handle;
  }
}
