import type { Answer } from "../../core/answer.js";
import type { Sender } from "../../shared/operation.js";
import type { Permit } from "../../types.js";
import { ONE } from "../cost.js";
import type { Counsel, Outlook, TellWhy } from "../counsel.js";
import type { Lane, LaneCost, LaneSpec, Waiter } from "../lane.js";
import type { HeldPermit } from "../permit.js";
import { Announcements } from "./announcements.js";
import { Aside } from "./aside.js";
import { askAgainAfterUs, isEvent } from "./askAgain.js";
import type { TakeTerms } from "./askFor.js";
import { Awaiting } from "./awaiting.js";
import { Chances } from "./chances.js";
import { Desk } from "./desk.js";
import { Guests } from "./guests.js";
import { outlookOf } from "./outlook.js";
import { HORIZON_US, isSamePlan, type Plan, storeName } from "./plan.js";
import { type QuestionParts, Questions, type Taken } from "./questions.js";
import { refuseAll } from "./refuseAll.js";
import type { Grant, Run } from "./run.js";
import { runOf } from "./runOf.js";
import { isSameCost } from "./sameCost.js";
import type { Settler } from "./settler.js";
import { SharedPermit } from "./sharedPermit.js";
import { StricterWarnings } from "./stricter.js";

/** What is at hand and not used is looked for so often. */
const SWEEP_MS = 50;
const SWEEP_BATCH_MS = 20;

/** What a broker works with. */
export interface BrokerParts extends QuestionParts {
  readonly settler: Settler;
}

/**
 * Speaks with the store for the lanes of this process: one question at a time for each lane, for its head and those right behind.
 *
 * What it is granted it keeps at hand until the queue uses it; what is not used goes back.
 */
export class Broker implements Counsel {
  readonly #desks = new Map<string, Desk>();
  readonly #stricter: StricterWarnings;
  #tickets = 0;
  /** A start that is about to be used beside the queue. */
  #aside: Grant | undefined = undefined;
  #sweep: unknown = undefined;
  /** Lanes that wait, by the key that stops them. */
  readonly #awaiting = new Awaiting();
  readonly #chances = new Chances(this.#awaiting, (desk, chance) => {
    desk.chance = chance;
    this.#askNow(desk);
  });
  readonly #announcements = new Announcements((name) => ({
    desk: this.#desks.get(name),
    lane: this.parts.engine.queue.lanes.get(name),
  }));
  /** Asks under way and starts at hand: what a process has to wait for before it ends well. */
  #pending = new Set<Promise<unknown>>();

  /** How the store is asked. */
  readonly questions: Questions;

  readonly aside = new Aside(this);
  readonly guests: Guests;

  constructor(readonly parts: BrokerParts) {
    this.#stricter = new StricterWarnings(parts.engine);
    this.guests = new Guests(parts.engine, ({ name, size }) => this.#desks.get(name)?.toldOf(size) ?? 0);
    this.questions = new Questions(parts, (plan, spec, cost, taken) => {
      if (taken.reply.starts.length > 0)
        this.track(parts.settler.giveBack(runOf(parts, { key: spec.key, plan, cost }, taken)));
    });
  }

  readyAt(lane: Lane, cost: LaneCost, nowUs: number): number {
    const desk = this.#deskOf(lane);
    desk.plan = this.questions.planOf(lane);
    if (desk.plan.isFree) return nowUs;
    const run = this.#runFor(desk, cost, nowUs);
    if (run !== undefined) {
      const wanted = lane.size - desk.left;
      if (wanted > 0 && cost === ONE && !desk.isAsking && desk.askAtUs <= nowUs)
        this.track(this.#ask(desk, cost, wanted));
      return run.readyUs;
    }
    if (desk.isAsking) return Number.POSITIVE_INFINITY;
    // When the head is another one that wants more or less, what was said to the last one does not hold for it.
    if (desk.askAtUs > nowUs && isSameCost(desk.cost, cost)) return desk.askAtUs;
    this.track(this.#ask(desk, cost, lane.size));
    return Number.POSITIVE_INFINITY;
  }

  hasStart(spec: LaneSpec, cost: LaneCost, nowUs: number): boolean {
    const desk = this.#desks.get(spec.name);
    if (desk === undefined) return this.questions.planOf(spec).isFree;
    const run = this.#runFor(desk, cost, nowUs);
    return run !== undefined ? run.readyUs <= nowUs : this.questions.planOf(spec).isFree;
  }

  started(spec: LaneSpec, permit: HeldPermit): Permit {
    const { settler } = this.parts;
    const aside = this.#aside;
    this.#aside = undefined;
    const desk = aside === undefined ? this.#desks.get(spec.name) : undefined;
    const run = desk?.pocket[0];
    if (desk === undefined || run === undefined) return new SharedPermit(settler, permit, aside);
    const grant = run.take(permit.startedUs);
    if (run.left === 0) desk.pocket.shift();
    desk.used += 1;
    if (this.parts.options.isBatch) this.#takeInAdvance(desk, grant.facts.cost, permit.startedUs);
    return new SharedPermit(settler, permit, grant);
  }

  /** Grants a start that was asked for beside the queue. */
  grantAside(spec: LaneSpec, cost: LaneCost, grant: Grant): Permit {
    const { engine } = this.parts;
    const nowUs = engine.nowUs();
    this.#aside = grant;
    return engine.grantNow(spec, cost, nowUs, nowUs);
  }

  /** Counts a start made without asking, and tells its answer: now, or when the store is back. */
  async record(spec: LaneSpec, answer: Answer, ageUs: number): Promise<void> {
    const plan = this.questions.planOf(spec);
    const { link, settler, standby, engine } = this.parts;
    const startedUs = engine.nowUs() - ageUs;
    const keysNow = () => this.questions.keysNow(spec, ONE);
    const isMissed = link.isAway;
    const agesUs = (): number[] => [engine.nowUs() - startedUs];
    const make = (by: Sender) => ({ kind: "record", ...by, keys: keysNow(), agesUs: agesUs() }) as const;
    const told = isMissed ? undefined : await link.sendOrKeep(plan.storeKeys, make);
    const note = { plan, cost: ONE, keysNow };
    if (told !== undefined) standby.recollection.started(plan, ONE, { startedUs, count: 1 });
    else await standby.record(note, this.questions.ownKeys(spec, ONE), { startedUs, isMissed });
    // Successes of an outage are no news, and so many that they would displace what is.
    if (isMissed && answer.kind === "success" && answer.budget === undefined) return;
    await settler.tellRecorded(plan, spec.key, answer, { startedUs, isTold: told !== undefined });
  }

  /** The store's names of all keys that this process knows. */
  knownKeys(): string[] {
    const { hosts, scopes } = this.parts.engine.keys;
    const { name } = this.parts.options;
    const others = [...scopes.keys()].map((scope) => scope.split("\n").join(" "));
    return [...Array.from(hosts.keys(), (key) => `host ${key}`), ...others].map((key) => storeName(name, key));
  }

  emptied(lane: Lane): void {
    this.#announcements.forget(lane.name);
    const desk = this.#desks.get(lane.name);
    if (desk === undefined) return;
    // The last one may just be leaving with the start at hand.
    queueMicrotask(() => this.#closeIfEmpty(desk));
  }

  outlook(spec: LaneSpec, cost: LaneCost, nowUs: number): Outlook | undefined {
    const [plan, desk] = [this.questions.planOf(spec), this.#desks.get(spec.name)];
    return outlookOf(this.parts, { plan, spec, cost, desk }, nowUs);
  }

  isWaitedFor(spec: LaneSpec, index: number): boolean {
    return this.#awaiting.has(this.questions.planOf(spec).storeKeys[index]);
  }

  tellWhy({ name }: LaneSpec, waiter: Waiter, tell: TellWhy): void {
    this.#announcements.add(name, waiter, tell);
  }

  /** The policy has changed: what was worked out from the old one is forgotten, here and as far as it is only ours in the store, and everybody asks anew. */
  configured(): void {
    this.track(this.questions.configured());
    const { standby, settler } = this.parts;
    standby.recollection.configured();
    settler.parts.renewals.configured();
    for (const desk of this.#desks.values()) desk.leaveLine();
  }

  /** Nothing more is asked. Resolves once everything is given back. */
  async close(): Promise<void> {
    for (const desk of Array.from(this.#desks.values())) if (!desk.isAsking) this.#close(desk);
    while (this.#pending.size > 0) await Promise.all(this.#pending);
    if (this.#sweep !== undefined) this.parts.engine.clock.clearTimer(this.#sweep);
    // Places of permits that are still in flight are renewed until these are back.
    this.parts.link.close();
  }

  #deskOf(lane: LaneSpec): Desk {
    let desk = this.#desks.get(lane.name);
    if (desk === undefined) {
      this.#tickets += 1;
      desk = new Desk(lane, `${this.parts.options.process}/${this.#tickets}`, this.questions.planOf(lane));
      this.#desks.set(lane.name, desk);
    }
    return desk;
  }

  /** The starts at hand that are of this cost and not too old; the others go back. */
  #runFor(desk: Desk, cost: LaneCost, nowUs: number): Run | undefined {
    for (;;) {
      const run = desk.pocket[0];
      if (run === undefined) return undefined;
      if (isSameCost(run.facts.cost, cost) && !run.isStale(nowUs, this.parts.options.isBatch)) return run;
      desk.pocket.shift();
      this.track(this.parts.settler.giveBack(run));
    }
  }

  /** With `batch`: asks for the next starts while the last are being used up fast. */
  #takeInAdvance(desk: Desk, cost: LaneCost, nowUs: number): void {
    this.#sweepLater();
    if (desk.isAsking || desk.left * 2 > desk.lastCount || desk.isInLine) return;
    if (cost !== ONE || desk.usedWithin(desk.plan.batchUs, nowUs) < 2) return;
    this.track(this.#ask(desk, cost, 0));
  }

  /** Gives back what is at hand and not used in time: taken in advance, or of a lane that something in this process stops meanwhile. */
  #sweepLater(): void {
    if (this.#sweep !== undefined) return;
    const { clock } = this.parts.engine;
    const afterMs = this.parts.options.isBatch ? SWEEP_BATCH_MS : SWEEP_MS;
    this.#sweep = clock.setTimer(clock.now() + afterMs, () => {
      this.#sweep = undefined;
      const nowUs = this.parts.engine.nowUs();
      let isBusy = false;
      for (const desk of Array.from(this.#desks.values())) {
        this.#runFor(desk, desk.pocket[0]?.facts.cost ?? ONE, nowUs);
        this.#closeIfEmpty(desk);
        isBusy ||= desk.left > 0;
      }
      if (isBusy) this.#sweepLater();
    });
    clock.unref?.(this.#sweep);
  }

  #closeIfEmpty(desk: Desk): void {
    if (this.parts.engine.queue.lanes.has(desk.name)) return;
    if (!this.parts.options.isBatch || desk.left === 0 || this.parts.engine.isClosed) this.#close(desk);
  }

  async #ask(desk: Desk, cost: LaneCost, wanted: number): Promise<void> {
    const { engine, options } = this.parts;
    const { plan } = desk;
    const nowUs = engine.nowUs();
    const waiting = (engine.queue.lanes.get(desk.name)?.size ?? 0) - desk.left;
    const soon = options.isBatch ? desk.usedWithin(plan.batchUs, nowUs) : 0;
    const count = cost === ONE ? Math.max(1, Math.min(Math.max(wanted, soon), plan.most)) : 1;
    const { chance, turnUs } = desk;
    desk.asks(cost, count, nowUs);
    this.#awaiting.asks(desk);
    const terms: TakeTerms = {
      count,
      horizonUs: HORIZON_US,
      ticket: waiting <= 0 && wanted !== 1 ? "" : desk.ticket,
      turnUs: desk.turnUs,
      joinedUs: desk.joinedUs,
      hasMore: waiting > count,
      member: this.questions.memberName(plan),
    };
    try {
      const taken = await this.questions.take(plan, desk.spec, cost, terms);
      this.#awaiting.answered(desk);
      if (isSamePlan(plan, desk.plan)) this.#heard(desk, taken, cost);
      else this.#dropAnswer(desk, plan, taken, cost);
      this.#chances.answered(desk, taken.reply, turnUs, chance);
    } catch (error) {
      this.#awaiting.answered(desk);
      desk.leaveLine();
      refuseAll(engine, engine.queue.lanes.get(desk.name), error);
    }
    const lane = engine.queue.lanes.get(desk.name);
    if (lane === undefined) this.#closeIfEmpty(desk);
    else this.#wake(desk, lane);
    if (desk.left > 0) this.#sweepLater();
    this.#announcements.answered(desk.name);
  }

  /** The policy has changed while this was asked: what was granted by the old one goes back, and the question is asked anew. */
  #dropAnswer(desk: Desk, plan: Plan, taken: Taken, cost: LaneCost): void {
    desk.leaveLine();
    if (taken.reply.starts.length === 0) return;
    this.track(this.parts.settler.giveBack(runOf(this.parts, { key: desk.spec.key, plan, cost }, taken)));
  }

  /** The store is back: who was told to wait by what stood in for it asks again. */
  storeIsBack(): void {
    for (const desk of Array.from(this.#desks.values())) {
      const lane = this.parts.engine.queue.lanes.get(desk.name);
      if (!desk.isByStandby || desk.isAsking || lane === undefined) continue;
      desk.leaveLine();
      this.#wake(desk, lane);
    }
  }

  #wake(desk: Desk, lane: Lane): void {
    const { queue, departures } = this.parts.engine;
    queue.touchLane(lane);
    if (desk.stop !== undefined) this.guests.told(lane);
    // With a start at hand, what stops the lane stops those behind its first.
    if (desk.stop !== undefined && desk.left === 0) for (const slot of lane.slots) departures.judgeDeadlines(slot);
    queue.run();
  }

  /** Something was given back at these keys. */
  freed(storeKeys: readonly string[]): void {
    this.#chances.freed(storeKeys);
    this.parts.engine.queue.run();
  }

  /** This process has changed how these keys stand: what was said about them does not hold any more. */
  changed(storeKeys: readonly string[]): void {
    const keys = new Set(storeKeys);
    const desks = [...this.#desks.values()].filter(({ plan }) => plan.storeKeys.some((key) => keys.has(key)));
    for (const desk of desks) {
      desk.forgive();
      this.#askNow(desk);
    }
    this.parts.engine.queue.run();
  }

  /** Lets a lane ask before it was told to. Run the queue afterwards. */
  #askNow(desk: Desk): void {
    const { queue } = this.parts.engine;
    const lane = queue.lanes.get(desk.name);
    if (lane === undefined || desk.isAsking) return;
    desk.askAtUs = Number.NEGATIVE_INFINITY;
    queue.touchLane(lane);
  }

  /** These keys are to be left alone: what is at hand for them goes back at once. */
  held(storeKeys: readonly string[]): void {
    for (const desk of this.#desks.values())
      for (const run of desk.takeHeld(storeKeys)) this.track(this.parts.settler.giveBack(run));
  }

  #heard(desk: Desk, taken: Taken, cost: LaneCost): void {
    const { reply } = taken;
    const nowUs = this.parts.engine.nowUs();
    if (reply.fleet > 0) this.parts.standby.learn(reply.fleet);
    if (reply.starts.length > 0)
      desk.pocket.push(runOf(this.parts, { key: desk.spec.key, plan: desk.plan, cost }, taken));
    const { stop } = reply;
    this.#awaiting.remove(desk);
    if (reply.stricterAt >= 0) this.#stricter.warn(desk.spec, reply.stricterAt);
    desk.isByStandby = taken.origin !== "store";
    if (stop === undefined || desk.isByStandby) {
      desk.leaveLine();
      if (stop !== undefined) this.#wait(desk, taken, nowUs);
      return;
    }
    desk.joinedUs = reply.starts.length > 0 || desk.joinedUs === 0 ? reply.nowUs : desk.joinedUs;
    desk.turnUs = stop.turnUs;
    this.#wait(desk, taken, nowUs);
  }

  #wait(desk: Desk, { reply, origin }: Taken, nowUs: number): void {
    const { stop, nowUs: saidUs } = reply;
    if (stop === undefined) return;
    const { link, standby } = this.parts;
    const storeKey = desk.plan.storeKeys[stop.key];
    const leadUs = origin === "store" ? this.questions.leadUs() : 0;
    const told = { stop, saidUs, leadUs, roundTripUs: link.roundTripUs, held: standby.heldAt(storeKey) };
    const mayBeOver = isEvent(stop, desk.plan);
    // What was given back while it asked may have come too late for the answer.
    const isOver = desk.isForgiven || (mayBeOver && desk.isFreed);
    desk.askAtUs = isOver ? nowUs : nowUs + askAgainAfterUs(desk.plan, told);
    desk.stop = stop;
    this.#awaiting.add(desk, storeKey, mayBeOver);
    desk.stopUntilUs = nowUs + Math.max(0, stop.readyUs - saidUs);
  }

  #close(desk: Desk): void {
    if (desk.isAsking) return;
    if (this.#desks.get(desk.name) === desk) this.#desks.delete(desk.name);
    this.#awaiting.remove(desk);
    for (const run of desk.pocket.splice(0)) this.track(this.parts.settler.giveBack(run));
    const { link } = this.parts;
    if (!desk.isInLine || link.isAway) return;
    const { ticket, plan } = desk;
    const left = link.send(plan.storeKeys, (by) => ({ kind: "leave", ...by, ticket }));
    this.track(
      left.then(() => {
        this.#chances.left(desk, desk.turnUs);
        this.parts.engine.queue.run();
      }),
    );
  }

  /** Remembers work under way, which `close` waits for. It reports its failures itself. */
  track(work: Promise<unknown>): void {
    const settled: Promise<void> = work.then(
      () => void this.#pending.delete(settled),
      () => void this.#pending.delete(settled),
    );
    this.#pending.add(settled);
  }
}
