import type { Outcome, RecordOptions, ReleaseOptions, Target } from "../types.js";
import type { Answer } from "./answers.js";
import { type Demand, readCost } from "./demand.js";
import type { Engine } from "./engine.js";
import { toUs } from "./instant.js";
import { costAt } from "./lane.js";
import { type Cost, ONE, type Taken } from "./ledger.js";
import { readOutcome } from "./outcome.js";
import type { HeldPermit, PermitOwner } from "./permit.js";

/** Takes permits back, counts starts made without one, and passes on what was answered. */
export class Settling implements PermitOwner {
  constructor(readonly engine: Engine) {}

  record(target: Target, outcome: Outcome, options?: RecordOptions): void {
    if (outcome === undefined) throw new TypeError("record needs an outcome: how the request ended.");
    const answer = readOutcome(outcome, this.engine.options.readHeaders, () => this.engine.clock.wall());
    const nowUs = this.engine.nowUs();
    const startedUs = readStarted(options?.startedAtMs, nowUs);
    const demand = this.engine.demand(target, nowUs);
    const slot = this.#slotOfScope(demand, answer.scope);
    if (answer.kind === "unused") return;
    for (const each of demand.slots) {
      this.engine.ledger.record(each, ONE, startedUs, nowUs);
    }
    this.engine.books.granted(demand.slots[0], startedUs, 0);
    if (answer.kind === "rate_limited") this.engine.books.count(demand.slots[0], "throttled");
    const { key } = demand;
    this.engine.emit(() => ({ type: "grant", key, atMs: startedUs / 1000, waitedMs: 0, recorded: true }));
    this.engine.answers.hear(answer, { slot, key, startedUs, nowUs, permit: undefined });
    for (const each of demand.slots) this.engine.queue.touch(each);
    this.engine.queue.run();
  }

  releasePermit(permit: HeldPermit, outcome: Outcome | undefined, options: ReleaseOptions | undefined): void {
    if (permit.isReleased) return;
    if (options === undefined && this.engine.isPlain && this.#releaseSimple(permit, outcome)) return;
    const answer = readOutcome(outcome, this.engine.options.readHeaders, () => this.engine.clock.wall());
    const scopeNames = permit.scopeNames;
    const cost = options?.cost === undefined ? undefined : readCost({ scopeNames }, options.cost, 0);
    const heldAt = this.#partOfScope(scopeNames, answer.scope);
    permit.place = ~permit.place;
    const nowUs = this.engine.nowUs();
    const parts = permit.parts ?? [permit];
    for (const { hold, slot } of parts) if (hold?.isLive === true) this.engine.ledger.lapse(slot, nowUs);
    const isOpen = this.engine.ledger.isOpen(parts[0], nowUs);
    parts.forEach((part, index) => {
      if (this.engine.ledger.isOpen(part, nowUs)) this.#settle(part, answer, cost && costAt(cost, index), nowUs);
    });
    const { key, startedUs } = permit;
    this.engine.emit(() => ({
      type: "release",
      key,
      atMs: nowUs / 1000,
      startedAtMs: permit.startedAtMs,
      outcome: answer.kind,
    }));
    if (answer.kind !== "neutral" || this.engine.ledger.probes.size > 0) {
      const home = isOpen ? permit.slot : this.engine.keys.host(key, this.engine.policy.hostRule(key).rule, nowUs);
      const slot = heldAt === 0 ? home : parts[heldAt].slot;
      if (slot !== undefined) {
        if (answer.kind === "rate_limited" && home !== undefined) this.engine.books.count(home, "throttled");
        this.#hear(answer, slot, permit, startedUs, nowUs);
      }
    }
    for (const part of parts) this.engine.queue.touch(part.slot);
    this.engine.queue.run();
    this.engine.onQuiet?.();
  }

  /** Takes back a permit whose answer can change nothing: of a simple key, with nobody cooling down or asking for rest. */
  #releaseSimple(permit: HeldPermit, outcome: Outcome | undefined): boolean {
    if (permit.parts !== undefined || (outcome !== undefined && outcome !== "success")) return false;
    if (this.engine.ledger.cooldowns.size > 0 || this.engine.onQuiet !== undefined) return false;
    permit.place = ~permit.place;
    const nowUs = this.engine.nowUs();
    if (!this.engine.ledger.loose.isOpen(permit.startedUs, nowUs)) return true;
    this.engine.ledger.loose.end(permit.slot, permit.startedUs, nowUs);
    return true;
  }

  /** Frees one place, giving back what was not used. */
  #settle(part: Taken, answer: Answer, cost: Cost | undefined, nowUs: number): void {
    const { rate, window, quota } = part.cost;
    const spent = answer.kind === "unused" ? { rate: 0, window: 0, quota: 0 } : (cost ?? part.cost);
    const unused = { rate: rate - spent.rate, window: window - spent.window, quota: quota - spent.quota };
    if (answer.kind === "unused" || cost !== undefined) {
      this.engine.ledger.giveBack(part, unused, nowUs, answer.kind === "unused");
    }
    this.engine.ledger.end(part, nowUs, answer.kind === "unused" ? undefined : spent.window);
  }

  #hear(answer: Answer, slot: number, permit: HeldPermit, startedUs: number, nowUs: number): void {
    const { key } = permit;
    this.engine.answers.hear(answer, { slot, key, startedUs, nowUs, permit });
    if (permit.parts === undefined) return;
    // The other keys learn only that their probe is back.
    const kind = answer.kind === "unused" ? "unused" : "neutral";
    for (const part of permit.parts) {
      if (part.slot !== slot)
        this.engine.answers.hear({ ...answer, kind }, { slot: part.slot, key, startedUs, nowUs, permit });
    }
  }

  #slotOfScope(demand: Demand, scope: string | undefined): number {
    return demand.slots[this.#partOfScope(demand.scopeNames, scope)];
  }

  #partOfScope(scopeNames: readonly string[], scope: string | undefined): number {
    const index = scope === undefined ? 0 : scopeNames.indexOf(scope);
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
