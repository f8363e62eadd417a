import type { Answer } from "../core/answer.js";
import { checkNames } from "../engine/options.js";
import { isReported, type Reported, reportedOf } from "../engine/permit.js";
import { toUs } from "../engine/systemClock.js";
import type { Outcome, RecordOptions, ReleaseOptions, Target } from "../types.js";
import type { AnswerAt } from "./answers.js";
import { ONE } from "./cost.js";
import { readCost, scopeRow } from "./demand.js";
import type { Engine } from "./engine.js";
import { OVERFLOW_KEY } from "./keys.js";
import { FORGOTTEN_UNITS, type Taken } from "./ledger.js";
import { EXEMPT_ONLY, type HeldPermit, type PermitOwner } from "./permit.js";

/** Takes permits back, counts starts made without one, and passes on what was answered. */
export class Settling implements PermitOwner {
  /** What was last said about a permit before its release. */
  readonly #reported = new WeakMap<HeldPermit, Reported>();

  constructor(readonly engine: Engine) {}

  record(target: Target, outcome: Outcome, options?: RecordOptions): void {
    if (outcome === undefined) throw new TypeError("record needs an outcome: how the request ended.");
    const answer = this.engine.options.readOutcome(outcome);
    const nowUs = this.engine.nowUs();
    if (options !== undefined) checkNames(options, ["startedAtMs"], "options");
    const startedUs = readStarted(options?.startedAtMs, nowUs);
    const demand = this.engine.demand(target, nowUs);
    const heldAt = this.#partOfScope(demand.scopeNames, answer.scope);
    if (answer.kind === "unused") return;
    for (const each of demand.slots) {
      this.engine.ledger.record(each, ONE, startedUs);
    }
    this.engine.books.granted(demand.slots[0], startedUs, 0);
    if (answer.kind === "rate_limited") this.engine.books.count(demand.slots[0], "throttled");
    const { key } = demand;
    this.engine.events.tellFirst(
      () => [{ type: "grant", key, atMs: startedUs / 1000, waitedMs: 0, recorded: true }],
      () =>
        demand.slots.forEach((slot, index) => {
          const at = { slot, key, startedUs, nowUs, permit: undefined, laterUnits: 0 };
          if (index === heldAt) this.engine.answers.hear(answer, at);
          this.#adapt(answer, at, demand.scopeNames[index], index === heldAt);
          this.engine.queue.touch(slot);
        }),
    );
    this.engine.queue.run();
  }

  reportAnswer(permit: HeldPermit, outcome: Outcome): void {
    if (permit.isReleased) return;
    const answer = this.engine.options.readOutcome(outcome);
    if (answer.kind === "unused") throw new TypeError('report takes an answer; give "unused" to release.');
    if (outcome === undefined) throw new TypeError("report needs an outcome: how the request was answered.");
    if (this.#isNothingNew(answer) || isReported(this.#reported.get(permit), answer, outcome)) return;
    const heldAt = this.#partOfScope(permit.scopeNames, answer.scope);
    this.#hear(answer, permit, heldAt, this.engine.nowUs());
    this.#reported.set(permit, reportedOf(answer, outcome));
    for (const part of permit.parts ?? [permit]) this.engine.queue.touch(part.slot);
    this.engine.queue.run();
  }

  /** A good answer that says nothing more, while nobody cools down and nobody learns from it. */
  #isNothingNew({ kind, budget, scope }: Answer): boolean {
    if ((kind !== "success" && kind !== "neutral") || budget !== undefined || scope !== undefined) return false;
    return !this.engine.profiles.hasAdaptive;
  }

  releasePermit(permit: HeldPermit, outcome: Outcome | undefined, options: ReleaseOptions | undefined): void {
    if (permit.isReleased) return;
    const answer = this.engine.options.readOutcome(outcome);
    const scopeNames = permit.scopeNames;
    if (options !== undefined) checkNames(options, ["cost"], "options");
    if (options?.cost !== undefined) readCost({ scopeNames }, options.cost, 0);
    const heldAt = this.#partOfScope(scopeNames, answer.scope);
    permit.place = ~permit.place;
    const nowUs = this.engine.nowUs();
    const { ledger, queue, events } = this.engine;
    const parts = permit.parts ?? [permit];
    for (const part of parts) {
      if (!ledger.isOpen(part, nowUs)) continue;
      if (answer.kind === "unused") ledger.giveBack(part);
      ledger.loose.end(part.slot, part.startedUs, nowUs);
    }
    const isHeard = answer.kind !== "neutral" || answer.budget !== undefined;
    if (isHeard && !isReported(this.#reported.get(permit), answer, outcome)) this.#hear(answer, permit, heldAt, nowUs);
    for (const part of parts) queue.touch(part.slot);
    if (events.hasListeners) {
      const { key, startedAtMs } = permit;
      events.emit({ type: "release", key, atMs: nowUs / 1000, startedAtMs, outcome: answer.kind });
    }
    this.engine.onQuiet?.();
    this.engine.queue.run();
  }

  /** Tells the keys of a permit what was answered. The one that is held hears it all; the others, a success or that their probe is back. */
  #hear(answer: Answer, permit: HeldPermit, heldAt: number, nowUs: number): void {
    const { key, startedUs } = permit;
    const parts = permit.parts ?? [permit];
    const isThrottled = answer.kind === "rate_limited" && this.#reported.get(permit)?.kind !== answer.kind;
    parts.forEach((part, index) => {
      // A permit that lapsed may have lost its rows to other keys: they are found again by name.
      const slot = this.#rowOf(permit, part, index, nowUs);
      if (slot === undefined) return;
      if (index === 0 && isThrottled) this.engine.books.count(slot, "throttled");
      const sinceUnits = this.engine.ledger.unitsSince(part, slot);
      const laterUnits = sinceUnits < FORGOTTEN_UNITS ? sinceUnits : 0;
      const at = { slot, key, startedUs, nowUs, permit, laterUnits };
      if (index === heldAt) this.engine.answers.hear(answer, at);
      this.#adapt(answer, at, permit.scopeNames[index], index === heldAt);
    });
  }

  /**
   * Lets a key with an adaptive rule learn from an answer, unless the answer is about another key.
   *
   * Latencies are compared at a host and its intents only: what several hosts share has no latency of its own.
   */
  #adapt(answer: Answer, at: AnswerAt, name: string, isHeld: boolean): void {
    if (!this.engine.profiles.hasAdaptive || (answer.scope !== undefined && !isHeld)) return;
    const isOneSite = name === "host" ? at.key !== OVERFLOW_KEY : name === "intent";
    const measuredUs = at.permit === undefined ? undefined : at.nowUs - at.startedUs;
    const latencyUs = isOneSite ? (answer.latencyUs ?? measuredUs) : undefined;
    this.engine.adaptive.hear(answer, { slot: at.slot, startedUs: at.startedUs, nowUs: at.nowUs, latencyUs });
  }

  #rowOf(permit: HeldPermit, part: Taken, index: number, nowUs: number): number | undefined {
    const { keys, policy, ledger } = this.engine;
    if (ledger.isOpen(part, nowUs)) return part.slot;
    const name = permit.scopeNames[index];
    if (name === "host") {
      return permit.key === OVERFLOW_KEY ? undefined : keys.host(permit.key, policy.hostRule(permit.key).rule, nowUs);
    }
    const rule = name === "intent" || name === "global" ? undefined : policy.scopeRule(name);
    return rule === undefined ? undefined : keys.scope(scopeRow(name), rule);
  }

  #partOfScope(scopeNames: readonly string[], scope: string | undefined): number {
    // A host that is exempt takes nothing of its scopes, so there is nothing to hold.
    const index = scope === undefined || scopeNames === EXEMPT_ONLY ? 0 : scopeNames.indexOf(scope);
    if (index >= 0) return index;
    throw new TypeError(`outcome.scope is "${scope}", but the request took only ${scopeNames.join(", ")}.`);
  }
}

function readStarted(startedAtMs: number | undefined, nowUs: number): number {
  if (startedAtMs === undefined) return nowUs;
  if (!Number.isFinite(startedAtMs))
    throw new RangeError(`startedAtMs must be a finite number; got ${String(startedAtMs)}.`);
  return Math.min(nowUs, toUs(startedAtMs));
}
