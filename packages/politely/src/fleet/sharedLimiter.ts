import { checkNames } from "../core/checkNames.js";
import { ONE } from "../core/key.js";
import { keyName, type Need } from "../engine/arbiter.js";
import type { Engine } from "../engine/engine.js";
import { estimate, type LocalLimiter, namedParts } from "../engine/limiter.js";
import { checkPaused } from "../engine/options.js";
import { until } from "../engine/outlook.js";
import { statsJson, windowStats } from "../engine/stats.js";
import { toUs } from "../engine/systemClock.js";
import { CapacityError, StoreError } from "../errors.js";
import type { Cause, Explanation, FleetStats, Stats } from "../observe/types.js";
import type { SharedLimiter, SharedPermit, StatsOptions } from "../sharedTypes.js";
import type { KeyView, LookReply, RecordOperation, Told } from "../stores/operations.js";
import type { AcquireOptions, Decision, Duration, Outcome, RecordOptions, ResetWhat, Target } from "../types.js";
import type { FleetArbiter } from "./fleetArbiter.js";

/** Limits that only this process knows of: what the store says of others is true for all. */
const OWN: ReadonlySet<string> = new Set(["queue", "reserved"]);
/** Where only an answer can tell, look again after this. */
const LOOK_AGAIN_MS = 250;

/** Verbs of the limiter in front that answer as they should, and those that do once their answers are promises. */
const SAME = ["acquire", "run", "wrap", "fetch", "idle", "subscribe"] as const;
const AT_ONCE = ["isEnabled", "cancelWaiting", "configure"] as const;

/** What the verbs work with. */
export interface SharedParts {
  /** Queues, books and events of this process. */
  readonly front: LocalLimiter;
  readonly engine: Engine;
  readonly arbiter: FleetArbiter;
  readonly readPause: (duration: Duration) => number;
}

/** The verbs of a limiter whose limits are in a store. Waiting, order, books and events are those of the limiter in front. */
export class StoreLimiter implements SharedLimiter {
  /** Keys paused from here, to be resumed together. */
  readonly #paused = new Map<string, Need>();

  declare readonly acquire: SharedLimiter["acquire"];
  declare readonly run: SharedLimiter["run"];
  declare readonly wrap: SharedLimiter["wrap"];
  declare readonly fetch: SharedLimiter["fetch"];
  declare readonly idle: SharedLimiter["idle"];
  declare readonly subscribe: SharedLimiter["subscribe"];
  declare readonly isEnabled: SharedLimiter["isEnabled"];
  declare readonly cancelWaiting: SharedLimiter["cancelWaiting"];
  declare readonly configure: SharedLimiter["configure"];

  constructor(readonly parts: SharedParts) {
    const front = parts.front as unknown as Record<string, (...given: readonly unknown[]) => unknown>;
    for (const verb of SAME) Object.assign(this, { [verb]: front[verb].bind(front) });
    for (const verb of AT_ONCE)
      Object.assign(this, { [verb]: async (...given: readonly unknown[]) => front[verb](...given) });
  }

  async tryAcquire(target: Target, options?: Pick<AcquireOptions, "cost">): Promise<SharedPermit | undefined> {
    const { arbiter, engine, front } = this.parts;
    const { need, costs, nowUs } = front.request(target, options);
    const isBehind = !engine.queue.isFirst(need, costs, nowUs);
    const taken = isBehind ? undefined : await arbiter.takeOnce(need, costs);
    if (taken !== undefined && "release" in taken) return taken as unknown as SharedPermit;
    // The rows of before may have gone while the store was asked.
    const atUs = engine.nowUs();
    engine.queue.refused(engine.need(target, atUs), costs, "POLITELY_BUSY", atUs);
    return undefined;
  }

  async check(target: Target): Promise<Decision> {
    const explained = await this.explain(target).catch((error: unknown) => {
      if (error instanceof CapacityError) return undefined;
      throw error;
    });
    if (explained === undefined) return this.parts.front.check(target);
    const { proceed, waitMs, causes, isEstimate } = explained;
    if (proceed) return { proceed, waitMs: 0 };
    const whole = Math.ceil(waitMs) + (this.parts.engine.clock.earlyMs ?? 0);
    const reason = causes[0]?.message ?? "others are ahead";
    return estimate({ proceed, waitMs: whole, reason }, isEstimate === true);
  }

  async record(target: Target, outcome: Outcome, options?: RecordOptions): Promise<void> {
    const { arbiter, engine, front } = this.parts;
    front.record(target, outcome, options);
    const answer = engine.options.readOutcome(outcome, engine.keys.policy.resolve(target).key);
    const nowUs = engine.nowUs();
    const need = engine.need(target, nowUs);
    if (answer.kind === "unused" || arbiter.isFree(need)) return;
    const startedUs = options?.startedAtMs === undefined ? nowUs : Math.min(nowUs, toUs(options.startedAtMs));
    if (arbiter.link.failure !== undefined) {
      arbiter.outage.noteRecorded(need, startedUs);
      return;
    }
    const meant = answer.scope === undefined ? 0 : need.scopeNames.indexOf(answer.scope);
    const told = { agesUs: [nowUs - startedUs], counts: [1], answer, meant };
    await arbiter.recordAt(need, told).catch((error: unknown) => {
      if (!(error instanceof StoreError) || error.isLasting) throw error;
      arbiter.outage.noteRecorded(engine.need(target, engine.nowUs()), startedUs);
    });
  }

  stats(target: Target, options: { readonly fleet: true }): Promise<FleetStats | undefined>;
  stats(target: Target, options?: { readonly fleet?: false | undefined }): Promise<Stats | undefined>;
  stats(target: Target, options?: StatsOptions): Promise<Stats | FleetStats | undefined>;
  stats(): Promise<Stats[]>;
  async stats(target?: Target, options?: StatsOptions): Promise<Stats | FleetStats | Stats[] | undefined> {
    if (target === undefined) return this.parts.front.stats().map(withoutLimits);
    if (isFleet(options)) {
      const { keys } = await this.#lookAtStore(target);
      const [{ starts, throttled, waiting, inFlight, lastUs }] = keys;
      const isKnown = starts > 0 || throttled > 0 || inFlight > 0 || waiting > 0 || Number.isFinite(lastUs);
      return isKnown ? this.#fleetStats(target) : undefined;
    }
    const own = this.parts.front.stats(target);
    return own === undefined ? undefined : this.#withLimits(own, target);
  }

  *eachStats(): Generator<Stats, void, undefined> {
    for (const stats of this.parts.front.eachStats()) yield withoutLimits(stats);
  }

  /** The statistics of a host, zeros when it was never seen. */
  async statsNow(target: Target, options?: StatsOptions): Promise<Stats | FleetStats> {
    return isFleet(options) ? this.#fleetStats(target) : this.#withLimits(this.parts.front.statsNow(target), target);
  }

  async explain(target: Target): Promise<Explanation> {
    const { engine, front } = this.parts;
    const looked = await this.#look(target);
    if (looked === undefined) return front.explain(target);
    const need = engine.need(target, engine.nowUs());
    const ahead = engine.queue.lanes.get(need.name)?.size ?? 0;
    const told = looked.told.map((one) => this.#cause(need, one, looked.nowUs));
    const causes = [...told, ...front.causes(need).filter(({ limit, key }) => OWN.has(limit) || key === "*")];
    causes.sort((a, b) => b.waitMs - a.waitMs);
    const proceed = causes.length === 0;
    const isEstimate =
      !proceed && (looked.told.some(({ awaitedUntilUs }) => awaitedUntilUs !== undefined) || told.length === 0);
    const longestMs = Math.max(0, ...causes.map((cause) => cause.waitMs));
    const waitMs = proceed ? 0 : Math.max(longestMs, isEstimate ? LOOK_AGAIN_MS : 1);
    return estimate({ key: need.key, proceed, waitMs, ahead, origin: need.host.origin, causes }, isEstimate);
  }

  /** A limit that the store says is in the way, as people read it. A gap that this process keeps beyond its rule has its own words. */
  #cause(need: Need, { index, limit, atUs, words, because }: Told, nowUs: number): Cause {
    const key = keyName(need, index);
    const waitMs = Math.max(0, atUs - nowUs) / 1000;
    const own = limit === "robots" ? this.parts.arbiter.slowdownOf(need, index) : undefined;
    const said = own?.because ?? because;
    const message = `${key}: ${own?.words ?? words}${until(waitMs)}`;
    const cause = { limit: own?.limit ?? limit, scope: need.scopeNames[index], key, waitMs, message };
    return said === undefined ? cause : { ...cause, because: said };
  }

  async elapsedMs(target: Target): Promise<number> {
    const looked = await this.#look(target);
    if (looked === undefined) return this.parts.front.elapsedMs(target);
    return Math.max(0, looked.nowUs - looked.keys[0].lastUs) / 1000;
  }

  async pause(target?: Target, duration?: Duration): Promise<void> {
    const { arbiter, engine, front, readPause } = this.parts;
    checkPaused(target);
    const need = target === undefined ? undefined : this.#named(target);
    // What has no limits is not in the store, and nobody would ask there: this process holds it by itself.
    if (need === undefined || arbiter.isFree(need)) {
      front.pause(target, duration);
      return;
    }
    const pauseUs = duration === undefined ? Number.POSITIVE_INFINITY : readPause(duration);
    await arbiter.recordAt(need, { pauseUs });
    for (const name of need.rowNames) this.#paused.set(name, need);
    const atMs = engine.nowUs() / 1000;
    need.rowNames.forEach((_, index) => {
      front.tell({ type: "pause", key: keyName(need, index), untilMs: atMs + pauseUs / 1000 });
    });
  }

  async resume(target?: Target): Promise<void> {
    const { arbiter, front } = this.parts;
    front.resume(target);
    const needs = target === undefined ? new Set(this.#paused.values()) : [this.#named(target)];
    for (const need of needs) {
      if (!arbiter.isFree(need)) await arbiter.recordAt(need, { pauseUs: 0 });
      for (const name of need.rowNames) this.#paused.delete(name);
    }
  }

  async reset(target?: Target, what: ResetWhat = "pacing"): Promise<void> {
    const { arbiter, engine, front } = this.parts;
    front.reset(target, what);
    if (what === "stats") return;
    const nowUs = engine.nowUs();
    if (target === undefined) await arbiter.resetAll(what);
    else {
      const whole = engine.need(target, nowUs);
      // What is over everything is not the target's own.
      const own = whole.scopeNames.flatMap((name, index) => (name === "global" ? [] : [index]));
      const need = only(whole, own);
      if (!arbiter.isFree(need)) await arbiter.recordAt(need, { reset: what });
    }
    arbiter.askAnew();
  }

  async close(options?: { readonly drain?: boolean }): Promise<void> {
    await this.parts.front.close(options);
    await this.parts.arbiter.close();
  }

  /** How the keys of a target stand in the store; undefined where this process decides by itself, and once it is closed. */
  async #look(target: Target): Promise<LookReply | undefined> {
    const { arbiter, engine } = this.parts;
    const { link, fleet } = arbiter;
    if (engine.isClosed || arbiter.isFree(engine.need(target, engine.nowUs()))) return undefined;
    if (link.failure?.isLasting === true) throw link.failure;
    if (link.failure !== undefined && fleet.outage !== "closed") return undefined;
    try {
      return await this.#lookAtStore(target);
    } catch (error) {
      if (!(error instanceof StoreError) || error.isLasting || fleet.outage === "closed") throw error;
      return undefined;
    }
  }

  async #lookAtStore(target: Target): Promise<LookReply> {
    const { arbiter, engine } = this.parts;
    const need = engine.need(target, engine.nowUs());
    const keys = arbiter.asked(need, ONE);
    const { reply } = await arbiter.link.send(arbiter.names(need), { kind: "look", keys });
    return reply;
  }

  async #fleetStats(target: Target): Promise<FleetStats> {
    const { engine } = this.parts;
    const { keys, nowUs } = await this.#lookAtStore(target);
    const [view] = keys;
    const need = engine.need(target, engine.nowUs());
    const { concurrency, fromAnswer } = need.host.rule;
    const isFollowed = concurrency < Number.POSITIVE_INFINITY || fromAnswer || view.inFlight > 0;
    const numbers = {
      host: need.key,
      totalRequests: view.starts,
      throttledRequests: view.throttled,
      ...(Number.isFinite(view.lastUs)
        ? { lastRequestAt: new Date(engine.clock.wall() - Math.max(0, nowUs - view.lastUs) / 1000) }
        : {}),
      ...(isFollowed ? { inFlight: view.inFlight } : {}),
      waiting: view.waiting,
      ...limitsOf(need, view, nowUs),
    };
    const toJSON = (): Record<string, unknown> => statsJson(numbers);
    return Object.defineProperty(numbers, "toJSON", { value: toJSON }) as typeof numbers & { toJSON: typeof toJSON };
  }

  /** This process's statistics, with bucket, windows and cooldown as the store knows them. */
  async #withLimits(own: Stats, target: Target): Promise<Stats> {
    const { engine } = this.parts;
    const looked = await this.#look(target);
    if (looked === undefined) return own;
    const need = engine.need(target, engine.nowUs());
    return statsLike(own, { ...own, ...limitsOf(need, looked.keys[0], looked.nowUs) });
  }

  /** The part of a need that a target names: its intent and scopes if it has any, else its host. */
  #named(target: Target): Need {
    const { engine } = this.parts;
    const need = engine.need(target, engine.nowUs());
    return only(need, namedParts(need));
  }
}

/** Some of the keys of a need. */
function only(need: Need, indexes: readonly number[]): Need {
  const pick = <Value>(list: readonly Value[]): Value[] => indexes.map((index) => list[index]);
  return { ...need, slots: pick(need.slots), scopeNames: pick(need.scopeNames), rowNames: pick(need.rowNames) };
}

function limitsOf(
  { host: { rule } }: Need,
  view: KeyView,
  nowUs: number,
): Pick<FleetStats, "cooldownMs" | "windows" | "window" | "tokens"> {
  const windows = windowStats(rule, view.windows, nowUs);
  return {
    cooldownMs: Math.max(0, view.heldUntilUs - nowUs) / 1000,
    windows,
    ...(windows.length === 0 ? {} : { window: windows[0] }),
    ...(rule.rateCount === 0 ? {} : { tokens: view.tokens }),
  };
}

/** What this process counted at a host. How its limits stand only the store knows, which is not asked for all hosts. */
function withoutLimits(stats: Stats): Stats {
  const { tokens: _, window: __, ...own } = stats;
  return statsLike(stats, { ...own, cooldownMs: 0, windows: [] });
}

/** Statistics with these fields, that can do what others can. */
function statsLike(others: Stats, fields: object): Stats {
  return Object.assign(Object.create(Object.getPrototypeOf(others) as object) as Stats, fields);
}

function isFleet(options: StatsOptions | undefined): boolean {
  if (options !== undefined) checkNames(options, ["fleet"], "options");
  return options?.fleet === true;
}

/** What a `record` may say. */
export type Recorded = Partial<Pick<RecordOperation, "agesUs" | "counts" | "answer" | "meant" | "pauseUs" | "reset">>;
