import { NOBODY, ONE } from "../core/key.js";
import type { LimitKind } from "../observe/types.js";
import type { Clock } from "../types.js";
import type { Arbiter, Stop } from "./arbiter.js";
import { Deadlines } from "./deadlines.js";
import { Gate, gateAhead, isGateBefore } from "./gate.js";
import { Heap } from "./heap.js";
import { Elder, isElderBefore, isLaneBefore, Lane, type Terms, Waiter } from "./lane.js";
import { type Costs, costAt, type Need } from "./need.js";
import { OneTimer } from "./oneTimer.js";
import type { HeldPermit } from "./permit.js";
import { HAS_GATE, type Slab } from "./slab.js";

/** Starts granted in one go before other work gets its turn. */
const GRANTS_PER_TURN = 4096;
/** With waiters and nothing to wait for but a person, the process is kept alive by a timer this far away. */
const FAR_US = 86_400_000_000;
/** A quota ends by the wall clock, which may jump: it is looked at again after this long at the latest. */
const LOOK_AGAIN_US = 60_000_000;
/** Behind a lane whose keys are kept nobody looks again sooner than this, unless something happens. */
const LEAST_LOOK_US = 1_000;
/** What holds a key whatever anybody does. A head it stops has no keys kept for it. */
const HELD_BY: ReadonlySet<LimitKind | undefined> = new Set(["cooldown", "pause", "quota"]);

/** What the queue asks of the limiter it works for. */
export interface QueueOwner {
  nowUs(): number;
  /** The waiter has left its lane; its start is taken. */
  granted(waiter: Waiter, permit: HeldPermit): void;
  /** The waiter reached its deadline and has left its lane. */
  expired(waiter: Waiter, need: Need, nowUs: number): void;
  /** The waiter's signal is aborted. Must take it out of its lane. */
  aborted(waiter: Waiter, reason: unknown): void;
  /** Lets events wait until `tellEvents`; false where they wait already, or nobody listens. */
  holdEvents(): boolean;
  tellEvents(): void;
  /** `alarmUs` has come. */
  alarm(nowUs: number): void;
  /** The queue is at rest until the next call or timer. */
  flush(): void;
}

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
  /** Lanes that need several keys and are not held, the head that has waited longest first. */
  readonly #elders = new Heap<Elder>(isElderBefore);
  /** The one lane whose keys are kept for its head, older than `ageing`. */
  #kept: Lane | undefined = undefined;
  #isPumping = false;
  #sequence = 0;
  #stopUs = 0;
  #stopSlackUs = 0;
  /** Since when a key counts as ready that is looked at again: the instant of the decision under way, or minus Infinity until the next one. */
  #wokenUs = Number.NEGATIVE_INFINITY;
  /** Never read. Kept alive so that V8 keeps the hidden classes, and the code compiled for them, while no queue has anybody in it (decision 3). */
  readonly exemplar = EXEMPLAR;

  constructor(
    readonly owner: QueueOwner,
    readonly arbiter: Arbiter,
    readonly slab: Slab,
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

  /** Whether a newcomer stands behind nobody. What the limits say is another question. */
  isFirst(need: Need, costs: Costs, nowUs: number): boolean {
    if (nowUs < this.pausedUntilUs || this.lanes.has(need.name)) return false;
    if (this.waiting === 0) return true;
    this.#elect(nowUs);
    return !need.slots.some((slot, index) => {
      const gate = this.#gates.get(slot);
      return (
        gate !== undefined &&
        (this.isWaitedAt(gate, need, nowUs) || this.#keptUntilUs(gate, costs, index, nowUs) > nowUs)
      );
    });
  }

  /** Whether somebody stands at a key before a newcomer. A heavy one alone there was in nobody's way so far: it is looked where that one is stopped by now. */
  isWaitedAt(gate: Gate, need: Need, nowUs: number): boolean {
    const lane = gate.loneHeavy;
    const stop = lane && this.#stopOf(lane, nowUs);
    return stop === undefined ? gate.parked.size > 0 : need.slots.includes(stop.slot);
  }

  /** Whether keys are kept for somebody at this one. */
  isKeptAt(gate: Gate): boolean {
    return this.#kept !== undefined && gate.hasLane(this.#kept);
  }

  /** Puts a waiter at the end of its priority's line. Call `run` afterwards. */
  add(waiter: Waiter, priority: number, need: Need, nowUs: number): void {
    let lane = this.lanes.get(need.name);
    const isNew = lane === undefined;
    if (lane === undefined) {
      lane = new Lane(need, this.ageingUs);
      this.lanes.set(need.name, lane);
      this.#join(lane);
    }
    lane.add(waiter, priority);
    this.waiting += 1;
    for (const gate of lane.gates) gate.waiting += 1;
    this.deadlines.add(waiter.terms);
    if (isNew) this.#park(lane, nowUs);
    else if (lane.head === waiter) this.#headChanged(lane);
  }

  /** Takes a waiter out of its lane. The others stand as if it had never been there. Call `run` afterwards. */
  remove(waiter: Waiter): void {
    const { lane, terms } = waiter;
    if (lane === undefined) return;
    // Who stands in the middle of a line is neither the head nor who has waited longest.
    const wasFirst = waiter.level?.first === waiter;
    const wasHead = wasFirst && lane.head === waiter;
    lane.remove(waiter);
    if (terms !== undefined) this.deadlines.leave(terms);
    this.waiting -= 1;
    for (const gate of lane.gates) gate.waiting -= 1;
    if (lane.size === 0) this.#dissolve(lane);
    else if (wasHead || (wasFirst && lane.elder !== undefined)) this.#headChanged(lane);
  }

  /** Takes all lanes apart and puts every waiter where `place` says, in the old order and with the old turns. Call `run` afterwards. */
  rebuild(place: (waiter: Waiter) => Need, nowUs: number): void {
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
      const need = place(waiter);
      const isNew = !this.lanes.has(need.name);
      this.add(waiter, priority, need, nowUs);
      const lane = this.lanes.get(need.name);
      const turn = turns.get(need.name);
      if (!isNew || lane === undefined || turn === undefined) continue;
      Object.assign(lane, turn);
      this.#headChanged(lane);
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
    // The lane whose keys are kept may be stopped elsewhere now.
    if (this.isKeptAt(gate) && this.#kept?.gate !== undefined) this.#wake(this.#kept.gate);
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
      this.#elect(nowUs);
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
      this.owner.aborted(head, signal.reason);
      return;
    }
    // A lane with one key has nobody to ask but the arbiter.
    const stop = lane.gates.length > 1 || this.#kept !== undefined ? this.#stopOf(lane, nowUs) : undefined;
    if (stop === undefined) {
      const taken = this.#start(lane, head, nowUs);
      if (taken === undefined) return;
      this.#note(lane, taken, nowUs);
    }
    if (stop === undefined || stop === gate) this.#stop(gate);
    else this.#move(lane, stop);
  }

  /** Starts the head of a lane, or says what stops it. Listeners hear of it when it is complete. */
  #start(lane: Lane, head: Waiter, nowUs: number): Readonly<Stop> | undefined {
    const isOuter = this.owner.holdEvents();
    const taken = this.arbiter.take(lane.need, head.costs, head.askedUs, nowUs);
    if ("startedUs" in taken) {
      lane.startUs = nowUs;
      lane.startSequence = this.nextSequence();
      this.remove(head);
      this.owner.granted(head, taken);
    }
    if (isOuter) this.owner.tellEvents();
    return "startedUs" in taken ? undefined : taken;
  }

  #expire(waiter: Waiter, nowUs: number): void {
    const { lane } = waiter;
    this.remove(waiter);
    if (lane !== undefined) this.owner.expired(waiter, lane.need, nowUs);
  }

  /** The key that lets the lane's head start last, and in `#stopUs` when; undefined when it may start now. */
  #stopOf(lane: Lane, nowUs: number): Gate | undefined {
    const { head } = lane;
    if (head === undefined) return undefined;
    if (this.#kept !== undefined && this.#kept !== lane && isLaneBefore(this.#kept, lane)) {
      for (let index = 0; index < lane.gates.length; index++) {
        const untilUs = this.#keptUntilUs(lane.gates[index], head.costs, index, nowUs);
        if (untilUs <= nowUs) continue;
        this.#stopUs = Math.max(untilUs, nowUs + LEAST_LOOK_US);
        this.#stopSlackUs = 0;
        return lane.gates[index];
      }
    }
    const stop = this.arbiter.stopOf(lane.need, head.costs, nowUs);
    if (stop === undefined) {
      this.#stopUs = nowUs;
      this.#stopSlackUs = 0;
      lane.isHeld = false;
      return gateAhead(lane);
    }
    this.#note(lane, stop, nowUs);
    return lane.gates[stop.index];
  }

  #note(lane: Lane, stop: Readonly<Stop>, nowUs: number): void {
    const { atUs, slackUs, limit } = stop;
    this.#stopUs = limit === "quota" ? Math.min(atUs, nowUs + LOOK_AGAIN_US) : atUs;
    this.#stopSlackUs = slackUs;
    lane.isHeld = isHeld(lane, stop);
  }

  /** Chooses the lane whose keys are kept: of those that need several, the head that has waited longest, once beyond `ageing`. */
  #elect(nowUs: number): void {
    const before = this.#kept;
    let lane: Lane | undefined;
    for (let elder = this.#elders.peek(); elder !== undefined && lane === undefined; elder = this.#elders.peek()) {
      if (nowUs <= elder.sinceUs + this.ageingUs) break;
      lane = elder.lane;
      if (lane === before) return;
      // Somebody else was stopped at its gate before it, so that nobody has looked what stops it.
      const stop = this.arbiter.stopOf(lane.need, lane.head?.costs ?? ONE, nowUs);
      if (stop === undefined || !isHeld(lane, stop)) break;
      lane.isHeld = true;
      this.#elders.remove(elder);
      lane = undefined;
    }
    if (lane === before) return;
    this.#kept = lane;
    for (const each of [before, lane]) {
      for (const gate of each?.gates ?? []) this.#wake(gate);
    }
  }

  /** From when on a start at this key does not delay the lane whose keys are kept; at or before `nowUs`: it does not now. */
  #keptUntilUs(gate: Gate, costs: Costs, index: number, nowUs: number): number {
    const kept = this.#kept;
    const head = kept?.head;
    if (kept === undefined || head === undefined || !gate.hasLane(kept)) return nowUs;
    const obstacles = this.arbiter.look(kept.need, head.costs, nowUs, NOBODY);
    const startUs = obstacles.reduce((latestUs, { atUs }) => Math.max(latestUs, atUs), nowUs);
    const ahead = { requests: 1, units: costAt(costs, index) };
    const behindUs = this.arbiter.readyAt(gate.slot, costAt(head.costs, kept.gates.indexOf(gate)), nowUs, ahead);
    return behindUs > startUs ? behindUs : nowUs;
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
    this.#rank(lane);
    if (gate.parked.peek() === lane) this.#stop(gate);
    // The first of them was in nobody's way so far, so that nobody looked where it is stopped by now.
    else if (gate.parked.size === 2 && gate.isHeavy) this.#wake(gate);
  }

  #stop(gate: Gate): void {
    const lane = gate.parked.peek();
    if (lane !== undefined) this.#rank(lane);
    this.#setReady(gate, this.#stopUs, this.#stopSlackUs);
    gate.watchHeavy();
  }

  /** Gives a lane that needs several keys its place among the elders, or takes it away while it is held. */
  #rank(lane: Lane): void {
    const { elder } = lane;
    if (elder === undefined) return;
    if (!lane.isHeld) this.#elders.update(elder);
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

  #join(lane: Lane): void {
    lane.gates = lane.need.slots.map((slot) => {
      const gate = this.#gates.get(slot) ?? new Gate(slot);
      this.#gates.set(slot, gate);
      gate.addLane(lane);
      // Whoever was alone there may have its keys kept from now on, if it needs several with others.
      if (gate.laneCount === 2) for (const { elder } of gate.lanes) if (elder !== undefined) this.#elders.update(elder);
      this.slab.setFlag(slot, HAS_GATE, true);
      return gate;
    });
    if (lane.gates.length > 1) lane.elder = new Elder(lane);
  }

  #dissolve(lane: Lane): void {
    this.lanes.delete(lane.need.name);
    if (lane.elder !== undefined && lane.elder.position >= 0) this.#elders.remove(lane.elder);
    const { gate } = lane;
    if (gate !== undefined) {
      gate.parked.remove(lane);
      lane.gate = undefined;
      this.#wake(gate);
    }
    for (const left of lane.gates) {
      left.removeLane(lane);
      left.waiting -= lane.size;
      // The lane whose keys are kept may have no reason for it any more.
      if (left.laneCount === 1 && this.isKeptAt(left)) this.#letGo();
      if (left.laneCount > 0) continue;
      if (left.position >= 0) this.#wakeUps.remove(left);
      this.#gates.delete(left.slot);
      this.slab.setFlag(left.slot, HAS_GATE, false);
    }
    if (this.#kept === lane) this.#letGo();
  }

  /** Keeps no keys until the next election. */
  #letGo(): void {
    const gates = this.#kept?.gates ?? [];
    this.#kept = undefined;
    for (const gate of gates) this.#wake(gate);
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
    const elder = this.#elders.peek();
    const agedUs = elder === undefined || elder.lane === this.#kept ? undefined : elder.sinceUs + this.ageingUs + 1;
    const electUs = Math.max(nowUs, agedUs ?? Number.POSITIVE_INFINITY);
    const nextUs = Math.min(startUs, this.deadlines.nextUs, this.alarmUs, electUs);
    // Somebody waits for an answer or for `resume`: the process stays.
    return nextUs === Number.POSITIVE_INFINITY ? nowUs + FAR_US : nextUs;
  }
}

/** Whether keeping its keys would not help a lane: what stops it is nobody's turn to end, or it shares no more than one key with others. */
function isHeld(lane: Lane, { index, limit }: Readonly<Stop>): boolean {
  const shared = lane.gates.filter(({ laneCount }) => laneCount > 1);
  return HELD_BY.has(limit) || shared.length < 2 || !shared.includes(lane.gates[index]);
}

/** One of each that a queue is made of, of no limiter. */
const EXEMPLAR = new Gate(-1);
{
  const host = { origin: "", intents: new Map(), exempt: false } as unknown as Need["host"];
  const target = { key: "", intent: undefined, scopes: [] };
  const need: Need = { name: "", key: "", slots: [], scopeNames: [], rowNames: [], host, target };
  const lane = new Lane(need, 1);
  // Numbers that are not whole: a layout that has only met whole ones is given up for another at the first that is not.
  lane.add(new Waiter(0.5, 0, ONE, target, undefined, Math.abs as never, Math.abs as never), 0);
  EXEMPLAR.slackUs = 0.5;
  EXEMPLAR.parked.push(lane);
}
