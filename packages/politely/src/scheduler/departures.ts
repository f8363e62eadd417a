import { DeadlineError } from "../errors.js";
import { ONE } from "./cost.js";
import type { Demand } from "./demand.js";
import type { Engine } from "./engine.js";
import { earliestUs, reasonOf } from "./forecast.js";
import type { LaneCost, LaneSpec, Waiter } from "./lane.js";

/** The ways in which a request ends without a start: cancelled, refused, expired. */
export class Departures {
  constructor(readonly engine: Engine) {}

  /** Ends a wait from outside: the caller's signal, or `cancelWaiting`. Run the queue after the last one. */
  cancel(waiter: Waiter, reason: unknown): void {
    const { lane } = waiter;
    if (lane === undefined) return;
    this.#leave(waiter);
    this.engine.books.count(lane.slots[0], "cancelled");
    waiter.reject(reason);
    if (this.engine.events.hasListeners) this.#tellCancelled(waiter, lane.key);
    this.engine.onQuiet?.();
  }

  #tellCancelled(waiter: Waiter, key: string): void {
    const nowUs = this.engine.nowUs();
    const waitedMs = (nowUs - waiter.askedUs) / 1000;
    this.engine.events.emit({ type: "cancel", key, atMs: nowUs / 1000, waitedMs });
  }

  /** Refuses a waiter that can no longer make it. */
  refuseWaiter(waiter: Waiter, error: unknown, code: string, waitMs: number, reason: string): void {
    const { lane } = waiter;
    if (lane === undefined) return;
    const nowUs = this.engine.nowUs();
    this.#leave(waiter);
    this.engine.books.count(lane.slots[0], "refused");
    waiter.reject(error);
    const { key } = lane;
    this.engine.emit(() => ({ type: "refuse", key, atMs: nowUs / 1000, code, waitMs, reason }));
    this.engine.onQuiet?.();
  }

  /** Refuses those at a key whose deadline has become impossible. Run the queue afterwards. */
  judgeDeadlines(slot: number): void {
    const { queue } = this.engine;
    const gate = queue.gateAt(slot);
    if (gate === undefined || queue.deadlines.nextUs === Number.POSITIVE_INFINITY) return;
    const nowUs = this.engine.nowUs();
    for (const lane of Array.from(gate.lanes)) {
      // Most ask for the same: that is worked out once.
      const oneUs = earliestUs(this.engine, lane, ONE, nowUs);
      for (const waiter of lane.everybody()) {
        if (waiter.deadlineUs === Number.POSITIVE_INFINITY) continue;
        const atUs = waiter.cost === ONE ? oneUs : earliestUs(this.engine, lane, waiter.cost, nowUs);
        if (atUs <= waiter.deadlineUs) continue;
        const reason = reasonOf(this.engine, lane, waiter.cost, nowUs);
        const waitMs = (atUs - nowUs) / 1000;
        const error = new DeadlineError(lane.key, waitMs, reason, (waiter.deadlineUs - waiter.askedUs) / 1000);
        this.refuseWaiter(waiter, error, error.code, waitMs, reason);
      }
    }
  }

  /** Ends the wait of one that reached its deadline and has left its lane. */
  expire(waiter: Waiter, spec: LaneSpec, nowUs: number): void {
    this.engine.signals.unwatch(waiter);
    this.engine.books.count(spec.slots[0], "expired");
    const maxWaitMs = (waiter.deadlineUs - waiter.askedUs) / 1000;
    const atUs = earliestUs(this.engine, spec, waiter.cost, nowUs);
    const reason = reasonOf(this.engine, spec, waiter.cost, nowUs);
    waiter.reject(new DeadlineError(spec.key, Math.max(0, atUs - nowUs) / 1000, reason, maxWaitMs));
    const afterMs = (nowUs - waiter.askedUs) / 1000;
    this.engine.emit(() => ({ type: "expire", key: spec.key, atMs: nowUs / 1000, what: "waiter", afterMs }));
    this.engine.onQuiet?.();
  }

  /** Counts a request that is turned away before it waits. */
  refuse(demand: Demand, nowUs: number, code: string, cost: LaneCost): void {
    this.engine.books.count(demand.slots[0], "refused");
    if (!this.engine.events.hasListeners) return;
    const waitMs = (earliestUs(this.engine, demand, cost, nowUs) - nowUs) / 1000;
    const reason = reasonOf(this.engine, demand, cost, nowUs);
    this.engine.events.emit({ type: "refuse", key: demand.key, atMs: nowUs / 1000, code, waitMs, reason });
  }

  #leave(waiter: Waiter): void {
    this.engine.queue.remove(waiter);
    this.engine.signals.unwatch(waiter);
  }
}
