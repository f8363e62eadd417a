import { checkNames } from "../../engine/options.js";
import { toUs } from "../../engine/systemClock.js";
import { ClosedError, StoreError } from "../../errors.js";
import type { Cause, Explanation, FleetStats, LimiterEvent, Stats } from "../../observe/types.js";
import type { PolicyInput } from "../../policy/types.js";
import type { SetOperation } from "../../shared/operation.js";
import type { SharedPermit as PublicPermit, SharedLimiter, StatsOptions } from "../../sharedTypes.js";
import type {
  AcquireOptions,
  Decision,
  Duration,
  Outcome,
  Permit,
  PoliteRequestInit,
  RecordOptions,
  ResetWhat,
  Target,
} from "../../types.js";
import { checkOptions } from "../arrivals.js";
import { ONE } from "../cost.js";
import { costOf } from "../demand.js";
import type { Engine } from "../engine.js";
import { checkPaused, type LocalLimiter } from "../limiter.js";
import type { Broker } from "./broker.js";
import { leaveFleet } from "./leaveFleet.js";
import { recordedOutcome } from "./settler.js";
import { causesSeen, fleetStats, fleetStatsNow, mergeCauses, type Seen, statsSeen } from "./views.js";

/** Keys that are set at once. */
const SET_TOGETHER = 64;

/** What the verbs work with. */
export interface SharedParts {
  /** Queues, books and events of this process. */
  readonly front: LocalLimiter;
  readonly engine: Engine;
  readonly broker: Broker;
  readonly readPause: (duration: Duration) => number;
}

/** The verbs of a limiter whose limits are in a store. Waiting, order, books and events are those of the limiter in front. */
export class StoreLimiter implements SharedLimiter {
  /** Keys paused from here, to be resumed together, and until when on this process's clock. */
  readonly #paused = new Map<string, number>();

  constructor(readonly parts: SharedParts) {}

  acquire(target: Target, options?: AcquireOptions): Promise<PublicPermit> {
    return this.parts.front.acquire(target, options) as Promise<PublicPermit>;
  }

  async tryAcquire(target: Target, options?: Pick<AcquireOptions, "cost">): Promise<PublicPermit | undefined> {
    const { engine, broker } = this.parts;
    if (engine.isClosed) throw new ClosedError(engine.policy.resolve(target).key);
    checkOptions(options);
    const nowUs = engine.nowUs();
    const demand = engine.demand(target, nowUs);
    const cost = costOf(engine.ledger, demand, options?.cost);
    if (engine.queue.canStart(demand, cost, nowUs)) return engine.grantNow(demand, cost, nowUs, nowUs) as PublicPermit;
    return broker.aside.tryStart(target, demand, cost) as Promise<PublicPermit | undefined>;
  }

  async check(target: Target): Promise<Decision> {
    const { proceed, waitMs, causes } = await this.explain(target);
    return proceed ? { proceed, waitMs: 0 } : { proceed, waitMs, reason: causes[0]?.message ?? "others are ahead" };
  }

  async record(target: Target, outcome: Outcome, options?: RecordOptions): Promise<void> {
    const { engine, front, broker } = this.parts;
    const answer = broker.parts.settler.read(outcome);
    const nowUs = engine.nowUs();
    // In the books of this process: it checks the input, too.
    front.record(target, outcome === undefined ? outcome : recordedOutcome(answer), options);
    const demand = engine.demand(target, nowUs);
    if (answer.kind === "unused" || broker.questions.planOf(demand).isFree) return;
    const startedUs = options?.startedAtMs === undefined ? nowUs : Math.min(nowUs, toUs(options.startedAtMs));
    const work = broker.record(demand, answer, nowUs - startedUs);
    broker.track(work);
    await work;
  }

  run<T>(target: Target, task: (permit: PublicPermit) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T> {
    return this.parts.front.run(target, task as (permit: Permit) => T | PromiseLike<T>, options);
  }

  wrap<This, Args extends unknown[], T>(
    target: Target | ((...args: Args) => Target),
    fn: (this: This, ...args: Args) => T | PromiseLike<T>,
  ): (this: This, ...args: Args) => Promise<T> {
    return this.parts.front.wrap(target, fn);
  }

  /** Bound, so that it can be handed to whoever wants a `fetch`. */
  readonly fetch = (input: string | URL | Request, init?: PoliteRequestInit): Promise<Response> =>
    this.parts.front.fetch(input, init);

  stats(target: Target, options: { readonly fleet: true }): Promise<FleetStats | undefined>;
  stats(target: Target, options?: { readonly fleet?: false | undefined }): Promise<Stats | undefined>;
  stats(target: Target, options?: StatsOptions): Promise<Stats | FleetStats | undefined>;
  stats(): Promise<Stats[]>;
  async stats(target?: Target, options?: StatsOptions): Promise<Stats | FleetStats | Stats[] | undefined> {
    const { front, engine } = this.parts;
    if (target === undefined) return front.stats();
    if (isFleet(options)) return fleetStats(engine, await this.#lookAtStore(target));
    const own = front.stats(target);
    return own === undefined ? undefined : this.#seen(own, target);
  }

  eachStats(): IterableIterator<Stats> {
    return this.parts.front.eachStats();
  }

  /** The statistics of a host, zeros when it was never seen. */
  async statsNow(target: Target, options?: StatsOptions): Promise<Stats | FleetStats> {
    const { front, engine } = this.parts;
    if (isFleet(options)) return fleetStatsNow(engine, await this.#lookAtStore(target));
    return this.#seen(front.statsNow(target), target);
  }

  async explain(target: Target): Promise<Explanation> {
    const { engine, front } = this.parts;
    const here = front.explain(target);
    const looked = await this.#look(target);
    if (looked === undefined && !this.#isOpen) return here;
    // What the queue of this process knows by itself: pauses, those who wait. The rest the store knows better.
    const own = looked === undefined ? here.causes : here.causes.filter(isOwn);
    const causes = mergeCauses(own, looked === undefined ? [] : causesSeen(engine, looked));
    const waitMs = Math.max(0, ...causes.map((cause) => cause.waitMs));
    const proceed = causes.length === 0;
    return { ...here, proceed, waitMs: proceed ? 0 : Math.max(waitMs, 1), causes };
  }

  async elapsedMs(target: Target): Promise<number> {
    const looked = await this.#look(target);
    if (looked === undefined || looked.awayFrom !== undefined) return this.parts.front.elapsedMs(target);
    const { lastUs } = looked.keys[0];
    return lastUs < 0 ? Number.POSITIVE_INFINITY : Math.max(0, looked.nowUs - lastUs) / 1000;
  }

  async isEnabled(target: Target): Promise<boolean> {
    return this.parts.front.isEnabled(target);
  }

  async pause(target?: Target, duration?: Duration): Promise<void> {
    const { front, engine } = this.parts;
    checkPaused(target);
    const keys = target === undefined ? [] : this.#named(target);
    // What has no limits is not in the store, and nobody would ask there: this process holds it by itself.
    if (target === undefined || keys.length === 0) {
      front.pause(target, duration);
      return;
    }
    const pauseUs = duration === undefined ? Number.POSITIVE_INFINITY : this.parts.readPause(duration);
    const nowUs = engine.nowUs();
    const { key } = engine.demand(target, nowUs);
    await this.#set(keys, { pauseUs: Math.min(pauseUs, Number.MAX_SAFE_INTEGER), reset: "nothing" });
    this.#forgetPauses(nowUs);
    for (const storeKey of keys) this.#paused.set(storeKey, nowUs + pauseUs);
    engine.emit(() => ({ type: "pause", key, atMs: nowUs / 1000, untilMs: (nowUs + pauseUs) / 1000 }));
  }

  async resume(target?: Target): Promise<void> {
    this.parts.front.resume(target);
    this.#forgetPauses(this.parts.engine.nowUs());
    const keys = target === undefined ? [...this.#paused.keys()] : this.#named(target);
    await this.#set(keys, { pauseUs: 0, reset: "nothing" });
    const { recollection } = this.parts.broker.parts.standby;
    for (const key of keys) {
      this.#paused.delete(key);
      recollection.resumed(key);
    }
  }

  #forgetPauses(nowUs: number): void {
    for (const [key, untilUs] of this.#paused) if (untilUs <= nowUs) this.#paused.delete(key);
  }

  async cancelWaiting(target?: Target, reason?: unknown): Promise<number> {
    return this.parts.front.cancelWaiting(target, reason);
  }

  idle(target?: Target): Promise<void> {
    return this.parts.front.idle(target);
  }

  async configure(policy: PolicyInput): Promise<void> {
    this.parts.front.configure(policy);
  }

  async reset(target?: Target, what: ResetWhat = "pacing"): Promise<void> {
    const { front, broker } = this.parts;
    front.reset(target, what);
    if (what === "stats") return;
    const keys = target === undefined ? broker.knownKeys() : this.#own(target);
    await this.#set(keys, { pauseUs: -1, reset: what });
    if (what === "all") for (const key of keys) broker.parts.standby.recollection.forget(key);
  }

  subscribe(listener: (event: LimiterEvent) => void): () => void {
    return this.parts.front.subscribe(listener);
  }

  async close(options?: { readonly drain?: boolean }): Promise<void> {
    await this.parts.front.close(options);
    await this.parts.broker.close();
    await leaveFleet(this.parts.broker.questions);
  }

  async #seen(own: Stats, target: Target): Promise<Stats> {
    const looked = await this.#look(target);
    return looked === undefined ? own : statsSeen(own, looked);
  }

  /** The store is away, and everything passes. */
  get #isOpen(): boolean {
    const { link, options } = this.parts.broker.parts;
    return link.isAway && options.outage === "open" && !this.parts.engine.isClosed;
  }

  /** How the keys of a target stand in the store, or in what stands in for it while it is away; undefined where neither has a say. */
  async #look(target: Target): Promise<Seen | undefined> {
    const { engine, broker } = this.parts;
    const demand = engine.demand(target, engine.nowUs());
    const plan = broker.questions.planOf(demand);
    // What is closed asks nothing: its client may be closed, too.
    if (plan.isFree || engine.isClosed) return undefined;
    try {
      return await this.#lookAtStore(target);
    } catch (error) {
      const isAway = error instanceof StoreError && !error.isLasting;
      const { options, standby, link } = broker.parts;
      if (!isAway || options.outage === "closed") throw error;
      if (options.outage === "open") return undefined;
      const looked = await standby.look(plan, broker.questions.ownKeys(demand, ONE));
      return { demand, plan, ...looked, awayFrom: link.parts.store.name };
    }
  }

  async #lookAtStore(target: Target): Promise<Seen> {
    const { engine, broker } = this.parts;
    const demand = engine.demand(target, engine.nowUs());
    const plan = broker.questions.planOf(demand);
    const keys = await broker.questions.keysOf(demand, ONE);
    const reply = await broker.parts.link.send(plan.storeKeys, () => ({ kind: "look", keys }));
    const rules = keys.map(({ rule }) => rule);
    return { demand, plan, keys: reply.keys, rules, nowUs: reply.nowUs, awayFrom: undefined };
  }

  async #set(keys: readonly string[], what: Pick<SetOperation, "pauseUs" | "reset">): Promise<void> {
    const { link } = this.parts.broker.parts;
    for (let from = 0; from < keys.length; from += SET_TOGETHER) {
      const some = keys.slice(from, from + SET_TOGETHER);
      await Promise.all(some.map((key) => link.send([key], (by) => ({ kind: "set", ...by, ...what }))));
    }
    this.parts.broker.changed(keys);
  }

  /** The store's names of what a target names: its intent and scopes if it has any, else its host. */
  #named(target: Target): readonly string[] {
    const own = this.#own(target);
    return own.length > 1 ? own.slice(1) : own;
  }

  /** The store's names of what belongs to a target alone: all but what is over everything. */
  #own(target: Target): readonly string[] {
    const { engine, broker } = this.parts;
    const { storeKeys, scopeNames, isFree } = broker.questions.planOf(engine.demand(target, engine.nowUs()));
    return isFree ? [] : storeKeys.filter((_, index) => scopeNames[index] !== "global");
  }
}

function isFleet(options: StatsOptions | undefined): boolean {
  if (options !== undefined) checkNames(options, ["fleet"], "options");
  return options?.fleet === true;
}

/** Whether a cause is one that the store does not know. */
function isOwn({ limit, scope }: Cause): boolean {
  if (limit === "pause") return scope === "all";
  return limit === "queue" || limit === "reserved" || limit === "robots" || limit === "adaptive";
}
