import { type AdaptiveState, afterObservation, badCount, forgottenAtUs } from "../core/adaptive.js";
import { type BadAnswer, isBadAnswer } from "../core/answer.js";
import { type Headroom, headroomAfter } from "../core/headroom.js";
import { afterBadAnswer, afterSuccess, type Incident } from "../core/incident.js";
import type { Rest } from "../core/key.js";
import type { Rule } from "../core/rule.js";
import type { Engine } from "./engine.js";
import type { Answer } from "./outcome.js";
import type { HeldPermit } from "./permit.js";

/** One answer at one key. */
export interface AnswerAt {
  readonly slot: number;
  /** The host that was asked, for events. */
  readonly key: string;
  readonly scopeName: string;
  readonly startedUs: number;
  readonly nowUs: number;
  /** Undefined for a start that was recorded. */
  readonly permit: HeldPermit | undefined;
  /** Units started at this key after that request. */
  readonly laterUnits: number;
}

/** Turns answers into cooldowns and slowdowns, and sees that one probe goes first when a cooldown ends. */
export class Learning {
  constructor(readonly engine: Engine) {}

  /** A start was granted at a key that may remember an incident: it is the probe, or proof that nobody waits for one any more. */
  started(slot: number, key: string, permit: HeldPermit): void {
    const { rest } = this.engine.slab.key(slot);
    const incident = rest?.incident;
    if (rest === undefined || incident === undefined || incident.probe === "done") return;
    if (incident.probe === "out") {
      settleProbe(rest, incident, "done");
      return;
    }
    rest.probe = permit;
    rest.incident = { ...incident, probe: "out", probeAtUs: permit.startedUs };
    this.engine.emit(() => ({ type: "probe", key, atMs: permit.startedAtMs }));
  }

  /** Learns from an answer. `isHeld`: it speaks of this key. To the others it says at most that it was a success, or that their probe is back. */
  hear(answer: Answer, at: AnswerAt, isHeld: boolean): void {
    const { slab, keys } = this.engine;
    const key = slab.key(at.slot);
    const { rule } = keys.profileOf(at.slot);
    const { kind } = answer;
    const { rest } = key;
    const incident = rest?.incident;
    const isProbe = at.permit !== undefined && rest?.probe === at.permit;
    // From here on deadlines may be judged, so that the slab stands at another row.
    if (isHeld && answer.budget !== undefined) this.#spread(answer.budget, at, key.needRest());
    if (isHeld && isBadAnswer(kind)) this.#hold({ ...answer, kind }, at, rule, isProbe);
    else if (rest !== undefined && incident !== undefined) {
      if (kind === "success") {
        rest.incident = afterSuccess(incident, at.startedUs, at.nowUs);
        if (rest.incident !== incident) rest.probe = undefined;
        else if (isProbe) settleProbe(rest, incident, "done");
      } else if (isProbe) settleProbe(rest, incident, kind === "unused" ? "due" : "done");
    }
    if (rule.adaptive !== undefined && (answer.scope === undefined || isHeld)) this.#adapt(answer, at, rule);
  }

  #hold(answer: Answer & { readonly kind: BadAnswer }, at: AnswerAt, rule: Rule, isProbe: boolean): void {
    if (!rule.enabled) return;
    const { kind, retryAfterUs, because } = answer;
    const { slot, startedUs, nowUs } = at;
    const key = this.engine.slab.key(slot);
    const before = key.rest?.incident;
    const random = withinOne(this.engine.options.random);
    const next = afterBadAnswer(before, rule, { kind, startedUs, nowUs, retryAfterUs, random, because });
    if (next === before || next === undefined) {
      if (key.rest !== undefined && before !== undefined && isProbe) settleProbe(key.rest, before, "done");
      return;
    }
    const rest = key.needRest();
    rest.probe = undefined;
    rest.incident = next;
    const step = Math.max(1, kind === "rate_limited" ? next.throttleStep : next.errorStep);
    this.engine.emit(() => ({
      type: "cooldown",
      key: at.key,
      atMs: nowUs / 1000,
      untilMs: next.untilUs / 1000,
      step,
      because,
    }));
    this.engine.waiting.judgeDeadlines(slot);
  }

  /** Slows the key down so that what is left of the site's budget lasts until it is full again. */
  #spread(said: NonNullable<Answer["budget"]>, at: AnswerAt, rest: Rest): void {
    const before = rest.headers?.headroom;
    const headroom: Headroom = headroomAfter(before, said, at);
    if (headroom === before) return;
    const { gapUs, holdUntilUs, untilUs } = headroom;
    rest.headers = { gapUs, holdUntilUs, untilUs, because: said.because, headroom };
    if (holdUntilUs > at.nowUs) this.engine.waiting.judgeDeadlines(at.slot);
  }

  /** Latencies are compared at a host and its intents only: what several hosts share has no latency of its own. */
  #adapt(answer: Answer, { slot, scopeName, startedUs, nowUs, permit }: AnswerAt, rule: Rule): void {
    const { kind } = answer;
    if (rule.adaptive === undefined || kind === "neutral" || kind === "unused") return;
    const isOneSite = scopeName === "host" || scopeName === "intent";
    const measuredUs = permit === undefined ? undefined : nowUs - startedUs;
    const latencyUs = isOneSite ? (answer.latencyUs ?? measuredUs) : undefined;
    const rest = this.engine.slab.key(slot).needRest();
    const before = rest.learned;
    const state = afterObservation(rule.adaptive, before?.state, { kind, latencyUs, startedUs, nowUs });
    const isCut = state.gapUs > 0 && state.slowedUs > (before?.state.slowedUs ?? Number.NEGATIVE_INFINITY);
    const because = isCut ? slowerBecause(state, answer) : (before?.because ?? "");
    rest.learned = { state, because };
    rest.adaptive =
      state.gapUs === 0
        ? undefined
        : { gapUs: state.gapUs, holdUntilUs: Number.NEGATIVE_INFINITY, untilUs: forgottenAtUs(state), because };
    if (isCut) this.engine.waiting.judgeDeadlines(slot);
  }
}

function settleProbe(rest: Rest, incident: Incident, probe: "due" | "done"): void {
  rest.probe = undefined;
  rest.incident = { ...incident, probe };
}

function slowerBecause(state: AdaptiveState, answer: Answer): string {
  if (state.slowLatencyUs > 0) {
    return `answers take ${inWords(state.slowLatencyUs)}, usually ${inWords(state.latency?.usualUs ?? 0)}`;
  }
  const count = badCount(state);
  return `${count} of its last ${state.heardCount} answers ${count === 1 ? "was" : "were"} bad, the latest: ${answer.because}`;
}

function inWords(us: number): string {
  return us < 1_000_000 ? `${Math.ceil(us / 1000)} ms` : `${Math.ceil(us / 100_000) / 10} s`;
}

/** A random number as promised, whatever was delivered: jitter must not shorten anything. */
export function withinOne(random: () => number): number {
  try {
    const number = random();
    return number >= 0 && number < 1 ? number : 0;
  } catch {
    return 0;
  }
}
