import { Heap } from "../engine/heap.js";
import { OneTimer } from "../engine/systemClock.js";
import type { Clock } from "../types.js";
import type { Counsel } from "./counsel.js";
import { Deadlines } from "./deadlines.js";
import { Gate, gateAhead, isGateBefore, NO_ROW } from "./gate.js";
import { Lane, type LaneCost, type LaneSpec, type Terms, type Waiter } from "./lane.js";
import type { Ledger } from "./ledger.js";
import type { QueueOwner } from "./queueOwner.js";
import { HAS_GATE } from "./slab.js";
import { STAND_IN } from "./standIn.js";

/** Starts granted in one go before other work gets its turn. */
const GRANTS_PER_TURN = 4096;
/** With waiters and nothing to wait for but a person, the process is kept alive by a timer this far away. */
const FAR_US = 86_400_000_000;

/**
 * Who waits, in what order, and when to look again: lanes, the keys they are stopped at, and one timer for all of it.
 *
 * Every lane is parked at one of its keys, the one that lets it start last. A key looks only at the first lane parked
 * there, so that a thousand lanes behind one shared key cost as much as one.
 */
export class Queue {
  readonly lanes = new Map<string, Lane>();
  readonly deadlines = new Deadlines<Terms>();
  /** Requests waiting in all lanes. */
  waiting = 0;
  /** Nothing starts before this instant. */
  pausedUntilUs = Number.NEGATIVE_INFINITY;
  /** When the owner wants to be called, waiters or not; Infinity for never. Set it before `run`. */
  alarmUs = Number.POSITIVE_INFINITY;
  readonly #gates = new Map<number, Gate>();
  readonly #wakeUps = new Heap<Gate>(isGateBefore);
  readonly #timer: OneTimer;
  #isPumping = false;
  #sequence = 0;
  #stopUs = 0;
  #stopSlackUs = 0;
  /** Since when a key counts as ready that is looked at again: the instant of the decision under way, or minus Infinity until the next one. */
  #wokenUs = Number.NEGATIVE_INFINITY;
  /** Nobody asks for it: it is kept. */
  readonly standIn = STAND_IN;

  constructor(
    readonly owner: QueueOwner,
    readonly ledger: Ledger,
    clock: Clock,
    readonly ageingUs: number,
  ) {
    this.#timer = new OneTimer(clock, () => this.run());
  }

  gateAt(slot: number): Gate | undefined {
    return this.#gates.get(slot);
  }

  /** Numbers arrivals and starts, in the order in which they happen. */
  nextSequence(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  /** Whether a request may start now without passing anybody. Takes nothing. */
  canStart(spec: LaneSpec, cost: LaneCost, nowUs: number): boolean {
    if (nowUs < this.pausedUntilUs || this.lanes.has(spec.name)) return false;
    for (let index = 0; index < spec.slots.length; index++) {
      const gate = this.#gates.get(spec.slots[index]);
      if (gate !== undefined && this.isWaitedAt(gate, spec, nowUs)) return false;
      if (this.ledger.readyAt(spec.slots[index], nowUs) > nowUs) return false;
    }
    return this.owner.counsel?.hasStart(spec, cost, nowUs) ?? true;
  }

  /** Whether somebody stands at a key before a newcomer. A heavy one alone there was in nobody's way so far: it is looked where that one is stopped by now. */
  isWaitedAt(gate: Gate, spec: LaneSpec, nowUs: number): boolean {
    const lane = this.owner.counsel === undefined ? gate.loneHeavy : undefined;
    const stop = lane && this.#stopOf(lane, nowUs);
    return stop === undefined ? gate.parked.size > 0 : spec.slots.includes(stop.slot);
  }

  /** Puts a waiter at the end of its priority's line. Call `run` afterwards. */
  add(waiter: Waiter, priority: number, spec: LaneSpec, nowUs: number): void {
    let lane = this.lanes.get(spec.name);
    const isNew = lane === undefined;
    if (lane === undefined) {
      lane = new Lane(spec, this.ageingUs);
      this.lanes.set(spec.name, lane);
      this.#join(lane);
    }
    lane.add(waiter, priority);
    this.waiting += 1;
    for (const gate of lane.gates) gate.waiting += 1;
    this.deadlines.add(waiter.terms);
    if (isNew) {
      this.#park(lane, nowUs);
    } else if (lane.head === waiter) {
      this.touchLane(lane);
    }
  }

  /** Takes a waiter out of its lane. The others stand as if it had never been there. Call `run` afterwards. */
  remove(waiter: Waiter): void {
    const { lane, terms } = waiter;
    if (lane === undefined) return;
    // Who stands in the middle of a line is neither the head nor who came first.
    const wasFirst = waiter.level?.line.first === waiter;
    const wasHead = wasFirst && lane.head === waiter;
    lane.remove(waiter);
    if (terms !== undefined) this.deadlines.leave(terms);
    this.waiting -= 1;
    for (const gate of lane.gates) gate.waiting -= 1;
    if (lane.size === 0) {
      this.#dissolve(lane);
      return;
    }
    // Among several lanes the one who left may also have been its lane's claim to have come first.
    if (wasHead || (lane.gate?.parked.size ?? 0) > 1) this.touchLane(lane);
  }

  /** Takes all lanes apart and puts every waiter where `place` says, in the old order and with the old turns. Call `run` afterwards. */
  rebuild(place: (waiter: Waiter) => LaneSpec, nowUs: number): void {
    const turns = new Map(
      [...this.lanes].map(([name, { startUs, startSequence }]) => [name, { startUs, startSequence }]),
    );
    const everybody: { waiter: Waiter; priority: number }[] = [];
    for (const lane of Array.from(this.lanes.values())) {
      for (const waiter of lane.everybody()) everybody.push({ waiter, priority: waiter.level?.priority ?? 0 });
      this.#dissolve(lane);
    }
    this.waiting = 0;
    everybody.sort((a, b) => a.waiter.sequence - b.waiter.sequence);
    for (const { waiter, priority } of everybody) {
      waiter.lane?.remove(waiter);
      const spec = place(waiter);
      const isNew = !this.lanes.has(spec.name);
      this.add(waiter, priority, spec, nowUs);
      const lane = this.lanes.get(spec.name);
      const turn = turns.get(spec.name);
      if (!isNew || lane === undefined || turn === undefined) continue;
      Object.assign(lane, turn);
      this.touchLane(lane);
    }
  }

  /** Looks again at those stopped at a key, since something about it has changed. Call `run` afterwards. */
  touch(slot: number): void {
    const gate = this.#gates.get(slot);
    if (gate === undefined) return;
    this.#wake(gate);
    this.#changed(gate);
  }

  /** A start was made at a key, which may stop others there from now on. */
  started(slot: number): void {
    const gate = this.#gates.get(slot);
    if (gate !== undefined) this.#changed(gate);
    this.rearm();
  }

  #changed(gate: Gate): void {
    for (const heavy of gate.takeHeavies()) this.#wake(heavy);
  }

  /** Starts everybody whose turn it is, and sets the timer for the next. `atUs`: an instant read by the same call, which serves for the first decision. */
  run(atUs?: number): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    let nowUs = 0;
    try {
      nowUs = this.#pump(atUs ?? this.owner.nowUs());
    } finally {
      this.#isPumping = false;
      this.#wokenUs = Number.NEGATIVE_INFINITY;
    }
    this.#arm(nowUs);
    this.owner.flush();
  }

  /** Sets the timer again, after `alarmUs` has changed. */
  rearm(): void {
    if (!this.#isPumping) this.#arm(this.owner.nowUs());
  }

  /** Returns the instant at which there was nothing left to do. */
  #pump(atUs: number): number {
    let nowUs = atUs;
    for (let granted = 0; granted < GRANTS_PER_TURN; granted++, nowUs = this.owner.nowUs()) {
      this.#wokenUs = nowUs;
      const gate = this.#firstGate(nowUs);
      if (gate !== undefined && gate.readyUs <= nowUs && nowUs >= this.pausedUntilUs) {
        this.#serve(gate, nowUs);
        continue;
      }
      const overdue = this.deadlines.due(nowUs)?.waiter;
      if (overdue !== undefined) this.#expire(overdue, nowUs);
      else if (nowUs >= this.alarmUs) this.owner.alarm(nowUs);
      else return nowUs;
    }
    return nowUs;
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
    if (head.deadlineUs < nowUs) {
      this.#expire(head, nowUs);
      return;
    }
    const signal = head.watch?.signal;
    if (signal?.aborted === true) {
      // Its signal is telling everybody just now, and somebody told before it has made the queue run.
      this.owner.abort(head, signal.reason);
      return;
    }
    const stop = this.#stopOf(lane, nowUs);
    if (stop === undefined) {
      lane.startUs = nowUs;
      lane.startSequence = this.nextSequence();
      this.remove(head);
      this.owner.grant(head, lane, nowUs);
      return;
    }
    if (stop === gate) this.#stop(gate);
    else this.#move(lane, stop);
  }

  #expire(waiter: Waiter, nowUs: number): void {
    const { lane } = waiter;
    this.remove(waiter);
    if (lane !== undefined) this.owner.expire(waiter, lane, nowUs);
  }

  /** The key that lets the lane's head start last, and in `#stopUs` when; undefined when it may start now. */
  #stopOf(lane: Lane, nowUs: number): Gate | undefined {
    const { head } = lane;
    let stop: Gate | undefined;
    this.#stopUs = nowUs;
    this.#stopSlackUs = 0;
    if (head === undefined) return undefined;
    for (let index = 0; index < lane.slots.length; index++) {
      const gate = lane.gates[index];
      const readyUs = this.ledger.readyAt(gate.slot, nowUs);
      if (readyUs > this.#stopUs) {
        this.#stopUs = readyUs;
        stop = gate;
      }
    }
    const { counsel } = this.owner;
    return stop ?? (counsel === undefined ? gateAhead(lane) : this.#counselStop(counsel, lane, head, nowUs));
  }

  /** Where a lane stands that waits for the last word: at a gate of its own. Who may start next at the keys it shares is not for this queue to say. */
  #counselStop(counsel: Counsel, lane: Lane, head: Waiter, nowUs: number): Gate | undefined {
    // While everything is paused nothing is asked: what is granted could not be used.
    const isPaused = nowUs < this.pausedUntilUs;
    const readyUs = isPaused ? nowUs : counsel.readyAt(lane, head.cost, nowUs);
    if (readyUs <= nowUs && !isPaused) return undefined;
    this.#stopUs = readyUs;
    lane.aside ??= new Gate(NO_ROW);
    return lane.aside;
  }

  #park(lane: Lane, nowUs: number): void {
    const stop = this.#stopOf(lane, nowUs);
    // Nothing but others in front: it stands behind them.
    if (stop === undefined) this.#stopUs = Number.NEGATIVE_INFINITY;
    this.#enter(lane, stop ?? lane.gates.find((gate) => gate.parked.size > 0) ?? lane.gates[0]);
  }

  #move(lane: Lane, to: Gate): void {
    const from = lane.gate;
    if (from !== undefined) {
      from.parked.remove(lane);
      this.#wake(from);
    }
    this.#enter(lane, to);
  }

  #enter(lane: Lane, gate: Gate): void {
    lane.gate = gate;
    gate.parked.push(lane);
    if (gate.parked.peek() === lane) this.#stop(gate);
    // The first of them was in nobody's way so far, so that nobody looked where it is stopped by now.
    else if (gate.parked.size === 2 && gate.isHeavy) this.#wake(gate);
  }

  #stop(gate: Gate): void {
    this.#setReady(gate, this.#stopUs, this.#stopSlackUs);
    gate.watchHeavy();
  }

  /** Puts a lane where it belongs among the others, and looks again: its head or its claim to a turn has changed, or the last word on it. */
  touchLane(lane: Lane): void {
    const { gate } = lane;
    if (gate === undefined) return;
    gate.parked.update(lane);
    this.#wake(gate);
  }

  #join(lane: Lane): void {
    lane.gates = lane.slots.map((slot) => {
      const gate = this.#gates.get(slot) ?? new Gate(slot);
      this.#gates.set(slot, gate);
      return gate;
    });
    for (const gate of lane.gates) {
      gate.lanes.add(lane);
      this.ledger.slab.setFlag(gate.slot, HAS_GATE, true);
    }
  }

  #dissolve(lane: Lane): void {
    this.lanes.delete(lane.name);
    this.owner.counsel?.emptied(lane);
    const { gate } = lane;
    if (gate !== undefined) {
      gate.parked.remove(lane);
      lane.gate = undefined;
      this.#wake(gate);
    }
    for (const left of lane.gates) {
      left.lanes.delete(lane);
      left.waiting -= lane.size;
      if (left.lanes.size > 0) continue;
      if (left.position >= 0) this.#wakeUps.remove(left);
      this.#gates.delete(left.slot);
      this.ledger.slab.setFlag(left.slot, HAS_GATE, false);
    }
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

  #arm(nowUs: number): void {
    const nextUs = this.#nextUs(nowUs);
    const gate = this.#wakeUps.peek();
    this.#timer.set(nextUs, gate?.readyUs === nextUs ? gate.slackUs : 0);
  }

  #nextUs(nowUs: number): number {
    if (this.waiting === 0) return this.alarmUs;
    const startUs = Math.max(this.#wakeUps.peek()?.readyUs ?? Number.POSITIVE_INFINITY, this.pausedUntilUs, nowUs);
    const nextUs = Math.min(startUs, this.deadlines.nextUs, this.alarmUs);
    // Somebody waits for an answer or for `resume`: the process stays.
    return nextUs === Number.POSITIVE_INFINITY ? nowUs + FAR_US : nextUs;
  }
}
