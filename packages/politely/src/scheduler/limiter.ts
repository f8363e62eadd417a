import type { Slowdown } from "../core/key.js";
import { checkNames } from "../engine/options.js";
import { ClosedError } from "../errors.js";
import type { Cause, Explanation, LimiterEvent, Stats, UntimedEvent } from "../observe/types.js";
import type { CompiledPolicy, HttpRules, PolicyInput } from "../policy/types.js";
import type {
  AcquireOptions,
  Decision,
  Duration,
  Limiter,
  Outcome,
  Permit,
  PoliteRequestInit,
  RecordOptions,
  ResetWhat,
  Target,
} from "../types.js";
import { cancelWaiters } from "./cancelling.js";
import { ONE } from "./cost.js";
import type { Demand } from "./demand.js";
import { Engine, type EngineOptions } from "./engine.js";
import { CLOSED, causesOf, earliestUs, keyName } from "./forecast.js";
import { Quiet } from "./quiet.js";
import { reconfigure } from "./reconfigure.js";
import { resetTarget } from "./resetting.js";
import { allStats, eachStats, hostStats } from "./stats.js";

/** Up to this many hosts, one host's statistics are looked up only after a whole sweep, so that what is folded is exact. */
const SMALL_TABLE = 4096;
/** The shortest wait told to somebody who waits for an answer of which nobody knows when it comes. */
const ANSWER_WAIT_MS = 1;

const CLOSED_CAUSE: Cause = {
  limit: "closed",
  scope: "all",
  key: "*",
  waitMs: Number.POSITIVE_INFINITY,
  message: CLOSED,
};

/** What the verbs need beside the engine. */
export interface LimiterParts extends EngineOptions {
  readonly compile: (
    policy: PolicyInput,
    before: CompiledPolicy,
    known: ReadonlyMap<string, unknown>,
  ) => CompiledPolicy;
  readonly outcomeIn: (value: unknown) => Outcome | undefined;
  readonly readPause: (duration: Duration) => number;
  readonly summarise: (policy: CompiledPolicy) => string;
  /** What `fetch` does: the limiter is part of it, so it is made around it. */
  readonly fetch: Limiter["fetch"];
}

/** Whoever has to act at once when a limiter changes. */
export interface Follower {
  /** Another policy is in force. */
  configured(): void;
  /** Nothing is taken any more. */
  closed(): void;
  /** Undefined when nothing comes again by itself, at one key or at all; else resolves when something of that is over. */
  resting(key: string | undefined): Promise<void> | undefined;
  /** Lends the permit of a task to the first request that it makes at the same key. Undefined where none could take it. */
  readonly relay: { lend(target: Target, permit: Permit): Loan } | undefined;
}

/** A permit that a task holds while it runs, and one of its requests may go with. */
export interface Loan {
  run<Value>(task: () => Value): Value;
  /** The task is over. Whether a request has taken the permit, and has told what was answered. */
  end(): boolean;
}

/** The verbs of a limiter whose state is in this process. */
export class LocalLimiter implements Limiter {
  readonly #engine: Engine;
  readonly #quiet: Quiet;
  /** HTTP, which is made around the limiter. Undefined until it is. */
  follower: Follower | undefined = undefined;

  constructor(readonly parts: LimiterParts) {
    this.#engine = new Engine(parts);
    this.#quiet = new Quiet(this.#engine);
  }

  acquire(target: Target, options?: AcquireOptions): Promise<Permit> {
    return this.#engine.acquire(target, options);
  }

  tryAcquire(target: Target, options?: Pick<AcquireOptions, "cost">): Permit | undefined {
    return this.#engine.tryAcquire(target, options);
  }

  check(target: Target): Decision {
    const engine = this.#engine;
    const nowUs = engine.nowUs();
    const demand = engine.demand(target, nowUs);
    if (engine.isClosed) return { proceed: false, waitMs: CLOSED_CAUSE.waitMs, reason: CLOSED };
    if (engine.queue.canStart(demand, ONE, nowUs)) return { proceed: true, waitMs: 0 };
    const causes = causesOf(engine, demand, ONE, nowUs);
    return { proceed: false, waitMs: this.#waitMs(demand, nowUs), reason: causes[0]?.message ?? "others are ahead" };
  }

  record(target: Target, outcome: Outcome, options?: RecordOptions): void {
    this.#engine.settling.record(target, outcome, options);
  }

  async run<T>(target: Target, task: (permit: Permit) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T> {
    if (typeof task !== "function") throw new TypeError(`task must be a function; got ${String(task)}.`);
    const permit = await this.acquire(target, options);
    const loan = this.follower?.relay?.lend(target, permit);
    let outcome: Outcome | undefined;
    try {
      const value = await (loan === undefined ? task(permit) : loan.run(() => task(permit)));
      outcome = this.parts.outcomeIn(value) ?? "success";
      return value;
    } catch (error) {
      outcome = this.parts.outcomeIn(error);
      throw error;
    } finally {
      // With a store, releasing is a promise.
      const released: unknown = permit.release(loan?.end() === true ? undefined : outcome);
      if (released instanceof Promise) await released;
    }
  }

  wrap<This, Args extends unknown[], T>(
    target: Target | ((...args: Args) => Target),
    fn: (this: This, ...args: Args) => T | PromiseLike<T>,
  ): (this: This, ...args: Args) => Promise<T> {
    if (typeof fn !== "function") throw new TypeError(`wrap needs a function; got ${String(fn)}.`);
    const run = this.run.bind(this) as <V>(target: Target, task: () => V | PromiseLike<V>) => Promise<V>;
    const wrapped = async function (this: This, ...args: Args): Promise<T> {
      return run(typeof target === "function" ? target(...args) : target, () => fn.apply(this, args));
    };
    const { name, length } = fn;
    return Object.defineProperties(wrapped, { name: { value: name }, length: { value: length } });
  }

  /** Bound, so that it can be handed to whoever wants a `fetch`. */
  readonly fetch = (input: string | URL | Request, init?: PoliteRequestInit): Promise<Response> =>
    this.parts.fetch(input, init);

  /** The same as `acquire` without a promise where none is needed: grants at once, or promises to. Throws when it is refused. */
  enter(target: Target, options?: AcquireOptions): Permit | Promise<Permit> {
    return this.#engine.arrivals.enter(target, options);
  }

  /** How HTTP requests are made by the policy now in force. */
  http(): HttpRules {
    return this.#engine.policy.http;
  }

  contactWantedBy(key: string): string | undefined {
    return this.#engine.policy.contactWantedBy(key);
  }

  keyOf(target: Target): string {
    return this.#engine.policy.resolve(target).key;
  }

  /** Sets what robots.txt asks of a target's host. */
  slowByRobots(target: Target, slowdown: Slowdown | undefined): void {
    const engine = this.#engine;
    const [slot] = engine.demand(target, engine.nowUs()).slots;
    const known = engine.ledger.slowdowns.get(slot, "robots");
    // Asked with every request, and mostly the same.
    if (known?.gapUs === slowdown?.gapUs && known?.holdUntilUs === slowdown?.holdUntilUs) return;
    engine.ledger.slowdowns.set(slot, "robots", slowdown);
    engine.departures.judgeDeadlines(slot);
    engine.queue.touch(slot);
    engine.queue.run();
  }

  tell(event: UntimedEvent): void {
    this.#engine.emit(() => ({ ...event, atMs: this.#engine.nowUs() / 1000 }));
  }

  stats(target: Target): Stats | undefined;
  stats(): Stats[];
  stats(target?: Target): Stats | Stats[] | undefined {
    const engine = this.#engine;
    const nowUs = engine.nowUs();
    if (target === undefined) {
      const rows = allStats(engine, nowUs);
      engine.flush();
      return rows;
    }
    const { key } = engine.policy.resolve(target);
    const { hosts } = engine.keys;
    if (hosts.size > this.parts.keepStats && hosts.size <= SMALL_TABLE) engine.keys.sweepAll(nowUs);
    const slot = hosts.get(key);
    if (slot === undefined || this.parts.keepStats === 0) return undefined;
    const stats = hostStats(engine, key, slot, nowUs);
    engine.flush();
    return stats.asked === 0 ? undefined : stats;
  }

  eachStats(): IterableIterator<Stats> {
    return eachStats(this.#engine);
  }

  /** The statistics of a host, zeros when it was never seen. */
  statsNow(target: Target): Stats {
    const nowUs = this.#engine.nowUs();
    const { key, slots } = this.#engine.demand(target, nowUs);
    const stats = hostStats(this.#engine, key, slots[0], nowUs);
    this.#engine.flush();
    return stats;
  }

  explain(target: Target): Explanation {
    const engine = this.#engine;
    const nowUs = engine.nowUs();
    const demand = engine.demand(target, nowUs);
    const { key, host } = demand;
    const ahead = engine.queue.lanes.get(demand.name)?.size ?? 0;
    if (engine.isClosed) {
      const { waitMs } = CLOSED_CAUSE;
      return { key, proceed: false, waitMs, ahead, origin: host.origin, causes: [CLOSED_CAUSE] };
    }
    if (engine.queue.canStart(demand, ONE, nowUs)) {
      return { key, proceed: true, waitMs: 0, ahead, origin: host.origin, causes: [] };
    }
    const causes = causesOf(engine, demand, ONE, nowUs);
    return { key, proceed: false, waitMs: this.#waitMs(demand, nowUs), ahead, origin: host.origin, causes };
  }

  elapsedMs(target: Target): number {
    const engine = this.#engine;
    const slot = engine.keys.hosts.get(engine.policy.resolve(target).key);
    return slot === undefined ? Number.POSITIVE_INFINITY : (engine.nowUs() - engine.ledger.lastUs(slot)) / 1000;
  }

  isEnabled(target: Target): boolean {
    return this.#engine.policy.isEnabled(target);
  }

  /**
   * Holds what the target names: its intent and scopes if it has any, else its host; without a target everything.
   *
   * Hosts beyond `maxKeys` share a lane, so that a pause of one holds all of them; a `warn` event says so.
   */
  pause(target?: Target, duration?: Duration): void {
    const engine = this.#engine;
    const nowUs = engine.nowUs();
    checkPaused(target);
    const untilUs = duration === undefined ? Number.POSITIVE_INFINITY : nowUs + this.parts.readPause(duration);
    const demand = target === undefined ? undefined : engine.demand(target, nowUs);
    engine.events.tellFirst(
      () => pauseEvents(engine, demand, untilUs, nowUs),
      () => {
        if (demand === undefined) {
          engine.queue.pausedUntilUs = untilUs;
          engine.refresh();
        }
        const named = demand === undefined ? [] : namedParts(demand).map((index) => demand.slots[index]);
        for (const slot of named) {
          engine.ledger.setPause(slot, untilUs);
          engine.queue.touch(slot);
        }
        const judged = demand === undefined ? Array.from(engine.queue.lanes.values(), ({ slots }) => slots[0]) : named;
        for (const slot of judged) engine.departures.judgeDeadlines(slot);
      },
    );
    engine.queue.run();
  }

  resume(target?: Target): void {
    const engine = this.#engine;
    const nowUs = engine.nowUs();
    const demand = target === undefined ? undefined : engine.demand(target, nowUs);
    if (demand === undefined) {
      engine.queue.pausedUntilUs = Number.NEGATIVE_INFINITY;
      engine.refresh();
    }
    const parts = demand === undefined ? [] : namedParts(demand);
    for (const slot of demand === undefined ? [...engine.ledger.pauses.keys()] : parts.map((at) => demand.slots[at])) {
      engine.ledger.setPause(slot, undefined);
      engine.queue.touch(slot);
    }
    for (const key of namesOf(demand)) engine.events.emit({ type: "resume", key, atMs: nowUs / 1000 });
    engine.queue.run();
  }

  cancelWaiting(target?: Target, reason?: unknown): number {
    const why = reason ?? new DOMException("The wait was cancelled.", "AbortError");
    return cancelWaiters(this.#engine, target, () => why);
  }

  async idle(target?: Target): Promise<void> {
    const key = target === undefined ? undefined : this.#engine.policy.resolve(target).key;
    return this.#quiet.whenIdle(key, () => this.follower?.resting(key));
  }

  configure(policy: PolicyInput): void {
    if (typeof policy !== "object" || policy === null)
      throw new TypeError(`configure needs a policy; got ${String(policy)}.`);
    const engine = this.#engine;
    const compiled = this.parts.compile(policy, engine.policy, engine.keys.hosts);
    const nowUs = engine.nowUs();
    const told = { type: "configure", key: "*", atMs: nowUs / 1000, summary: this.parts.summarise(compiled) } as const;
    engine.events.tellFirst(
      () => [told],
      () => {
        reconfigure(engine, compiled, nowUs);
        this.follower?.configured();
      },
    );
    this.announce();
  }

  reset(target?: Target, what: ResetWhat = "pacing"): void {
    resetTarget(this.#engine, target, what);
    this.#engine.queue.run();
  }

  subscribe(listener: (event: LimiterEvent) => void): () => void {
    if (typeof listener !== "function") throw new TypeError(`listener must be a function; got ${String(listener)}.`);
    return this.#engine.events.subscribe(listener, () => this.#engine.refresh());
  }

  close(options?: { readonly drain?: boolean }): Promise<void> {
    if (options !== undefined) checkNames(options, ["drain"], "options");
    const engine = this.#engine;
    engine.isClosed = true;
    engine.refresh();
    if (options?.drain !== true) cancelWaiters(engine, undefined, (lane) => new ClosedError(lane.key));
    this.follower?.closed();
    this.#quiet.close();
    return this.#quiet.whenNobodyWaits();
  }

  /** Emits what a person should know about the policy. */
  announce(): void {
    const { events, policy } = this.#engine;
    const atMs = this.#engine.nowUs() / 1000;
    for (const { path, message, isForStore = false } of policy.warnings) {
      if (!isForStore || this.#engine.counsel === undefined) events.emit({ type: "warn", key: path, atMs, message });
    }
  }

  #waitMs(demand: Demand, nowUs: number): number {
    const waitUs = earliestUs(this.#engine, demand, ONE, nowUs) - nowUs;
    return waitUs > 0 ? waitUs / 1000 : ANSWER_WAIT_MS;
  }
}

/** Refuses a length of time where a host is meant. */
export function checkPaused(target: Target | undefined): void {
  if (typeof target !== "string" || !/^[\d.]+ ?(ms|s|m|min|h|d)$/.test(target)) return;
  throw new TypeError(
    `pause("${target}") names a host. To hold everything for a while, write pause(undefined, "${target}").`,
  );
}

/** What a pause is told by: what it holds, each by its name, and that a host beyond `maxKeys` cannot be held alone. */
function pauseEvents(
  engine: Engine,
  demand: Demand | undefined,
  untilUs: number,
  nowUs: number,
): readonly LimiterEvent[] {
  const atMs = nowUs / 1000;
  const events: LimiterEvent[] = namesOf(demand).map((key) => ({ type: "pause", key, atMs, untilMs: untilUs / 1000 }));
  if (demand === undefined || !namedParts(demand).includes(0)) return events;
  const { key } = demand.target;
  if (engine.keys.hosts.get(key) === demand.slots[0]) return events;
  const hosts = demand.host.rule.enabled ? "host" : "host without limits";
  const message = `the pause of ${key} holds every ${hosts} beyond the maxKeys of ${engine.options.maxKeys}, since these share a lane; raise maxKeys to pause it alone`;
  return [...events, { type: "warn", key, atMs, message }];
}

/** Where the rows that a target names are among its parts: its intent and scopes if it has any, else its host. */
function namedParts({ scopeNames, target }: Demand): number[] {
  const isNamed = (name: string): boolean => name === "intent" || target.scopes.includes(name);
  const named = scopeNames.flatMap((name, index) => (isNamed(name) ? [index] : []));
  return named.length > 0 ? named : [0];
}

function namesOf(demand: Demand | undefined): string[] {
  return demand === undefined ? ["*"] : namedParts(demand).map((index) => keyName(demand, index));
}
