import type { WindowRule } from "../../src/core/rule.js";

/** A window as a list of all starts that is searched from end to end: slow, and easy to believe. */
export class NaiveWindow {
  #starts: { readonly atUs: number; units: number }[] = [];

  constructor(readonly rule: WindowRule) {}

  /** Units counted at instants that have not left the window. */
  used(nowUs: number): number {
    const inside = this.#starts.filter(({ atUs }) => atUs + this.rule.perUs > nowUs);
    return inside.reduce((sum, { units }) => sum + units, 0);
  }

  /** The first of now and all instants at which something leaves when `cost` units fit; Infinity when none is. */
  readyAt(nowUs: number, cost: number, pending: number): number {
    const leaving = this.#starts.map(({ atUs }) => atUs + this.rule.perUs).filter((atUs) => atUs > nowUs);
    const instants = [nowUs, ...leaving].sort((a, b) => a - b);
    const found = instants.find((atUs) => this.used(atUs) + cost + pending <= this.rule.count);
    return found ?? Number.POSITIVE_INFINITY;
  }

  append(startUs: number, units: number): void {
    this.#starts.push({ atUs: this.countedAt(startUs), units });
  }

  /** Changes what is counted at the instant of `startUs`, down to none. */
  adjust(startUs: number, change: number): void {
    const atUs = this.countedAt(startUs);
    const same = this.#starts.filter((start) => start.atUs === atUs);
    if (same.length === 0) return;
    const units = same.reduce((sum, start) => sum + start.units, 0);
    this.#starts = this.#starts.filter((start) => start.atUs !== atUs);
    this.#starts.push({ atUs, units: Math.max(0, units + change) });
  }

  copy(): NaiveWindow {
    const copy = new NaiveWindow(this.rule);
    copy.#starts = this.#starts.map((start) => ({ ...start }));
    return copy;
  }

  /** The end of the start's grain, which is the start itself for an exact window. */
  countedAt(startUs: number): number {
    const over = startUs % this.rule.grainUs;
    return over === 0 ? startUs : startUs - over + this.rule.grainUs;
  }
}
