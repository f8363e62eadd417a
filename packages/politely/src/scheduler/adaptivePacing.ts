import { Adaptive, fitRule, learn } from "../core/adaptive.js";
import type { Answer, Heard } from "../core/answer.js";
import type { Ledger } from "./ledger.js";

/** An answer at one key, with how long it took. */
export interface AdaptiveAnswer extends Pick<Heard, "startedUs" | "nowUs" | "latencyUs"> {
  readonly slot: number;
}

/** Slows keys with an adaptive rule down by what is answered there, and lets them recover. */
export class AdaptivePacing {
  constructor(
    readonly ledger: Ledger,
    /** A key was made slower. */
    readonly onSlower: (slot: number) => void,
  ) {}

  /** Learns from an answer. Does nothing at a key without an adaptive rule, or for an answer that says nothing. */
  hear({ kind, because, retryAfterUs }: Answer, { slot, startedUs, nowUs, latencyUs }: AdaptiveAnswer): void {
    const { adaptive } = this.ledger.profileOf(slot).rule;
    if (adaptive === undefined || kind === "neutral" || kind === "unused") return;
    const { learned } = this.ledger.slowdowns;
    const state = learned.get(slot) ?? new Adaptive();
    const { slowedUs } = state;
    learn(adaptive, state, { kind, startedUs, nowUs, latencyUs, retryAfterUs, because });
    learned.set(slot, state);
    this.#apply(slot, state);
    if (state.gapUs > 0 && state.slowedUs > slowedUs) this.onSlower(slot);
  }

  /** Applies what was learned at a key under the rule it has now: nothing of it without an adaptive one, and all of it once that is back. */
  conform(slot: number): void {
    const { slowdowns } = this.ledger;
    const state = slowdowns.learned.get(slot);
    if (state === undefined) return;
    const { adaptive } = this.ledger.profileOf(slot).rule;
    if (adaptive !== undefined) fitRule(adaptive, state);
    this.#apply(slot, adaptive && state);
  }

  #apply(slot: number, state: Adaptive | undefined): void {
    this.ledger.slowdowns.set(slot, "adaptive", state === undefined || state.gapUs === 0 ? undefined : state);
  }
}
