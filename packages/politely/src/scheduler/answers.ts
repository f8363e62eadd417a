import { type BadAnswer, isBadAnswer } from "../core/answer.js";
import { type Headroom, headroomAfter } from "../core/headroom.js";
import type { Events } from "../engine/events.js";
import type { Answer } from "../engine/outcome.js";
import { afterBadAnswer, afterSuccess, type CooldownState } from "../shared/cooldown.js";
import type { Ledger } from "./ledger.js";
import type { HeldPermit } from "./permit.js";
import type { Slowdown } from "./slowdowns.js";

/** One answer at one key. */
export interface AnswerAt {
  readonly slot: number;
  readonly key: string;
  readonly startedUs: number;
  readonly nowUs: number;
  readonly permit: HeldPermit | undefined;
  /** Units started at this key after that request. */
  readonly laterUnits: number;
}

/** Turns answers into cooldowns, and sees that one probe goes first when a cooldown ends. */
export class Answers {
  /** What is known of budgets, by row. It goes when the row's slowdown goes. */
  readonly #headrooms = new WeakMap<Slowdown, Headroom>();

  constructor(
    readonly ledger: Ledger,
    readonly events: Events,
    readonly random: () => number,
    /** A hold was lengthened. */
    readonly onHold: (slot: number) => void,
  ) {}

  /** A start was granted at a key that has a cooldown: it is the probe, or proof that nobody waits for one any more. */
  started(slot: number, key: string, permit: HeldPermit): void {
    const state = this.ledger.cooldowns.get(slot);
    if (state === undefined || state.probe === "done") return;
    if (state.probe === "out") {
      this.#settleProbe(slot, state, "done");
      return;
    }
    this.ledger.probes.set(slot, permit);
    this.ledger.setCooldown(slot, { ...state, probe: "out", probeAtUs: permit.startedUs });
    if (this.events.hasListeners) this.events.emit({ type: "probe", key, atMs: permit.startedAtMs });
  }

  /** Learns from an answer. */
  hear(answer: Answer, at: AnswerAt): void {
    const { slot, permit } = at;
    const state = this.ledger.cooldowns.get(slot);
    const isProbe = permit !== undefined && this.ledger.probes.get(slot) === permit;
    if (answer.budget !== undefined) this.#spread(answer.budget, at);
    if (isBadAnswer(answer.kind)) {
      this.#hold({ ...answer, kind: answer.kind }, at, state, isProbe);
    } else if (state !== undefined && answer.kind === "success") {
      const next = afterSuccess(state, at.startedUs, at.nowUs);
      if (next !== state) this.ledger.probes.delete(slot);
      this.ledger.setCooldown(slot, next);
      if (next === state && isProbe) this.#settleProbe(slot, state, "done");
    } else if (state !== undefined && isProbe) {
      this.#settleProbe(slot, state, answer.kind === "unused" ? "due" : "done");
    }
  }

  /** Slows the key down so that what is left of the site's budget lasts until it is full again. */
  #spread(said: NonNullable<Answer["budget"]>, at: AnswerAt): void {
    const { slowdowns } = this.ledger;
    const known = slowdowns.get(at.slot, "headers");
    const before = known === undefined ? undefined : this.#headrooms.get(known);
    const headroom = headroomAfter(before, said, at);
    if (headroom === before) return;
    const { gapUs, holdUntilUs, untilUs } = headroom;
    const slowdown = { gapUs, holdUntilUs, untilUs, because: said.because };
    this.#headrooms.set(slowdown, headroom);
    slowdowns.set(at.slot, "headers", slowdown);
    if (holdUntilUs > at.nowUs) this.onHold(at.slot);
  }

  #settleProbe(slot: number, state: CooldownState, probe: "due" | "done"): void {
    this.ledger.probes.delete(slot);
    this.ledger.setCooldown(slot, { ...state, probe });
  }

  #hold(
    answer: Answer & { readonly kind: BadAnswer },
    at: AnswerAt,
    state: CooldownState | undefined,
    isProbe: boolean,
  ): void {
    const { rule } = this.ledger.profileOf(at.slot);
    if (!rule.enabled) return;
    const { kind, retryAfterUs, because } = answer;
    const { startedUs, nowUs } = at;
    const random = this.random();
    const next = afterBadAnswer(state, rule, { kind, startedUs, nowUs, retryAfterUs, random, because });
    if (next === undefined || next === state) {
      if (state !== undefined && isProbe) this.#settleProbe(at.slot, state, "done");
      return;
    }
    this.ledger.probes.delete(at.slot);
    this.ledger.setCooldown(at.slot, next);
    if (this.events.hasListeners) {
      const step = kind === "rate_limited" ? next.throttleStep : next.errorStep;
      const untilMs = next.untilUs / 1000;
      this.events.emit({ type: "cooldown", key: at.key, atMs: nowUs / 1000, untilMs, step, because });
    }
    this.onHold(at.slot);
  }
}
