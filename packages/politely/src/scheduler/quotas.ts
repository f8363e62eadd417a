import { WallCalendar } from "../core/calendar.js";
import type { QuotaRule } from "../core/rule.js";
import { quotaUsed } from "../shared/quota.js";
import type { Slab } from "./slab.js";

/** The calendar budgets of all keys: which period each was last used in, and how much of it. */
export class Quotas {
  readonly #calendar = new WallCalendar(Date.now);

  constructor(
    readonly slab: Slab,
    readonly wallMs: () => number,
  ) {}

  /** When `cost` units fit: now, or at the end of the period. */
  readyAt(slot: number, quota: QuotaRule, cost: number, nowUs: number): number {
    if (this.used(slot, quota) + cost <= quota.count) return nowUs;
    const wallMs = this.wallMs();
    const index = this.#words(slot)[this.#at(slot)];
    const period = this.#calendar.periodAt(quota, wallMs);
    const endsAtMs = (index > period.index ? this.#calendar.periodNumber(quota, index) : period).endsAtMs;
    return nowUs + Math.max(1, Math.ceil((endsAtMs - wallMs) * 1000));
  }

  /** Units spent in the current period. */
  used(slot: number, quota: QuotaRule): number {
    const words = this.#words(slot);
    const at = this.#at(slot);
    return quotaUsed(words[at], words[at + 1], this.#calendar.periodAt(quota, this.wallMs()).index);
  }

  /** Spends units and returns the period they were spent in. */
  spend(slot: number, quota: QuotaRule, units: number): number {
    return this.set(slot, quota, this.used(slot, quota) + units);
  }

  /** Returns units spent in `period`; what was spent in an earlier one has been forgiven already. */
  giveBack(slot: number, period: number, units: number): void {
    const words = this.#words(slot);
    const at = this.#at(slot);
    if (words[at] === period) words[at + 1] = Math.max(0, words[at + 1] - units);
  }

  /** Notes what is spent in the current period, and returns which one that is. The period only grows. */
  set(slot: number, quota: QuotaRule, units: number): number {
    const words = this.#words(slot);
    const at = this.#at(slot);
    words[at] = Math.max(words[at], this.#calendar.periodAt(quota, this.wallMs()).index);
    words[at + 1] = units;
    return words[at];
  }

  /** Begins a count under another calendar, whose periods have other numbers. */
  restart(slot: number, quota: QuotaRule, units: number): void {
    this.#words(slot)[this.#at(slot)] = 0;
    this.set(slot, quota, units);
  }

  clear(slot: number): void {
    if (this.slab.layout.quotaAt >= 0) this.#words(slot)[this.#at(slot) + 1] = 0;
  }

  #words(slot: number): Float64Array {
    return this.slab.chunkOf(slot).words;
  }

  #at(slot: number): number {
    return this.slab.wordOf(slot) + this.slab.layout.quotaAt;
  }
}
