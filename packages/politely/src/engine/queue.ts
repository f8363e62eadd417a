import { NOBODY, ONE } from "../core/key.js";
import { DeadlineError, PolitelyError, QueueFullError, type StoreError } from "../errors.js";
import type { LimitKind, UntimedEvent } from "../observe/types.js";
import type { AcquireOptions, Permit } from "../types.js";
import { type Costs, costAt, type Need, type Stop } from "./arbiter.js";
import type { Engine } from "./engine.js";
import { Heap } from "./heap.js";
import { Elder, Gate, isDueBefore, isElderBefore, isGateBefore, isLaneBefore, Lane, Waiter } from "./lanes.js";
import { costOf } from "./options.js";
import { outlookOf, type WaitTold } from "./outlook.js";
import type { HeldPermit } from "./permit.js";
import { Signals } from "./signals.js";
import { HAS_GATE, IS_OTHER } from "./slab.js";
import { OneTimer } from "./systemClock.js";

/** Starts granted in one go before other work gets its turn. */
const GRANTS_PER_TURN = 4096;
/** With waiters and nothing to wait for but a person, the process is kept alive by a timer this far away. */
const FAR_US = 86_400_000_000;
/** A quota ends by the wall clock, which may jump: it is looked at again after this long at the latest. */
const LOOK_AGAIN_US = 60_000_000;
/** While somebody waits for quiet, permits that were never released are looked for this often. */
const LOOK_EVERY_US = 1_000_000;
/** Behind a lane whose keys are kept nobody looks again sooner than this, unless something happens. */
const LEAST_LOOK_US = 1_000;
/** So many more are let in while nobody knows whether they have to wait. */
const UNDECIDED_MOST = 10_000;
/** Where a lane waits for its own turn is no key. */
const NO_SLOT = -1;
/** The options of a request that has none. */
export const NO_OPTIONS: AcquireOptions = {};
/** What those are told whose request a new policy has no room for. */
const MISFIT: WaitTold = { waitMs: Number.POSITIVE_INFINITY, reason: "it does not fit the new policy" };
/** How a wait without a start is counted. */
const ENDS = { cancel: "cancelled", refuse: "refused", expire: "expired" } as const;
/** What holds a key whatever anybody does. A head it stops has no keys kept for it. */
const HELD_BY: ReadonlySet<LimitKind | undefined> = new Set(["cooldown", "pause", "quota"]);

/**
 * Who waits, in what order, and when to look again: lanes, the keys they are stopped at, and one timer for all of it.
 *
 * Every lane is parked at one of its keys, the one that lets it start last. A key looks only at the first lane parked
 * there, so that a thousand lanes behind one shared key cost as much as one.
 */
export class Queue {
  readonly lanes = new Map<string, Lane>();
  /** Requests waiting in all lanes. */
  waiting = 0;
  /** Nothing starts before this instant. */
  pausedUntilUs = Number.NEGATIVE_INFINITY;
  readonly #deadlines = new Heap<Waiter>(isDueBefore);
  readonly #signals = new Signals(
    (waiter, reason) => this.#cancel(waiter, reason),
    () => this.run(),
  );
  readonly #gates = new Map<number, Gate>();
  readonly #wakeUps = new Heap<Gate>(isGateBefore);
  readonly #timer: OneTimer;
  /** Lanes that need several keys and are not held, the head that has waited longest first. */
  readonly #elders = new Heap<Elder>(isElderBefore);
  /** The one lane whose keys are kept for its head, older than `ageing`. */
  #kept: Lane | undefined = undefined;
  /** The lanes before a change of policy: those that go on keep their turns. */
  #former: ReadonlyMap<string, Lane> | undefined = undefined;
  #isRunning = false;
  /** When to look for permits that were never released, because somebody waits for quiet; Infinity for never. */
  #alarmUs = Number.POSITIVE_INFINITY;
  /** Numbers arrivals and starts, in the order in which they happen. */
  #sequence = 0;
  /** What `#stopOf` found: when to look again, and how much later costs nothing. */
  #stopUs = 0;
  #stopSlackUs = 0;
  /** Since when a key counts as ready that is looked at again: the instant of the decision under way, or minus Infinity until the next one. */
  #wokenUs = Number.NEGATIVE_INFINITY;

  constructor(
    readonly engine: Engine,
    readonly ageingUs: number,
  ) {
    this.#timer = new OneTimer(engine.clock, () => this.run());
  }

  gateAt(slot: number): Gate | undefined {
    return this.#gates.get(slot);
  }

  /** How many wait for a key. */
  waitingAt(slot: number): number {
    return this.#gates.get(slot)?.waiting ?? 0;
  }

  /** Grants at once, or gives the promise of a permit. Throws when it is refused. */
  enter(need: Need, costs: Costs, options: AcquireOptions, maxWaitUs: number, nowUs: number): Permit | Promise<Permit> {
    const { arbiter } = this.engine;
    arbiter.assertOpen?.(need);
    const once =
      maxWaitUs === 0 && this.isFirst(need, costs, nowUs)
        ? arbiter.enterOnce?.(need, costs, options.signal)
        : undefined;
    const permit = once ?? this.start(need, costs, nowUs);
    if (permit !== undefined) return permit;
    const isUndecided = arbiter.isUndecided?.(need) === true;
    const full = this.#fullness(need, isUndecided ? UNDECIDED_MOST : 0);
    if (full !== undefined) {
      this.refused(need, costs, full.code, nowUs);
      throw full;
    }
    const { priority = 0 } = options;
    const isTold = this.engine.events.emit !== undefined && (!isUndecided || this.pausedUntilUs > nowUs);
    if (isTold || maxWaitUs < Number.POSITIVE_INFINITY) {
      const outlook = outlookOf(this, need, costs, nowUs, priority);
      if (outlook.atUs > nowUs + maxWaitUs || maxWaitUs === 0) {
        this.refused(need, costs, "POLITELY_DEADLINE", nowUs, outlook);
        throw deadlineError(need.key, outlook, maxWaitUs);
      }
      if (isTold) this.#tellWait(need, outlook, this.lanes.get(need.name)?.aheadOf(priority).requests ?? 0, nowUs);
    }
    return this.#wait(need, costs, options, nowUs + maxWaitUs, nowUs);
  }

  #wait(need: Need, costs: Costs, options: AcquireOptions, deadlineUs: number, nowUs: number): Promise<Permit> {
    const promise = new Promise<Permit>(capture);
    // A copy, since the caller may use its options again.
    const { signal, maxWait, priority = 0, cost } = options;
    const own = options === NO_OPTIONS ? options : { signal, maxWait, priority, cost };
    const { resolve, reject } = captured;
    const waiter = new Waiter(nowUs, ++this.#sequence, costs, need.target, own, deadlineUs, resolve, reject);
    this.#add(waiter, priority, need, nowUs);
    this.#signals.watch(waiter);
    this.run(nowUs);
    return promise;
  }

  #tellWait({ key }: Need, { waitMs, reason }: WaitTold, ahead: number, nowUs: number): void {
    this.engine.events.emit?.({ type: "wait", key, atMs: nowUs / 1000, waitMs, reason, ahead });
  }

  /** The error for one more, where a key of a request has no room for it in its queue, by more than `extra` places. */
  #fullness({ key, slots, scopeNames }: Need, extra: number): QueueFullError | undefined {
    for (let index = 0; index < slots.length; index++) {
      const { maxQueue } = this.engine.keys.ruleOf(slots[index]);
      if (this.waitingAt(slots[index]) >= maxQueue + extra)
        return new QueueFullError(index === 0 ? key : scopeNames[index], maxQueue);
    }
    return undefined;
  }

  /** Grants at once, or takes nothing. */
  start(need: Need, costs: Costs, nowUs: number): Permit | undefined {
    const { arbiter } = this.engine;
    if (!this.isFirst(need, costs, nowUs) || arbiter.look(need, costs, nowUs, NOBODY) !== undefined) return undefined;
    const permit = arbiter.take(need, costs, nowUs, nowUs);
    if (this.waiting > 0) {
      for (const slot of need.slots) this.touch(slot);
      this.run(nowUs);
    } else this.engine.events.flush();
    return permit;
  }

  /** Counts a request that is turned away before it waits. */
  refused(need: Need, costs: Costs, code: string, nowUs: number, known?: WaitTold): void {
    const told = known ?? (this.engine.events.emit && outlookOf(this, need, costs, nowUs, 0));
    this.turnedAway(need.slots[0], need.key, code, told, nowUs);
  }

  /** The same of a request whose host may have no row. `told`: what listeners are told; undefined where there are none. */
  turnedAway(slot: number | undefined, key: string, code: string, told: WaitTold | undefined, nowUs: number): void {
    const { books, events } = this.engine;
    books.count(slot, "refused");
    if (told === undefined) return;
    const { waitMs, reason } = told;
    events.emit?.({ type: "refuse", key, atMs: nowUs / 1000, code, waitMs, reason });
    events.flush();
  }

  /** Ends the wait of everybody in these lanes who is meant, each with what `reasonOf` says; returns how many. */
  cancelAll(lanes: Iterable<Lane>, reasonOf: (lane: Lane) => unknown, isMeant?: (waiter: Waiter) => boolean): number {
    let cancelled = 0;
    for (const lane of Array.from(lanes)) {
      for (const waiter of lane.everybody()) {
        if (waiter.lane === undefined || isMeant?.(waiter) === false) continue;
        this.#cancel(waiter, reasonOf(lane));
        cancelled += 1;
      }
    }
    this.run();
    return cancelled;
  }

  /** Refuses everybody in these lanes, since the store cannot be asked. */
  refuseAll(lanes: Iterable<Lane>, error: StoreError): void {
    const nowUs = this.engine.nowUs();
    const told = { waitMs: Number.POSITIVE_INFINITY, reason: error.message };
    for (const lane of Array.from(lanes))
      for (const waiter of lane.everybody()) this.#refuse(waiter, error, told, nowUs);
    this.run();
  }

  #cancel(waiter: Waiter, reason: unknown): void {
    const nowUs = this.engine.nowUs();
    const waitedMs = (nowUs - waiter.askedUs) / 1000;
    this.#end(waiter, reason, { type: "cancel", key: waiter.target.key, waitedMs }, nowUs);
    this.engine.events.flush();
  }

  #refuse(waiter: Waiter, error: unknown, { waitMs, reason }: WaitTold, nowUs: number): void {
    const code = error instanceof PolitelyError ? error.code : "POLITELY_POLICY";
    this.#end(waiter, error, { type: "refuse", key: waiter.target.key, code, waitMs, reason }, nowUs);
  }

  #expire(waiter: Waiter, { need }: Lane, nowUs: number): void {
    const { askedUs, costs, deadlineUs } = waiter;
    const { key } = need;
    const error = deadlineError(key, outlookOf(this, need, costs, nowUs), deadlineUs - askedUs);
    this.#end(waiter, error, { type: "expire", key, what: "waiter", afterMs: (nowUs - askedUs) / 1000 }, nowUs);
  }

  /** Ends a wait without a start: counts why, and tells the caller and those who listen. */
  #end(waiter: Waiter, error: unknown, event: UntimedEvent & { type: keyof typeof ENDS }, nowUs: number): void {
    const { books, events, keys } = this.engine;
    const slot = waiter.lane?.need.slots[0] ?? keys.rows.get(waiter.target.key);
    this.#leave(waiter);
    books.count(slot, ENDS[event.type]);
    waiter.reject(error);
    events.emit?.({ ...event, atMs: nowUs / 1000 });
  }

  /** Refuses those at a key, or at all, whose deadline has become impossible. Run the queue afterwards. */
  judgeDeadlines(slot?: number): void {
    if (this.#deadlines.size === 0) return;
    const nowUs = this.engine.nowUs();
    const lanes = slot === undefined ? this.lanes.values() : (this.#gates.get(slot)?.lanes ?? []);
    for (const lane of Array.from(lanes)) {
      const { need } = lane;
      // Most ask for the same: that is worked out once.
      const one = outlookOf(this, need, ONE, nowUs);
      for (const waiter of lane.everybody()) {
        const { costs, askedUs, deadlineUs } = waiter;
        if (deadlineUs === Number.POSITIVE_INFINITY) continue;
        const outlook = costs === ONE ? one : outlookOf(this, need, costs, nowUs);
        if (outlook.atUs <= deadlineUs) continue;
        this.#refuse(waiter, deadlineError(need.key, outlook, deadlineUs - askedUs), outlook, nowUs);
      }
    }
  }

  /** Lets everybody who waits wait under the policy that is in force now, in the old order. Whose request it has no room for is refused. */
  requeue(nowUs: number): void {
    const { keys } = this.engine;
    const everybody = Array.from(this.lanes.values(), (lane) => lane.everybody()).flat();
    everybody.sort((a, b) => a.sequence - b.sequence);
    this.#former = new Map(this.lanes);
    for (const waiter of everybody) this.#remove(waiter);
    for (const waiter of everybody) {
      const { target, options, askedUs } = waiter;
      try {
        const need = keys.need(target, nowUs, true);
        waiter.costs = costOf(need, options.cost, (slot) => keys.ruleOf(slot));
        if (options.maxWait === undefined) waiter.deadlineUs = askedUs + keys.maxWaitUs(need);
        this.#add(waiter, options.priority ?? 0, need, nowUs);
      } catch (error) {
        this.#refuse(waiter, error, MISFIT, nowUs);
      }
    }
    this.#former = undefined;
    this.judgeDeadlines();
    this.run();
  }

  /** A lane that was undecided has to wait, but for some who may start: says so to those who came after `sinceUs`, and refuses those of them for whom there is no room. */
  decided(need: Need, sinceUs: number, mayStart: number): void {
    const nowUs = this.engine.nowUs();
    const waiting = (this.lanes.get(need.name)?.everybody() ?? []).sort((a, b) => a.sequence - b.sequence);
    const outlook = outlookOf(this, need, waiting[0]?.costs ?? ONE, nowUs);
    for (const [ahead, { askedUs }] of waiting.entries()) {
      if (askedUs > sinceUs) this.#tellWait(need, outlook, ahead, nowUs);
    }
    const extra = 1 + mayStart;
    for (let error = this.#fullness(need, extra); error !== undefined; error = this.#fullness(need, extra)) {
      const newest = waiting.pop();
      if (newest === undefined || newest.askedUs <= sinceUs) break;
      this.#refuse(newest, error, outlook, nowUs);
    }
    this.engine.events.flush();
  }

  #leave(waiter: Waiter): void {
    this.#remove(waiter);
    this.#signals.unwatch(waiter);
  }

  /** Whether a newcomer stands behind nobody. What the limits say is another question. */
  isFirst(need: Need, costs: Costs, nowUs: number): boolean {
    if (nowUs < this.pausedUntilUs || this.lanes.has(need.name)) return false;
    if (this.waiting === 0) return true;
    this.#elect(nowUs);
    return !need.slots.some((slot, index) => {
      const gate = this.#gates.get(slot);
      return gate !== undefined && (gate.parked.size > 0 || this.#keptUntilUs(gate, costs, index, nowUs) > nowUs);
    });
  }

  /** Whether keys are kept for somebody at this one. */
  isKeptAt(gate: Gate): boolean {
    return this.#kept !== undefined && gate.lanes.has(this.#kept);
  }

  /** Puts a waiter at the end of its priority's line. Call `run` afterwards. */
  #add(waiter: Waiter, priority: number, need: Need, nowUs: number): void {
    const known = this.lanes.get(need.name);
    const lane = known ?? this.#join(new Lane(need, this.ageingUs));
    lane.add(waiter, priority);
    this.waiting += 1;
    for (const gate of lane.gates) gate.waiting += 1;
    if (waiter.deadlineUs < Number.POSITIVE_INFINITY) this.#deadlines.push(waiter);
    if (known === undefined) this.#park(lane, nowUs);
    else if (lane.head === waiter) this.#headChanged(lane);
  }

  /** Takes a waiter out of its lane. The others stand as if it had never been there. Call `run` afterwards. */
  #remove(waiter: Waiter): void {
    const { level, position } = waiter;
    if (level === undefined) return;
    const { lane } = level;
    const wasHead = level.first === waiter && lane.head === waiter;
    lane.remove(waiter, level);
    if (position >= 0) this.#deadlines.remove(waiter);
    this.waiting -= 1;
    for (const gate of lane.gates) gate.waiting -= 1;
    if (lane.size === 0) this.#dissolve(lane);
    else if (wasHead) this.#headChanged(lane);
    this.engine.arbiter.left?.(lane.need, lane.size);
  }

  /** Looks again at those stopped at a key, since something about it has changed. Call `run` afterwards. */
  touch(slot: number): void {
    const gate = this.#gates.get(slot);
    if (gate === undefined) return;
    this.#wake(gate);
    // Lanes that need a host, and wait elsewhere in front of others, may be stopped at the host from now on. So may the one whose keys are kept.
    const lanes = this.engine.keys.slab.hasFlag(slot, IS_OTHER) ? [] : gate.lanes;
    for (const lane of lanes) if (lane.gate !== undefined && lane.gate !== gate) this.#wake(lane.gate);
    if (this.isKeptAt(gate) && this.#kept?.gate !== undefined) this.#wake(this.#kept.gate);
  }

  /** Starts everybody whose turn it is, sets the timer for the next, and tells what happened. `atUs`: an instant read by the same call, which serves for the first decision. */
  run(atUs?: number): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      if (this.waiting > 0 || this.#alarmUs < Number.POSITIVE_INFINITY) this.#serveAll(atUs ?? this.engine.nowUs());
    } finally {
      this.#isRunning = false;
      this.#wokenUs = Number.NEGATIVE_INFINITY;
    }
    this.engine.lookForQuiet();
    const nextUs = this.#nextUs();
    const gate = this.#wakeUps.peek();
    this.#timer.set(nextUs, gate?.readyUs === nextUs ? gate.slackUs : 0);
    this.engine.events.flush();
  }

  #serveAll(atUs: number): void {
    let nowUs = atUs;
    for (let steps = 0; steps < GRANTS_PER_TURN; steps++, nowUs = this.engine.nowUs()) {
      this.#wokenUs = nowUs;
      this.#elect(nowUs);
      const gate = this.#firstGate(nowUs);
      const overdue = this.#deadlines.peek();
      if (gate !== undefined && gate.readyUs <= nowUs && nowUs >= this.pausedUntilUs) this.#serve(gate, nowUs);
      else if (overdue !== undefined && overdue.deadlineUs <= nowUs && overdue.lane)
        this.#expire(overdue, overdue.lane, nowUs);
      else if (nowUs >= this.#alarmUs) {
        this.#alarmUs = Number.POSITIVE_INFINITY;
        this.engine.keys.sweepAll(nowUs);
      } else return;
      this.engine.events.flush();
    }
  }

  /** The key to look at first. One that was woken is ready from now on: among those ready at this instant the better claim decides, not who was woken. */
  #firstGate(nowUs: number): Gate | undefined {
    let gate = this.#wakeUps.peek();
    while (gate?.readyUs === Number.NEGATIVE_INFINITY) {
      this.#setReady(gate, nowUs);
      gate = this.#wakeUps.peek();
    }
    return gate;
  }

  /** Lets the first lane at a key start its head, or finds where it is stopped instead. */
  #serve(gate: Gate, nowUs: number): void {
    const lane = gate.parked.peek();
    const head = lane?.head;
    if (lane === undefined || head === undefined) {
      this.#wake(gate);
      return;
    }
    const { signal } = head.options;
    if (head.deadlineUs < nowUs) this.#expire(head, lane, nowUs);
    // Its signal is telling everybody just now, and somebody told before it has made the queue run.
    else if (signal?.aborted === true) this.#cancel(head, signal.reason);
    else {
      const plain = this.#startPlain(gate, lane, head, nowUs);
      if (plain !== undefined) {
        if (plain !== null) this.#granted(lane, head, plain, nowUs);
        return;
      }
      const stop = this.#stopOf(lane, nowUs);
      if (stop !== undefined) this.#stopAt(lane, stop);
      else this.#granted(lane, head, this.engine.arbiter.take(lane.need, head.costs, head.askedUs, nowUs), nowUs);
    }
  }

  /** The short way for the head of the only lane at a key: its permit; null: it was stopped there; undefined: the composed way decides. */
  #startPlain(gate: Gate, lane: Lane, head: Waiter, nowUs: number): HeldPermit | null | undefined {
    const { isPlain, local } = this.engine;
    if (!isPlain || gate.lanes.size > 1 || lane.gates.length > 1 || head.costs !== ONE) return undefined;
    const started = local.takePlain(lane.need.key, gate.slot, head.askedUs, nowUs);
    if (started === null) return undefined;
    if (started !== local.stop) return started as HeldPermit;
    this.#setReady(gate, local.stop.atUs, local.stop.slackUs);
    return null;
  }

  #granted(lane: Lane, head: Waiter, permit: HeldPermit, nowUs: number): void {
    lane.startUs = nowUs;
    lane.startSequence = ++this.#sequence;
    this.#leave(head);
    // Its own lane was looked at when the head left; others at these keys may go on, too.
    const least = lane.size > 0 ? 1 : 0;
    for (const gate of lane.gates) if (gate.lanes.size > least) this.touch(gate.slot);
    head.resolve(permit);
  }

  /** The key that lets the lane's head start last, and in `#stopUs` when; undefined when it may start now. */
  #stopOf(lane: Lane, nowUs: number): Gate | undefined {
    const costs = lane.head?.costs ?? ONE;
    this.#stopUs = nowUs;
    this.#stopSlackUs = 0;
    if (this.#kept !== undefined && this.#kept !== lane && isLaneBefore(this.#kept, lane)) {
      for (let index = 0; index < lane.gates.length; index++) {
        const untilUs = this.#keptUntilUs(lane.gates[index], costs, index, nowUs);
        if (untilUs <= nowUs) continue;
        this.#stopUs = Math.max(untilUs, nowUs + LEAST_LOOK_US);
        return lane.gates[index];
      }
    }
    const stop = this.engine.arbiter.look(lane.need, costs, nowUs, NOBODY);
    lane.isHeld = stop !== undefined && isHeld(lane, stop);
    if (stop === undefined) return gateAhead(lane);
    this.#stopUs = stop.limit === "quota" ? Math.min(stop.atUs, nowUs + LOOK_AGAIN_US) : stop.atUs;
    this.#stopSlackUs = stop.slackUs;
    return lane.own ?? lane.gates[stop.index];
  }

  /** Chooses the lane whose keys are kept: of those that need several, the head that has waited longest, once beyond `ageing`. */
  #elect(nowUs: number): void {
    const before = this.#kept;
    let lane: Lane | undefined;
    for (let elder = this.#elders.peek(); elder !== undefined && lane === undefined; elder = this.#elders.peek()) {
      if (nowUs <= this.#agedUs(elder)) break;
      if (elder.lane === before) return;
      // Somebody else was stopped at its gate before it, so that nobody has looked what stops it.
      const stop = this.engine.arbiter.look(elder.lane.need, elder.lane.head?.costs ?? ONE, nowUs, NOBODY);
      if (stop === undefined || !isHeld(elder.lane, stop)) lane = elder.lane;
      else this.#elders.remove(elder);
    }
    if (lane !== before) this.#keep(lane);
  }

  /** Keeps the keys of a lane for its head, or of none until the next election. */
  #keep(lane: Lane | undefined): void {
    const gates = [...(this.#kept?.gates ?? []), ...(lane?.gates ?? [])];
    this.#kept = lane;
    for (const gate of gates) this.#wake(gate);
  }

  /** Until when a head has not waited for longer than `ageing`. */
  #agedUs({ lane }: Elder): number {
    return (lane.head?.askedUs ?? Number.POSITIVE_INFINITY) + this.ageingUs;
  }

  /** From when on a start at this key does not delay the lane whose keys are kept; at or before `nowUs`: it does not now. */
  #keptUntilUs(gate: Gate, costs: Costs, index: number, nowUs: number): number {
    const kept = this.#kept;
    const head = kept?.head;
    if (kept === undefined || head === undefined || !gate.lanes.has(kept)) return nowUs;
    let startUs = nowUs;
    this.engine.arbiter.look(kept.need, head.costs, nowUs, NOBODY, (_index, _limit, atUs) => {
      startUs = Math.max(startUs, atUs);
    });
    const ahead = { requests: 1, units: costAt(costs, index) };
    const behindUs = this.engine.local.readyAt(gate.slot, costAt(head.costs, kept.gates.indexOf(gate)), nowUs, ahead);
    return behindUs > startUs ? behindUs : nowUs;
  }

  #park(lane: Lane, nowUs: number): void {
    const stop = this.#stopOf(lane, nowUs);
    // Nothing but others in front: it stands behind them.
    if (stop === undefined) this.#stopUs = Number.NEGATIVE_INFINITY;
    this.#stopAt(lane, stop ?? lane.own ?? lane.gates.find((gate) => gate.parked.size > 0) ?? lane.gates[0]);
  }

  /** Parks a lane at the key that stops it, as `#stopOf` has found. */
  #stopAt(lane: Lane, gate: Gate): void {
    const from = lane.gate;
    if (from !== gate) {
      if (from !== undefined) this.#unpark(lane, from);
      lane.gate = gate;
      gate.parked.push(lane);
    }
    this.#rank(lane);
    if (gate.parked.peek() === lane) this.#setReady(gate, this.#stopUs, this.#stopSlackUs);
  }

  #unpark(lane: Lane, gate: Gate): void {
    gate.parked.remove(lane);
    lane.gate = undefined;
    this.#wake(gate);
  }

  /** Gives a lane that needs several keys its place among the elders, or takes it away while it is held. */
  #rank({ elder, isHeld }: Lane): void {
    if (elder === undefined) return;
    if (!isHeld) this.#elders.update(elder);
    else if (elder.position >= 0) this.#elders.remove(elder);
  }

  /** Puts a lane where it belongs among the others, and looks again: its head or its claim to a turn has changed. */
  #headChanged(lane: Lane): void {
    const { gate, elder } = lane;
    if (elder !== undefined && elder.position >= 0) this.#elders.update(elder);
    if (gate === undefined) return;
    gate.parked.update(lane);
    this.#wake(gate);
  }

  #join(lane: Lane): Lane {
    const former = this.#former?.get(lane.need.name);
    if (former !== undefined) {
      lane.startUs = former.startUs;
      lane.startSequence = former.startSequence;
    }
    this.lanes.set(lane.need.name, lane);
    lane.gates = lane.need.slots.map((slot) => {
      const gate = this.#gates.get(slot) ?? new Gate(slot);
      this.#gates.set(slot, gate);
      gate.lanes.add(lane);
      // Whoever was alone there may have its keys kept from now on, if it needs several with others.
      if (gate.lanes.size === 2)
        for (const { elder } of gate.lanes) if (elder !== undefined) this.#elders.update(elder);
      this.engine.keys.slab.setFlag(slot, HAS_GATE, true);
      return gate;
    });
    if (this.engine.arbiter.keepsLanesApart === true) lane.own = new Gate(NO_SLOT);
    else if (lane.gates.length > 1) lane.elder = new Elder(lane);
    return lane;
  }

  #dissolve(lane: Lane): void {
    this.lanes.delete(lane.need.name);
    if (lane.elder !== undefined && lane.elder.position >= 0) this.#elders.remove(lane.elder);
    if (lane.gate !== undefined) this.#unpark(lane, lane.gate);
    for (const left of lane.gates) {
      left.lanes.delete(lane);
      // The lane whose keys are kept may have no reason for it any more.
      if (left.lanes.size === 1 && this.isKeptAt(left)) this.#keep(undefined);
      if (left.lanes.size > 0) continue;
      if (left.position >= 0) this.#wakeUps.remove(left);
      this.#gates.delete(left.slot);
      this.engine.keys.slab.setFlag(left.slot, HAS_GATE, false);
    }
    if (this.#kept === lane) this.#keep(undefined);
  }

  #wake(gate: Gate): void {
    if (gate.parked.size > 0) this.#setReady(gate, this.#wokenUs);
    else if (gate.position >= 0) this.#wakeUps.remove(gate);
  }

  #setReady(gate: Gate, readyUs: number, slackUs = 0): void {
    gate.readyUs = readyUs;
    gate.slackUs = slackUs;
    this.#wakeUps.update(gate);
  }

  #nextUs(): number {
    if (!this.engine.isQuietDue) this.#alarmUs = Number.POSITIVE_INFINITY;
    else if (this.#alarmUs === Number.POSITIVE_INFINITY) this.#alarmUs = this.engine.nowUs() + LOOK_EVERY_US;
    if (this.waiting === 0) return this.#alarmUs;
    const readyUs = this.#wakeUps.peek()?.readyUs ?? Number.POSITIVE_INFINITY;
    const elder = this.#elders.peek();
    const agedUs =
      elder === undefined || elder.lane === this.#kept ? Number.POSITIVE_INFINITY : this.#agedUs(elder) + 1;
    const deadlineUs = this.#deadlines.peek()?.deadlineUs ?? Number.POSITIVE_INFINITY;
    const nextUs = Math.min(Math.max(readyUs, this.pausedUntilUs), deadlineUs, this.#alarmUs, agedUs);
    if (Number.isFinite(nextUs)) return nextUs;
    // Somebody was woken, or waits for an answer or for `resume`: then the process stays.
    return this.engine.nowUs() + (nextUs > 0 ? FAR_US : 0);
  }
}

/** The two ends of the promise that was made last. One function for all promises takes them out, so that none needs a function of its own. */
const captured: { resolve: Waiter["resolve"]; reject: Waiter["reject"] } = {
  resolve: () => undefined,
  reject: () => undefined,
};
function capture(resolve: Waiter["resolve"], reject: Waiter["reject"]): void {
  captured.resolve = resolve;
  captured.reject = reject;
}

/** A key of the lane where another one stands before it; undefined when it is its turn at all of them. */
function gateAhead(lane: Lane): Gate | undefined {
  if (lane.gates.length === 1) return undefined;
  return lane.gates.find(({ parked }) => {
    const first = parked.peek();
    return first !== undefined && first !== lane && isLaneBefore(first, lane);
  });
}

/** Whether keeping its keys would not help a lane: what stops it is nobody's turn to end, or it shares no more than one key with others. */
function isHeld(lane: Lane, { index, limit }: Readonly<Stop>): boolean {
  const shared = lane.gates.filter(({ lanes }) => lanes.size > 1);
  return HELD_BY.has(limit) || shared.length < 2 || !shared.includes(lane.gates[index]);
}

function deadlineError(key: string, { waitMs, reason }: WaitTold, maxWaitUs: number): DeadlineError {
  return new DeadlineError(key, waitMs, reason, maxWaitUs / 1000);
}
