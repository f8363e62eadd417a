import { type AdaptiveState, afterObservation, badCount, forgottenAtUs, withinRule } from "../core/adaptive.js";
import type { AdaptiveRule } from "../core/rule.js";
import type { Answer } from "../engine/outcome.js";
import type { Ledger } from "./ledger.js";
import type { Learned } from "./slowdowns.js";

/** An answer at one key, with how long it took. */
export interface AdaptiveAnswer {
  readonly slot: number;
  readonly startedUs: number;
  readonly nowUs: number;
  /** Undefined when it is not known, or says nothing about the key. */
  readonly latencyUs: number | undefined;
}

/** Slows keys with an adaptive rule down by what is answered there, and lets them recover. */
export class AdaptivePacing {
  constructor(
    readonly ledger: Ledger,
    /** A key was made slower. */
    readonly onSlower: (slot: number) => void,
  ) {}

  /** Learns from an answer. Does nothing at a key without an adaptive rule, or for an answer that says nothing. */
  hear(answer: Answer, at: AdaptiveAnswer): void {
    const { slot, startedUs, nowUs, latencyUs } = at;
    const { kind } = answer;
    const rule = this.ledger.profileOf(slot).rule.adaptive;
    if (rule === undefined || kind === "neutral" || kind === "unused") return;
    const before = this.ledger.slowdowns.learned.get(slot);
    const state = afterObservation(rule, before?.state, { kind, latencyUs, startedUs, nowUs });
    const isCut = state.gapUs > 0 && state.slowedUs > (before?.state.slowedUs ?? Number.NEGATIVE_INFINITY);
    this.#keep(slot, { state, because: isCut ? reasonOf(state, answer) : (before?.because ?? "") });
    if (isCut) this.onSlower(slot);
  }

  /** Applies what was learned at a key under the rule it has now: nothing of it without an adaptive one, and all of it once that is back. */
  conform(slot: number): void {
    const learned = this.ledger.slowdowns.learned.get(slot);
    if (learned === undefined) return;
    const rule: AdaptiveRule | undefined = this.ledger.profileOf(slot).rule.adaptive;
    if (rule === undefined) this.ledger.slowdowns.set(slot, "adaptive", undefined);
    else this.#keep(slot, { ...learned, state: withinRule(rule, learned.state) });
  }

  #keep(slot: number, learned: Learned): void {
    const { slowdowns } = this.ledger;
    const { state, because } = learned;
    slowdowns.learned.set(slot, learned);
    if (state.gapUs === 0) {
      slowdowns.set(slot, "adaptive", undefined);
      return;
    }
    const untilUs = forgottenAtUs(state);
    slowdowns.set(slot, "adaptive", { gapUs: state.gapUs, holdUntilUs: Number.NEGATIVE_INFINITY, untilUs, because });
  }
}

function reasonOf(state: AdaptiveState, answer: Answer): string {
  if (state.slowLatencyUs > 0) {
    return `answers take ${inWords(state.slowLatencyUs)}, usually ${inWords(state.latency?.usualUs ?? 0)}`;
  }
  const count = badCount(state);
  return `${count} of its last ${state.heardCount} answers ${count === 1 ? "was" : "were"} bad, the latest: ${answer.because}`;
}

function inWords(us: number): string {
  return us < 1_000_000 ? `${Math.ceil(us / 1000)} ms` : `${Math.ceil(us / 100_000) / 10} s`;
}
