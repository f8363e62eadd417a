import type { Answer } from "../core/answer.js";
import { toUs } from "../engine/systemClock.js";
import { ClosedError } from "../errors.js";
import type { LimiterEvent } from "../observe/types.js";
import type { CompiledPolicy } from "../policy/types.js";
import type { AcquireOptions, Clock, Outcome, Permit, Target } from "../types.js";
import { AdaptivePacing } from "./adaptivePacing.js";
import { Answers } from "./answers.js";
import { Arrivals, checkOptions } from "./arrivals.js";
import { Books } from "./books.js";
import { ONE } from "./cost.js";
import type { Counsel } from "./counsel.js";
import { costOf, type Demand, demandOf } from "./demand.js";
import { Departures } from "./departures.js";
import { Events } from "./events.js";
import { Keys } from "./keys.js";
import { costAt, type LaneCost, type LaneSpec, type Waiter } from "./lane.js";
import { Ledger, type Taken } from "./ledger.js";
import { EXEMPT_ONLY, HeldPermit } from "./permit.js";
import type { Profiles } from "./profile.js";
import { Queue } from "./queue.js";
import { Settling } from "./settling.js";
import { Signals } from "./signals.js";
import { HAS_GATE, IS_IDLE, type Slab } from "./slab.js";

/** What an engine is made of. */
export interface EngineOptions {
  readonly clock: Clock;
  readonly policy: CompiledPolicy;
  readonly maxKeys: number;
  readonly keepStats: number;
  readonly ageingUs: number;
  readonly random: () => number;
  /** Reads the `maxWait` of a request; throws when it makes no sense. */
  readonly readMaxWait: (value: unknown) => number;
  readonly readOutcome: (outcome: Outcome | undefined) => Answer;
  /** A host that is exempt from everything was asked for. */
  readonly onExempt: (key: string) => void;
  /** Makes the one who has the last word on starts, where that is a shared store. */
  readonly counsel?: ((engine: Engine) => Counsel) | undefined;
}

/** Decides, grants, queues and takes back: everything that changes state, for all keys of one limiter. */
export class Engine {
  readonly clock: Clock;
  readonly events = new Events();
  readonly ledger: Ledger;
  /** The ledger's own, one step nearer. */
  readonly slab: Slab;
  readonly profiles: Profiles;
  readonly books: Books;
  readonly keys: Keys;
  readonly queue: Queue;
  readonly answers: Answers;
  readonly adaptive: AdaptivePacing;
  readonly counsel: Counsel | undefined;
  readonly arrivals = new Arrivals(this);
  readonly settling = new Settling(this);
  readonly departures = new Departures(this);
  readonly signals = new Signals<Waiter>(
    (waiter, reason) => this.departures.cancel(waiter, reason),
    () => this.queue.run(),
  );
  policy: CompiledPolicy;
  isClosed = false;
  /** Called whenever somebody stopped waiting or something stopped being in flight; undefined while nobody asks. */
  onQuiet: (() => void) | undefined = undefined;
  /** Called after permits were looked at because somebody waits for rest. */
  onAlarm: (() => void) | undefined = undefined;
  #hotDemand: Demand | undefined = undefined;
  /** The beginning of all URLs with the same demand, as they are written; empty when it came from a bare host. */
  #hotOrigin = "";
  #lastUs = Number.NEGATIVE_INFINITY;
  readonly #later: LimiterEvent[] = [];

  constructor(readonly options: EngineOptions) {
    this.clock = options.clock;
    this.policy = options.policy;
    this.ledger = new Ledger(options.keepStats > 0, (slot, count) => this.books.count(slot, "lapsed", count));
    this.slab = this.ledger.slab;
    this.profiles = this.ledger.profiles;
    this.books = new Books(this.slab);
    this.keys = new Keys(this.ledger, this.books, {
      maxKeys: options.maxKeys,
      keepStats: options.keepStats,
      onDrop: (key, wasFolded) => this.#dropped(key, wasFolded),
    });
    this.queue = new Queue(this, this.ledger, this.clock, options.ageingUs);
    this.answers = new Answers(this.ledger, (slot) => this.departures.judgeDeadlines(slot));
    this.adaptive = new AdaptivePacing(this.ledger, (slot) => this.departures.judgeDeadlines(slot));
    this.counsel = options.counsel?.(this);
    this.refresh();
  }

  /** The current instant, read afresh. A clock that steps back stands still. */
  nowUs(): number {
    const nowUs = toUs(this.clock.now());
    if (nowUs > this.#lastUs) this.#lastUs = nowUs;
    return this.#lastUs;
  }

  /** Works out again which short cuts are open, after a change of policy, listeners or state of the whole. */
  refresh(): void {
    this.#hotDemand = undefined;
  }

  tryAcquire(target: Target, options?: Pick<AcquireOptions, "cost">): Permit | undefined {
    if (this.isClosed) throw new ClosedError(this.policy.resolve(target).key);
    checkOptions(options);
    const nowUs = this.nowUs();
    const demand = this.demand(target, nowUs);
    const cost = costOf(this.ledger, demand, options?.cost);
    if (this.queue.canStart(demand, cost, nowUs)) return this.grantNow(demand, cost, nowUs, nowUs);
    this.departures.refuse(demand, nowUs, "POLITELY_BUSY", cost);
    return undefined;
  }

  acquire(target: Target, options?: AcquireOptions): Promise<Permit> {
    try {
      const permit = this.arrivals.enter(target, options);
      return permit instanceof Promise ? permit : Promise.resolve(permit);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  grant(waiter: Waiter, spec: LaneSpec, nowUs: number): void {
    this.signals.unwatch(waiter);
    waiter.resolve(this.grantNow(spec, waiter.cost, waiter.askedUs, nowUs));
    this.onQuiet?.();
  }

  abort(waiter: Waiter, reason: unknown): void {
    this.departures.cancel(waiter, reason);
  }

  alarm(): void {
    this.queue.alarmUs = Number.POSITIVE_INFINITY;
    this.onQuiet?.();
    this.onAlarm?.();
  }

  expire(waiter: Waiter, spec: LaneSpec, nowUs: number): void {
    this.departures.expire(waiter, spec, nowUs);
  }

  /** Takes a target apart and finds its rows. Nothing may be swept between this and taking from them. */
  demand(target: Target, nowUs: number): Demand {
    if (this.queue.pausedUntilUs <= nowUs && this.queue.pausedUntilUs !== Number.NEGATIVE_INFINITY) {
      this.queue.pausedUntilUs = Number.NEGATIVE_INFINITY;
      this.refresh();
    }
    const hot = this.#hotDemand;
    if (hot !== undefined && typeof target === "string" && !this.slab.hasFlag(hot.slots[0], IS_IDLE)) {
      if (hot.key === target || (this.#hotOrigin !== "" && target.startsWith(this.#hotOrigin))) return hot;
    }
    const demand = demandOf(this.policy, this.keys, target, nowUs);
    if (demand.host.exempt) this.options.onExempt(demand.key);
    else if (demand.slots.length === 1 && typeof target === "string" && this.#isWholeKey(demand)) {
      this.#hotDemand = demand;
      this.#hotOrigin = originOf(target);
    }
    return demand;
  }

  /** Whether the host alone made the key: no grouping, and a row of its own. */
  #isWholeKey({ key, target, host, slots }: Demand): boolean {
    if (!this.policy.hostIsKey || key !== target.key) return false;
    return host.rule.enabled || this.keys.hosts.get(key) === slots[0];
  }

  /** Takes all limits in one step and makes the permit. */
  grantNow(spec: LaneSpec, cost: LaneCost, askedUs: number, nowUs: number): Permit {
    const { slots, key } = spec;
    const waitedUs = nowUs - askedUs;
    const permit = this.#take(spec, cost, nowUs, waitedUs);
    this.books.granted(slots[0], nowUs, waitedUs);
    for (const slot of slots) {
      if (this.slab.hasFlag(slot, HAS_GATE)) this.queue.started(slot);
    }
    const granted = this.counsel === undefined ? permit : this.counsel.started(spec, permit);
    if (this.events.hasListeners) {
      const start = this.counsel === undefined ? undefined : { startedAtMs: granted.startedAtMs };
      this.events.emit({ type: "grant", key, atMs: nowUs / 1000, waitedMs: waitedUs / 1000, ...start });
    }
    this.keys.granted(nowUs);
    return granted;
  }

  #take(spec: LaneSpec, cost: LaneCost, nowUs: number, waitedUs: number): HeldPermit {
    const { slots, key, scopeNames: partNames } = spec;
    const first = this.ledger.take(slots[0], costAt(cost, 0), nowUs);
    if (slots.length === 1 && cost === ONE) {
      const { slot, unitsAfter } = first;
      const detail = partNames === EXEMPT_ONLY ? { unitsAfter, parts: undefined, partNames } : unitsAfter;
      return new HeldPermit(this.settling, key, slot, nowUs, detail, sinceOf(first), waitedUs);
    }
    const parts: Taken[] = [first];
    for (let index = 1; index < slots.length; index++) {
      parts.push(this.ledger.take(slots[index], costAt(cost, index), nowUs));
    }
    const detail = { unitsAfter: 0, parts, partNames };
    return new HeldPermit(this.settling, key, slots[0], nowUs, detail, sinceOf(first), waitedUs);
  }

  #dropped(key: string, wasFolded: boolean): void {
    if (this.#hotDemand?.key === key) this.#hotDemand = undefined;
    const atMs = this.#lastUs / 1000;
    if (wasFolded) this.emitLater(() => ({ type: "evict", key, atMs }));
  }

  /** Emits once the decision under way is complete, since a listener may change anything. */
  emitLater(make: () => LimiterEvent): void {
    if (!this.events.hasListeners) return;
    this.#later.push(make());
    if (this.#later.length === 1) queueMicrotask(() => this.flush());
  }

  /** Emits what was put off. */
  flush(): void {
    while (this.#later.length > 0) for (const event of this.#later.splice(0)) this.events.emit(event);
  }

  /** Emits if anybody listens. */
  emit(make: () => LimiterEvent): void {
    if (this.events.hasListeners) this.events.emit(make());
  }
}

/** A URL's text up to its path, which alone decides the host; empty when it has no path. */
function originOf(target: string): string {
  const authority = target.indexOf("://") + 3;
  const end = authority < 3 ? -1 : target.indexOf("/", authority);
  return end < 0 ? "" : target.slice(0, end + 1);
}

/** As a permit keeps it. */
function sinceOf({ startedUs, previousUs }: Taken): number | undefined {
  return previousUs === Number.NEGATIVE_INFINITY ? undefined : startedUs - previousUs;
}
