import { ONE } from "../core/key.js";
import { CapacityError, ClosedError, DeadlineError, QueueFullError } from "../errors.js";
import type { AcquireOptions, Permit, Target } from "../types.js";
import type { Engine } from "./engine.js";
import { checkNames } from "./knownNames.js";
import { type Lane, Terms, Waiter } from "./lane.js";
import { type Costs, costOf, type Need } from "./need.js";
import { type Outlook, outlookOf } from "./outlook.js";

/** Requests that want to start: granted at once, refused for good reason, or put in their lane; and every way out of it but a start. */
export class Waiting {
  constructor(readonly engine: Engine) {}

  /** Grants at once, or gives the promise of a permit. Throws when it is refused. */
  enter(target: Target, options: AcquireOptions | undefined): Permit | Promise<Permit> {
    const { engine } = this;
    if (engine.isClosed) throw new ClosedError(engine.keys.policy.resolve(target).key);
    checkOptions(options);
    const nowUs = engine.nowUs();
    const need = this.#need(target, nowUs);
    const costs = costOf(need, options?.cost, (slot) => engine.keys.profileOf(slot));
    const maxWaitUs = this.#maxWaitUs(need, options);
    options?.signal?.throwIfAborted();
    const permit = this.#startNow(need, costs, nowUs);
    if (permit !== undefined) return permit;
    this.#refuseFull(need, costs, nowUs);
    this.#refuseIfHopeless(need, costs, options?.priority ?? 0, maxWaitUs, nowUs);
    return this.#wait(need, costs, options, nowUs + maxWaitUs, nowUs);
  }

  /** Grants at once, or counts a refusal. */
  tryNow(target: Target, options: Pick<AcquireOptions, "cost"> | undefined): Permit | undefined {
    const { engine } = this;
    if (engine.isClosed) throw new ClosedError(engine.keys.policy.resolve(target).key);
    checkOptions(options);
    const nowUs = engine.nowUs();
    const need = this.#need(target, nowUs);
    const costs = costOf(need, options?.cost, (slot) => engine.keys.profileOf(slot));
    const permit = this.#startNow(need, costs, nowUs);
    if (permit === undefined) this.#refused(need, costs, "POLITELY_BUSY", nowUs);
    return permit;
  }

  /** What a target needs. A host for which there is no room is counted as refused in the row of all others. */
  #need(target: Target, nowUs: number): Need {
    try {
      return this.engine.need(target, nowUs);
    } catch (error) {
      if (error instanceof CapacityError) {
        const { key, code, waitMs, message } = error;
        this.engine.books.folded.refused += 1;
        this.engine.emit(() => ({ type: "refuse", key, atMs: nowUs / 1000, code, waitMs, reason: message }));
      }
      throw error;
    }
  }

  #startNow(need: Need, costs: Costs, nowUs: number): Permit | undefined {
    const { arbiter, queue } = this.engine;
    if (!queue.isFirst(need, costs, nowUs)) return undefined;
    const taken = arbiter.take(need, costs, nowUs, nowUs);
    return "startedUs" in taken ? taken : undefined;
  }

  #maxWaitUs(need: Need, options: AcquireOptions | undefined): number {
    const { keys, options: own } = this.engine;
    if (options?.maxWait !== undefined) return own.readMaxWait(options.maxWait);
    let leastUs = Number.POSITIVE_INFINITY;
    for (const slot of need.slots) leastUs = Math.min(leastUs, keys.profileOf(slot).rule.maxWaitUs);
    return leastUs;
  }

  #refuseFull(need: Need, costs: Costs, nowUs: number): void {
    const { keys, queue } = this.engine;
    need.slots.forEach((slot, index) => {
      const { maxQueue } = keys.profileOf(slot).rule;
      if ((queue.gateAt(slot)?.waiting ?? 0) < maxQueue) return;
      this.#refused(need, costs, "POLITELY_QUEUE_FULL", nowUs);
      throw new QueueFullError(index === 0 ? need.key : need.scopeNames[index], maxQueue);
    });
  }

  /** Throws when the deadline cannot be met. */
  #refuseIfHopeless(need: Need, costs: Costs, priority: number, maxWaitUs: number, nowUs: number): void {
    if (maxWaitUs === Number.POSITIVE_INFINITY) return;
    const outlook = outlookOf(this.engine, need, costs, priority, nowUs);
    if (outlook.atUs <= nowUs + maxWaitUs && maxWaitUs > 0) return;
    this.#refused(need, costs, "POLITELY_DEADLINE", nowUs, outlook);
    throw new DeadlineError(need.key, (outlook.atUs - nowUs) / 1000, outlook.reason, maxWaitUs / 1000);
  }

  #wait(
    need: Need,
    costs: Costs,
    options: AcquireOptions | undefined,
    deadlineUs: number,
    nowUs: number,
  ): Promise<Permit> {
    const { events, queue, signals } = this.engine;
    const priority = options?.priority ?? 0;
    const terms = termsOf(options, deadlineUs);
    const promise = new Promise<Permit>(capture);
    const { resolve, reject } = captured;
    const waiter = new Waiter(nowUs, queue.nextSequence(), costs, need.target, terms, resolve, reject);
    if (terms !== undefined) terms.waiter = waiter;
    const outlook = events.hasListeners ? outlookOf(this.engine, need, costs, priority, nowUs) : undefined;
    const ahead = outlook && (queue.lanes.get(need.name)?.aheadOf(priority).requests ?? 0);
    queue.add(waiter, priority, need, nowUs);
    if (options?.signal !== undefined) signals.watch(options.signal, waiter);
    if (outlook !== undefined) {
      const { atUs, reason } = outlook;
      const waitMs = (atUs - nowUs) / 1000;
      events.emit({ type: "wait", key: need.key, atMs: nowUs / 1000, waitMs, reason, ahead: ahead ?? 0 });
    }
    queue.run(nowUs);
    return promise;
  }

  /** Counts a request that is turned away before it waits. */
  #refused(need: Need, costs: Costs, code: string, nowUs: number, known?: Outlook): void {
    this.engine.books.count(need.slots[0], "refused");
    if (!this.engine.events.hasListeners) return;
    const { atUs, reason } = known ?? outlookOf(this.engine, need, costs, 0, nowUs);
    const waitMs = (atUs - nowUs) / 1000;
    this.engine.events.emit({ type: "refuse", key: need.key, atMs: nowUs / 1000, code, waitMs, reason });
  }

  /** Ends a wait from outside: the caller's signal, or `cancelWaiting`. Run the queue after the last one. */
  cancel(waiter: Waiter, reason: unknown): void {
    const { lane } = waiter;
    if (lane === undefined) return;
    this.#leave(waiter);
    this.engine.books.count(lane.need.slots[0], "cancelled");
    waiter.reject(reason);
    if (this.engine.events.hasListeners) this.#tellCancelled(waiter, lane);
    this.engine.onQuiet?.();
  }

  #tellCancelled(waiter: Waiter, lane: Lane): void {
    const nowUs = this.engine.nowUs();
    const waitedMs = (nowUs - waiter.askedUs) / 1000;
    this.engine.events.emit({ type: "cancel", key: lane.need.key, atMs: nowUs / 1000, waitedMs });
  }

  /** Cancels everybody in these lanes who is meant, each with what `reasonOf` says; returns how many. */
  cancelAll(lanes: readonly Lane[], isMeant: (waiter: Waiter) => boolean, reasonOf: (lane: Lane) => unknown): number {
    let cancelled = 0;
    for (const lane of lanes) {
      for (const waiter of lane.everybody()) {
        if (waiter.lane === undefined || !isMeant(waiter)) continue;
        this.cancel(waiter, reasonOf(lane));
        cancelled += 1;
      }
    }
    this.engine.queue.run();
    return cancelled;
  }

  /** Refuses a waiter that can no longer make it. */
  #refuse(waiter: Waiter, error: unknown, code: string, waitMs: number, reason: string): void {
    const { lane } = waiter;
    if (lane === undefined) return;
    const atMs = this.engine.nowUs() / 1000;
    this.#leave(waiter);
    const { key, slots } = lane.need;
    this.engine.books.count(slots[0], "refused");
    waiter.reject(error);
    this.engine.emit(() => ({ type: "refuse", key, atMs, code, waitMs, reason }));
    this.engine.onQuiet?.();
  }

  /** Refuses those at a key whose deadline has become impossible. Run the queue afterwards. */
  judgeDeadlines(slot: number): void {
    const { queue } = this.engine;
    const gate = queue.gateAt(slot);
    if (gate === undefined || queue.deadlines.nextUs === Number.POSITIVE_INFINITY) return;
    const nowUs = this.engine.nowUs();
    for (const lane of gate.lanes) {
      const { need } = lane;
      // Most ask for the same: that is worked out once.
      const one = outlookOf(this.engine, need, ONE, undefined, nowUs);
      for (const waiter of lane.everybody()) {
        if (waiter.deadlineUs === Number.POSITIVE_INFINITY) continue;
        const { costs, askedUs, deadlineUs } = waiter;
        const { atUs, reason } = costs === ONE ? one : outlookOf(this.engine, need, costs, undefined, nowUs);
        if (atUs <= deadlineUs) continue;
        const waitMs = (atUs - nowUs) / 1000;
        const error = new DeadlineError(need.key, waitMs, reason, (deadlineUs - askedUs) / 1000);
        this.#refuse(waiter, error, error.code, waitMs, reason);
      }
    }
  }

  /** Ends the wait of one that reached its deadline and has left its lane. */
  expire(waiter: Waiter, need: Need, nowUs: number): void {
    const { engine } = this;
    engine.signals.unwatch(waiter);
    engine.books.count(need.slots[0], "expired");
    const { atUs, reason } = outlookOf(engine, need, waiter.costs, undefined, nowUs);
    const afterMs = (nowUs - waiter.askedUs) / 1000;
    const maxWaitMs = (waiter.deadlineUs - waiter.askedUs) / 1000;
    waiter.reject(new DeadlineError(need.key, (atUs - nowUs) / 1000, reason, maxWaitMs));
    engine.emit(() => ({ type: "expire", key: need.key, atMs: nowUs / 1000, what: "waiter", afterMs }));
    engine.onQuiet?.();
  }

  /** Lets everybody who waits wait under the policy that is in force now. Whose cost can never fit any more is refused. */
  requeue(nowUs: number): void {
    const { keys, queue } = this.engine;
    const misfits: { waiter: Waiter; error: unknown }[] = [];
    queue.rebuild((waiter) => {
      const need = keys.need(waiter.target, nowUs, true);
      this.#redate(waiter, need);
      try {
        waiter.costs = costOf(need, waiter.terms?.cost, (slot) => keys.profileOf(slot));
      } catch (error) {
        waiter.costs = ONE;
        misfits.push({ waiter, error });
      }
      return need;
    }, nowUs);
    for (const { waiter, error } of misfits) {
      this.#refuse(waiter, error, "POLITELY_POLICY", Number.POSITIVE_INFINITY, "its cost no longer fits");
    }
    for (const lane of Array.from(queue.lanes.values())) this.judgeDeadlines(lane.need.slots[0]);
    queue.run();
  }

  /** Gives a waiter that set no deadline of its own the one of the limits that apply now. */
  #redate(waiter: Waiter, need: Need): void {
    if (waiter.terms?.isOwnDeadline === true) return;
    const deadlineUs = waiter.askedUs + this.#maxWaitUs(need, undefined);
    if (deadlineUs === waiter.deadlineUs) return;
    const terms = waiter.terms ?? new Terms(deadlineUs, undefined, false);
    terms.waiter = waiter;
    terms.deadlineUs = deadlineUs;
    waiter.terms = terms;
    this.engine.queue.deadlines.move(terms);
  }

  #leave(waiter: Waiter): void {
    this.engine.queue.remove(waiter);
    this.engine.signals.unwatch(waiter);
  }
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
function checkOptions(options: AcquireOptions | undefined): void {
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
