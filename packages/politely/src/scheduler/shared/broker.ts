import type { TakeReply } from "../../core/shared/operation.js";
import { placeName } from "../../core/shared/take.js";
import { StoreError } from "../../errors.js";
import type { LimitKind } from "../../observe/types.js";
import type { Permit } from "../../types.js";
import type { Answer } from "../answers.js";
import type { Counsel, Outlook } from "../counsel.js";
import type { Engine } from "../engine.js";
import { costAt, type Lane, type LaneCost, type LaneSpec } from "../lane.js";
import { type Cost, ONE } from "../ledger.js";
import type { HeldPermit } from "../permit.js";
import { AskedKeys, type TakeTerms, takeOperation } from "./askFor.js";
import { Desk, type Grant } from "./desk.js";
import type { Link } from "./link.js";
import { type Plan, planOf, storeName } from "./plan.js";
import type { Settler } from "./settler.js";
import { SharedPermit } from "./sharedPermit.js";
import type { Standby } from "./standby.js";

/** Plans that are kept, at most. */
const PLANS_MOST = 10_000;
/** Starts are granted ahead by at least and at most this. */
const HORIZON_LEAST_US = 2_000;
const HORIZON_MOST_US = 60_000;
const BATCH_HORIZON_US = 10_000;
/** However far away its turn is, a lane asks again after this, in case everybody before it is gone. */
const TURN_MOST_US = 120_000_000;
/** The shortest time between two questions of a lane. */
const ASK_LEAST_US = 200;
/** How often a process says that it is there, when it asks anyway. */
const MEMBER_EVERY_US = 30_000_000;
/** How often the calendar is asked for again when the store says that it is another day. */
const STALE_MOST = 3;

/** How a broker works. */
export interface BrokerOptions {
  readonly outage: "share" | "closed" | "open";
  readonly isBatch: boolean;
  readonly process: string;
  /** Before the names of all keys in the store. */
  readonly name: string;
}

/** What a broker works with. */
export interface BrokerParts {
  readonly engine: Engine;
  readonly link: Link;
  readonly standby: Standby;
  readonly settler: Settler;
  readonly options: BrokerOptions;
}

/** A take, answered, and by whom. */
interface Taken {
  readonly reply: TakeReply;
  readonly origin: Grant["origin"];
  readonly asker: { readonly asker: string; readonly sequence: number };
}

/**
 * Speaks with the store for the lanes of this process: one question at a time for each lane, for its head and those right behind.
 *
 * What it is granted it keeps at hand until the queue uses it; what is not used goes back.
 */
export class Broker implements Counsel {
  readonly #desks = new Map<string, Desk>();
  readonly #plans = new Map<string, Plan>();
  readonly #keys = new AskedKeys();
  readonly #warned = new Set<string>();
  #tickets = 0;
  /** A start that is about to be used beside the queue. */
  #aside: Grant | undefined = undefined;
  #memberUs = Number.NEGATIVE_INFINITY;
  /** Asks under way and starts at hand: what a process has to wait for before it ends well. */
  #pending = new Set<Promise<unknown>>();

  constructor(readonly parts: BrokerParts) {}

  readyAt(lane: Lane, cost: LaneCost, nowUs: number): number {
    const desk = this.#deskOf(lane);
    desk.plan = this.planOf(lane);
    if (desk.plan.isFree) return nowUs;
    this.#dropMisfits(desk, cost);
    if (desk.pocket.length > 0) return desk.pocket[0].readyUs;
    if (desk.isAsking) return Number.POSITIVE_INFINITY;
    if (desk.askAtUs > nowUs) return desk.askAtUs;
    this.#track(this.#ask(desk, lane, cost));
    return Number.POSITIVE_INFINITY;
  }

  hasStart(spec: LaneSpec, cost: LaneCost, nowUs: number): boolean {
    if (this.planOf(spec).isFree) return true;
    const first = this.#desks.get(spec.name)?.pocket[0];
    return first !== undefined && first.readyUs <= nowUs && isSameCost(first.cost, cost);
  }

  started(spec: LaneSpec, permit: HeldPermit): Permit {
    const grant = this.#aside ?? this.#desks.get(spec.name)?.pocket.shift();
    this.#aside = undefined;
    return new SharedPermit(this.parts.settler, permit, grant);
  }

  /** Grants a start that was asked for beside the queue. */
  grantAside(spec: LaneSpec, cost: LaneCost, grant: Grant): Permit {
    const { engine } = this.parts;
    const nowUs = engine.nowUs();
    this.#aside = grant;
    return engine.grantNow(spec, cost, nowUs, nowUs);
  }

  /** Counts a start made without asking, and tells its answer. */
  async record(spec: LaneSpec, answer: Answer, ageUs: number): Promise<void> {
    const plan = this.planOf(spec);
    const keys = await this.keysOf(spec, ONE);
    const { link, settler } = this.parts;
    const reply = await link.sendOrKeep(plan.storeKeys, (by) => ({ kind: "record", ...by, keys, agesUs: [ageUs] }));
    if (reply !== undefined) await settler.tellRecorded(plan, spec.key, answer, reply.nowUs - ageUs);
  }

  /** The store's names of all keys that this process knows. */
  knownKeys(): string[] {
    const { hosts, scopes } = this.parts.engine.keys;
    const { name } = this.parts.options;
    const others = [...scopes.keys()].map((scope) => scope.split("\n").join(" "));
    return [...Array.from(hosts.keys(), (key) => `host ${key}`), ...others].map((key) => storeName(name, key));
  }

  emptied(lane: Lane): void {
    const desk = this.#desks.get(lane.name);
    if (desk === undefined) return;
    // The last one may just be leaving with the start at hand.
    queueMicrotask(() => {
      if (!this.parts.engine.queue.lanes.has(lane.name)) this.#close(desk);
    });
  }

  outlook(spec: LaneSpec, nowUs: number): Outlook | undefined {
    const desk = this.#desks.get(spec.name);
    const { stop, stopUntilUs } = desk ?? {};
    if (stop === undefined || stopUntilUs === undefined || stopUntilUs <= nowUs) return undefined;
    return { limit: stop.kind as LimitKind, index: stop.key, atUs: stopUntilUs, because: stop.because };
  }

  /** The policy has changed: what was worked out from the old one is forgotten. */
  configured(): void {
    this.#plans.clear();
  }

  /** Nothing more is asked. Resolves once everything is given back. */
  async close(): Promise<void> {
    for (const desk of Array.from(this.#desks.values())) if (!desk.isAsking) this.#close(desk);
    while (this.#pending.size > 0) await Promise.all(this.#pending);
    this.parts.link.close();
    this.parts.settler.parts.renewals.close();
  }

  /** Asks for one start now, without waiting for it; undefined when there is none. Rejects as the outage policy says. */
  async takeNow(spec: LaneSpec, cost: LaneCost): Promise<Grant | undefined> {
    const plan = this.planOf(spec);
    const terms = { count: 1, horizonUs: 0, ticket: "", turnUs: 0, joinedUs: 0, hasMore: false, member: "" };
    const taken = await this.#take(plan, spec, cost, terms);
    return this.#grants(spec.key, plan, cost, taken)[0];
  }

  /** The plan of a lane. */
  planOf(spec: LaneSpec): Plan {
    let plan = this.#plans.get(spec.name);
    if (plan === undefined) {
      if (this.#plans.size >= PLANS_MOST) this.#plans.clear();
      plan = planOf(this.parts.engine.policy, spec, this.parts.options);
      this.#plans.set(spec.name, plan);
    }
    return plan;
  }

  /** The keys of a lane, in the form that stores take. */
  async keysOf(spec: LaneSpec, cost: LaneCost): Promise<ReturnType<AskedKeys["of"]>> {
    const plan = this.planOf(spec);
    const { engine, link } = this.parts;
    if (plan.hasQuota) await link.meet();
    const storeUs = engine.nowUs() + (link.offsetUs ?? 0);
    const { timeline } = link.parts.store;
    const isEpoch = timeline === "epoch" && link.offsetUs !== undefined;
    const wallMs = isEpoch ? storeUs / 1000 : engine.clock.wall();
    const slowUs = spec.slots.map((slot) => this.#slowUs(slot));
    return this.#keys.of(plan, cost, { wallMs, storeUs, timeline, slowUs });
  }

  #slowUs(slot: number): number {
    const { slowdowns } = this.parts.engine.ledger;
    const robots = slowdowns.get(slot, "robots")?.gapUs ?? 0;
    return Math.max(robots, slowdowns.get(slot, "adaptive")?.gapUs ?? 0);
  }

  #deskOf(lane: LaneSpec): Desk {
    let desk = this.#desks.get(lane.name);
    if (desk === undefined) {
      this.#tickets += 1;
      desk = new Desk(lane.name, lane.key, `${this.parts.options.process}/${this.#tickets}`, this.planOf(lane));
      this.#desks.set(lane.name, desk);
    }
    return desk;
  }

  /** Gives back starts whose cost is not what the head needs. */
  #dropMisfits(desk: Desk, cost: LaneCost): void {
    while (desk.pocket.length > 0 && !isSameCost(desk.pocket[0].cost, cost)) {
      const grant = desk.pocket.shift();
      if (grant !== undefined) this.#track(this.parts.settler.giveBack(grant));
    }
  }

  async #ask(desk: Desk, lane: Lane, cost: LaneCost): Promise<void> {
    const { engine } = this.parts;
    desk.isAsking = true;
    const { plan } = desk;
    const count = cost === ONE ? Math.min(lane.size, plan.most) : 1;
    const terms: TakeTerms = {
      count,
      horizonUs: this.#horizonUs(),
      ticket: desk.ticket,
      turnUs: desk.turnUs,
      joinedUs: desk.joinedUs,
      hasMore: lane.size > count,
      member: this.#memberName(),
    };
    try {
      const taken = await this.#take(plan, lane, cost, terms);
      desk.isAsking = false;
      this.#heard(desk, taken, cost);
    } catch (error) {
      desk.isAsking = false;
      desk.leaveLine();
      this.#refuseAll(desk, error);
    }
    const still = engine.queue.lanes.get(desk.name);
    if (still === undefined) this.#close(desk);
    else {
      if (still.gate !== undefined) engine.queue.touch(still.gate.slot);
      if (desk.stop !== undefined) for (const slot of still.slots) engine.departures.judgeDeadlines(slot);
      engine.queue.run();
    }
  }

  #horizonUs(): number {
    if (this.parts.options.isBatch) return BATCH_HORIZON_US;
    return Math.ceil(Math.max(HORIZON_LEAST_US, Math.min(HORIZON_MOST_US, 1_000 + 3 * this.parts.link.roundTripUs)));
  }

  /** How long before its turn a lane asks: so that the question is there in time. */
  #leadUs(): number {
    return Math.min(this.#horizonUs() - 500, this.parts.link.roundTripUs + 500);
  }

  #memberName(): string {
    const nowUs = this.parts.engine.nowUs();
    if (nowUs - this.#memberUs < MEMBER_EVERY_US) return "";
    this.#memberUs = nowUs;
    return this.parts.options.process;
  }

  async #take(plan: Plan, spec: LaneSpec, cost: LaneCost, terms: TakeTerms): Promise<Taken> {
    const { link, standby, options } = this.parts;
    for (let stale = 0; ; ) {
      let sender = { asker: "", sequence: 0 };
      try {
        const keys = await this.keysOf(spec, cost);
        const reply = await link.send(plan.storeKeys, (by) => {
          sender = by;
          return takeOperation(plan, keys, terms, by);
        });
        if (!reply.isStalePeriod) return { reply, origin: "store", asker: sender };
        stale += 1;
        this.#keys.forgetPeriods();
        if (stale > STALE_MOST) throw wrongCalendar(spec.key);
      } catch (error) {
        const isAway = error instanceof StoreError && !error.isLasting;
        if (!isAway || options.outage === "closed") throw error;
        // Names of places must differ from those in the store.
        const by = { asker: `${options.process}:away`, sequence: ++this.#tickets };
        const keys = this.#keys.of(plan, cost, this.#ownContext(spec));
        const operation = takeOperation(plan, keys, terms, by);
        if (options.outage === "open") return { reply: standby.open(plan, operation), origin: "open", asker: by };
        return { reply: await standby.share(plan, operation), origin: "share", asker: by };
      }
    }
  }

  #ownContext(spec: LaneSpec): Parameters<AskedKeys["of"]>[2] {
    const { engine } = this.parts;
    const slowUs = spec.slots.map((slot) => this.#slowUs(slot));
    return { wallMs: engine.clock.wall(), storeUs: engine.nowUs(), timeline: "machine", slowUs };
  }

  /** The starts of a reply, with the instants of this process at which they may be used: never before the store's. */
  #grants(key: string, plan: Plan, cost: LaneCost, { reply, origin, asker }: Taken): Grant[] {
    const nowUs = this.parts.engine.nowUs();
    const isFollowed = plan.isFollowed || reply.stricterAt >= 0;
    return reply.starts.map((start, index) => ({
      plan,
      key,
      cost,
      start,
      place: placeName(asker, index),
      readyUs: nowUs + Math.max(0, start.startedUs - reply.nowUs),
      isFollowed,
      isCooling: reply.isCooling,
      origin,
    }));
  }

  #heard(desk: Desk, taken: Taken, cost: LaneCost): void {
    const { reply } = taken;
    const nowUs = this.parts.engine.nowUs();
    if (reply.fleet > 0) this.parts.standby.fleet = reply.fleet;
    desk.pocket.push(...this.#grants(desk.key, desk.plan, cost, taken));
    const { stop } = reply;
    if (reply.stricterAt >= 0) this.#warnStricter(desk.plan.storeKeys[reply.stricterAt]);
    if (stop === undefined || taken.origin !== "store") {
      desk.leaveLine();
      if (stop !== undefined) this.#wait(desk, taken, nowUs);
      return;
    }
    desk.joinedUs = reply.starts.length > 0 || desk.joinedUs === 0 ? reply.nowUs : desk.joinedUs;
    desk.turnUs = stop.turnUs;
    this.#wait(desk, taken, nowUs);
  }

  #wait(desk: Desk, { reply, origin }: Taken, nowUs: number): void {
    const { stop } = reply;
    if (stop === undefined) return;
    const waitUs = Math.min(TURN_MOST_US, stop.turnUs - reply.nowUs);
    const leadUs = origin === "store" ? this.#leadUs() : 0;
    desk.askAtUs = nowUs + Math.max(ASK_LEAST_US, waitUs - leadUs);
    desk.stop = stop;
    desk.stopUntilUs = nowUs + Math.max(0, stop.readyUs - reply.nowUs);
  }

  /** Everybody in the lane is told that the store cannot be asked, and that nothing was granted. */
  #refuseAll(desk: Desk, error: unknown): void {
    const lane = this.parts.engine.queue.lanes.get(desk.name);
    const code = error instanceof StoreError ? error.code : "POLITELY_STORE";
    const reason = error instanceof Error ? error.message : String(error);
    for (const waiter of lane?.everybody() ?? []) {
      this.parts.engine.departures.refuseWaiter(waiter, error, code, 0, reason);
    }
  }

  #close(desk: Desk): void {
    if (desk.isAsking) return;
    if (this.#desks.get(desk.name) === desk) this.#desks.delete(desk.name);
    for (const grant of desk.pocket.splice(0)) this.#track(this.parts.settler.giveBack(grant));
    const { link } = this.parts;
    if (!desk.isInLine || link.isAway) return;
    const { ticket, plan } = desk;
    this.#track(link.send(plan.storeKeys, (by) => ({ kind: "leave", ...by, ticket })));
  }

  #warnStricter(storeKey: string): void {
    if (this.#warned.has(storeKey) || this.#warned.size >= PLANS_MOST) return;
    this.#warned.add(storeKey);
    const message =
      "another process has other limits for this key; the stricter apply until it has been gone for one permitTtl. Give all processes the same policy";
    const { engine } = this.parts;
    engine.emit(() => ({ type: "warn", key: storeKey, atMs: engine.nowUs() / 1000, message }));
  }

  /** Remembers work under way. It reports its failures itself. */
  #track(work: Promise<unknown>): void {
    const settled: Promise<void> = work.then(
      () => void this.#pending.delete(settled),
      () => void this.#pending.delete(settled),
    );
    this.#pending.add(settled);
  }
}

function isSameCost(one: LaneCost, other: LaneCost): boolean {
  if (one === other) return true;
  const count = Math.max(Array.isArray(one) ? one.length : 1, Array.isArray(other) ? other.length : 1);
  for (let index = 0; index < count; index++) {
    if (!isEqual(costAt(one, index), costAt(other, index))) return false;
  }
  return true;
}

function isEqual(one: Cost, other: Cost): boolean {
  return one.rate === other.rate && one.window === other.window && one.quota === other.quota;
}

function wrongCalendar(key: string): StoreError {
  return new StoreError(`The store's calendar period for "${key}" keeps changing. Look at the clock of its server.`);
}
