import { checkNames } from "../engine/options.js";
import { ClosedError, DeadlineError, QueueFullError } from "../errors.js";
import type { LimiterEvent } from "../observe/types.js";
import type { AcquireOptions, Permit, Target } from "../types.js";
import { costOf, type Demand, withAsked } from "./demand.js";
import type { Engine } from "./engine.js";
import { earliestUs, reasonOf, until } from "./forecast.js";
import { type LaneCost, type LaneSpec, Terms, Waiter } from "./lane.js";

type WaitEvent = Extract<LimiterEvent, { readonly type: "wait" }>;

/** Requests that are ready to wait: granted at once, refused for good reason, or put in their lane. */
export class Arrivals {
  constructor(readonly engine: Engine) {}

  /** Grants at once, or gives the promise of a permit. Throws when it is refused. */
  enter(target: Target, options: AcquireOptions | undefined): Permit | Promise<Permit> {
    if (this.engine.isClosed) throw new ClosedError(this.engine.policy.resolve(target).key);
    checkOptions(options);
    const nowUs = this.engine.nowUs();
    const demand = this.engine.demand(target, nowUs);
    const cost = costOf(this.engine.ledger, demand, options?.cost);
    const maxWaitUs = this.#maxWaitUs(demand, options);
    options?.signal?.throwIfAborted();
    if (this.engine.queue.canStart(demand, cost, nowUs)) return this.engine.grantNow(demand, cost, nowUs, nowUs);
    const { counsel } = this.engine;
    if (maxWaitUs === 0 && counsel !== undefined) return counsel.aside.start(target, demand, cost, options?.signal);
    const full = this.#fullAt(demand);
    if (full >= 0 && counsel?.guests.mayAsk(demand, full, nowUs) !== true) this.#refuseFull(demand, cost, full, nowUs);
    this.#refuseIfHopeless(demand, cost, maxWaitUs, nowUs);
    const patient = withAsked(this.engine.policy, demand, target);
    return this.#wait(patient, cost, options, nowUs + maxWaitUs, nowUs);
  }

  #maxWaitUs(demand: Demand, options: AcquireOptions | undefined): number {
    if (options?.maxWait !== undefined) return this.engine.options.readMaxWait(options.maxWait);
    let leastUs = Number.POSITIVE_INFINITY;
    for (const slot of demand.slots) leastUs = Math.min(leastUs, this.engine.ledger.profileOf(slot).rule.maxWaitUs);
    return leastUs;
  }

  /** Gives a waiter that set no deadline of its own the one of the limits that apply now. */
  redate(waiter: Waiter, demand: Demand): void {
    if (waiter.terms?.isOwnDeadline === true) return;
    const deadlineUs = waiter.askedUs + this.#maxWaitUs(demand, undefined);
    if (deadlineUs === waiter.deadlineUs) return;
    const terms = waiter.terms ?? new Terms(deadlineUs, undefined, false);
    terms.waiter = waiter;
    terms.deadlineUs = deadlineUs;
    waiter.terms = terms;
    this.engine.queue.deadlines.move(terms);
  }

  /** The first of its keys at which no more are to wait; -1: none. */
  #fullAt({ slots }: Demand): number {
    for (let index = 0; index < slots.length; index++) {
      const { maxQueue } = this.engine.ledger.profileOf(slots[index]).rule;
      if ((this.engine.queue.gateAt(slots[index])?.waiting ?? 0) >= maxQueue) return index;
    }
    return -1;
  }

  #refuseFull(demand: Demand, cost: LaneCost, index: number, nowUs: number): never {
    this.engine.departures.refuse(demand, nowUs, "POLITELY_QUEUE_FULL", cost);
    throw queueFull(demand, index, this.engine.ledger.profileOf(demand.slots[index]).rule.maxQueue);
  }

  /** Throws when the deadline cannot be met. */
  #refuseIfHopeless(demand: Demand, cost: LaneCost, maxWaitUs: number, nowUs: number): void {
    if (maxWaitUs === Number.POSITIVE_INFINITY) return;
    const atUs = earliestUs(this.engine, demand, cost, nowUs);
    if (atUs <= nowUs + maxWaitUs && maxWaitUs > 0) return;
    this.engine.departures.refuse(demand, nowUs, "POLITELY_DEADLINE", cost);
    const waitMs = (atUs - nowUs) / 1000;
    throw new DeadlineError(demand.key, waitMs, reasonOf(this.engine, demand, cost, nowUs), maxWaitUs / 1000);
  }

  #wait(
    demand: Demand,
    cost: LaneCost,
    options: AcquireOptions | undefined,
    deadlineUs: number,
    nowUs: number,
  ): Promise<Permit> {
    const priority = options?.priority ?? 0;
    const terms = termsOf(options, deadlineUs);
    const promise = new Promise<Permit>(capture);
    const sequence = this.engine.queue.nextSequence();
    const waiter = new Waiter(nowUs, sequence, cost, demand.target, terms, captured.resolve, captured.reject);
    if (terms !== undefined) terms.waiter = waiter;
    const { counsel, events, queue, signals } = this.engine;
    if (counsel !== undefined && this.#fullAt(demand) >= 0) counsel.guests.add(waiter);
    const announce = events.hasListeners ? this.#waitEvent(demand, cost, priority, nowUs) : undefined;
    queue.add(waiter, priority, demand, nowUs);
    if (options?.signal !== undefined) signals.watch(options.signal, waiter);
    if (announce !== undefined) this.#announce(announce, waiter, demand, priority);
    queue.run(nowUs);
    return promise;
  }

  /** Says that somebody waits, and why: at once where that is known, else when the store has said. Who starts before has not waited for a limit. */
  #announce(event: WaitEvent, waiter: Waiter, demand: Demand, priority: number): void {
    const { counsel, events } = this.engine;
    const nowUs = this.engine.nowUs();
    if (counsel === undefined || event.waitMs > 0 || counsel.outlook(demand, waiter.cost, nowUs) !== undefined) {
      events.emit(event);
      return;
    }
    counsel.tellWhy(demand, waiter, (grantedForUs) => {
      if (!events.hasListeners) return;
      const toldUs = this.engine.nowUs();
      const { waitMs, reason } = this.#waitEvent(demand, waiter.cost, priority, toldUs);
      const leftMs = grantedForUs === undefined ? waitMs : Math.max(0, grantedForUs - toldUs) / 1000;
      const granted = `${demand.key}: its start is granted${until(leftMs)}`;
      const why = grantedForUs === undefined ? reason : granted;
      events.emit({ ...event, atMs: toldUs / 1000, waitMs: leftMs, reason: why });
    });
  }

  #waitEvent(demand: Demand, cost: LaneCost, priority: number, nowUs: number): WaitEvent {
    const lane = this.engine.queue.lanes.get(demand.name);
    return {
      type: "wait",
      key: demand.key,
      atMs: nowUs / 1000,
      waitMs: (earliestUs(this.engine, demand, cost, nowUs) - nowUs) / 1000,
      reason: reasonOf(this.engine, demand, cost, nowUs),
      ahead: lane?.aheadOf(priority) ?? 0,
    };
  }
}

/** The error of a lane at whose key number `index` as many wait as are allowed to. */
export function queueFull({ key, scopeNames }: LaneSpec, index: number, maxQueue: number): QueueFullError {
  return new QueueFullError(index === 0 ? key : scopeNames[index], maxQueue);
}

/** What `capture` was last called with. One function for all promises, so that a hundred thousand waiters do not make as many. */
const captured: { resolve: (permit: Permit) => void; reject: (reason: unknown) => void } = {
  resolve: () => undefined,
  reject: () => undefined,
};

function capture(resolve: (permit: Permit) => void, reject: (reason: unknown) => void): void {
  captured.resolve = resolve;
  captured.reject = reject;
}

function termsOf(options: AcquireOptions | undefined, deadlineUs: number): Terms | undefined {
  const isOwnDeadline = options?.maxWait !== undefined;
  const isPlain = options?.cost === undefined && !isOwnDeadline && deadlineUs === Number.POSITIVE_INFINITY;
  return isPlain ? undefined : new Terms(deadlineUs, options?.cost, isOwnDeadline);
}

const KNOWN_OPTIONS = ["signal", "maxWait", "priority", "cost"];
const PRIORITY_MOST = 1_000_000_000;

/** Refuses options that make no sense: `TypeError` for a wrong type or name, `RangeError` for a wrong value. */
export function checkOptions(options: AcquireOptions | undefined): void {
  if (options === undefined) return;
  checkNames(options, KNOWN_OPTIONS, "options");
  const { priority, signal } = options;
  if (priority !== undefined && typeof priority !== "number") {
    throw new TypeError(`priority must be a number; got ${String(priority)}.`);
  }
  if (priority !== undefined && !(Math.abs(priority) <= PRIORITY_MOST)) {
    throw new RangeError(`priority must be a number from -${PRIORITY_MOST} to ${PRIORITY_MOST}; got ${priority}.`);
  }
  // Null, too, which a program without types may give.
  if (signal !== undefined && (signal === null || typeof signal.addEventListener !== "function")) {
    throw new TypeError(`signal must be an AbortSignal, or left out; got ${signal === null ? "null" : typeof signal}.`);
  }
}
