import type { Slowdown } from "../core/key.js";
import { ONE } from "../core/key.js";
import { CapacityError, ClosedError } from "../errors.js";
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
import { Engine, type EngineOptions } from "./engine.js";
import { checkNames } from "./knownNames.js";
import type { Waiter } from "./lane.js";
import { HOST_ONLY, isEnabledBy, keyName, type Need } from "./need.js";
import { CLOSED, type Outlook, outlookOf } from "./outlook.js";
import { Quiet } from "./quiet.js";
import { resetTarget } from "./resetting.js";
import { sameCounting } from "./sameCounting.js";
import { allStats, eachStats, hostStats } from "./stats.js";
import { answerOfError, answerOfValue } from "./taskAnswer.js";

/** Up to this many hosts, one host's statistics are looked up only after a whole sweep, so that what is folded is exact. */
const SMALL_TABLE = 4096;
/** When to look again where only those ahead stand in the way. */
const BEHIND_OTHERS_MS = 100;

const CLOSED_CAUSE: Cause = {
  limit: "closed",
  scope: "all",
  key: "*",
  waitMs: Number.POSITIVE_INFINITY,
  message: CLOSED,
};

/** What the verbs need beside the engine. */
export interface LimiterParts extends EngineOptions {
  readonly compile: (policy: PolicyInput) => CompiledPolicy;
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
  lend(target: Target, permit: Permit): Loan | undefined;
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
    const plain = options === undefined ? this.#engine.plain.start(target, true) : null;
    // Asked by a field of it, V8 knows what it is when it makes the promise. Else it would have to look for a `then` there, a quarter of the whole call.
    if (plain !== null && plain !== undefined && plain.mark >= 0) return Promise.resolve(plain);
    try {
      const permit = this.#engine.waiting.enter(target, options);
      return permit instanceof Promise ? permit : Promise.resolve(permit);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  tryAcquire(target: Target, options?: Pick<AcquireOptions, "cost">): Permit | undefined {
    const plain = options === undefined ? this.#engine.plain.start(target, false) : null;
    return plain === null ? this.#engine.waiting.tryNow(target, options) : plain;
  }

  check(target: Target): Decision {
    try {
      return this.#decide(target);
    } catch (error) {
      if (!(error instanceof CapacityError)) throw error;
      const decision = { proceed: false, waitMs: Math.ceil(error.waitMs), reason: error.message };
      return error.waitMs < Number.POSITIVE_INFINITY
        ? decision
        : { ...decision, waitMs: BEHIND_OTHERS_MS, isEstimate: true };
    }
  }

  #decide(target: Target): Decision {
    const { waitMs, outlook, isEstimate } = this.#judge(target);
    if (waitMs === 0) return { proceed: true, waitMs: 0 };
    const whole = Math.ceil(waitMs) + (this.parts.clock.earlyMs ?? 0);
    const decision = { proceed: false, waitMs: whole, reason: outlook?.reason ?? CLOSED };
    return isEstimate ? { ...decision, isEstimate } : decision;
  }

  explain(target: Target): Explanation {
    const { waitMs, outlook, need, isEstimate } = this.#judge(target);
    const { key, host, name } = need;
    const ahead = this.#engine.queue.lanes.get(name)?.size ?? 0;
    const causes = outlook?.causes ?? (waitMs === 0 ? [] : [CLOSED_CAUSE]);
    const explanation = { key, proceed: waitMs === 0, waitMs, ahead, origin: host.origin, causes };
    return isEstimate ? { ...explanation, isEstimate } : explanation;
  }

  /** How long a request would wait now: 0 only if it would not. */
  #judge(target: Target): { need: Need; waitMs: number; outlook?: Outlook; isEstimate?: true } {
    const engine = this.#engine;
    const nowUs = engine.nowUs();
    const need = engine.need(target, nowUs);
    if (engine.isClosed) return { need, waitMs: CLOSED_CAUSE.waitMs };
    if (engine.queue.isFirst(need, ONE, nowUs) && engine.arbiter.stopOf(need, ONE, nowUs) === undefined) {
      return { need, waitMs: 0 };
    }
    const outlook = outlookOf(engine, need, ONE, 0, nowUs);
    if (outlook.lookUs > nowUs) {
      const waitMs = (outlook.lookUs - nowUs) / 1000;
      return outlook.isEstimate ? { need, waitMs, outlook, isEstimate: true } : { need, waitMs, outlook };
    }
    return { need, waitMs: BEHIND_OTHERS_MS, outlook, isEstimate: true };
  }

  record(target: Target, outcome: Outcome, options?: RecordOptions): void {
    this.#engine.arbiter.record(target, outcome, options);
  }

  async run<T>(target: Target, task: (permit: Permit) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T> {
    if (typeof task !== "function") throw new TypeError(`task must be a function; got ${String(task)}.`);
    const plain = options === undefined ? this.#engine.plain.start(target, true) : null;
    const granted = plain ?? this.enter(target, options);
    const permit = granted instanceof Promise ? await granted : granted;
    const loan = this.follower?.lend(target, permit);
    let outcome: Outcome | undefined;
    try {
      const value = await (loan === undefined ? task(permit) : loan.run(() => task(permit)));
      outcome = answerOfValue(value);
      return value;
    } catch (error) {
      outcome = answerOfError(error);
      throw error;
    } finally {
      permit.release(loan?.end() === true ? undefined : outcome);
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
    return this.#engine.waiting.enter(target, options);
  }

  /** How HTTP requests are made by the policy now in force. */
  http(): HttpRules {
    return this.#engine.keys.policy.http;
  }

  contactWantedBy(key: string): string | undefined {
    return this.#engine.keys.policy.contactWantedBy(key);
  }

  keyOf(target: Target): string {
    return this.#engine.keys.policy.resolve(target).key;
  }

  isEnabled(target: Target): boolean {
    return isEnabledBy(this.#engine.keys.policy, target);
  }

  /** Sets what robots.txt asks of a target's host. */
  slowByRobots(target: Target, slowdown: Slowdown | undefined): void {
    const engine = this.#engine;
    const [slot] = engine.need(target, engine.nowUs()).slots;
    const known = engine.slab.key(slot).rest?.robots;
    // Asked with every request, and mostly the same.
    if (known?.gapUs === slowdown?.gapUs && known?.holdUntilUs === slowdown?.holdUntilUs) return;
    engine.slab.key(slot).needRest().robots = slowdown;
    engine.waiting.judgeDeadlines(slot);
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
    const { keys } = engine;
    const { key } = keys.policy.resolve(target);
    if (keys.hosts.size > this.parts.keepStats && keys.hosts.size <= SMALL_TABLE) keys.sweepAll(nowUs);
    const slot = keys.hosts.get(key);
    if (slot === undefined || this.parts.keepStats === 0) return undefined;
    const stats = hostStats(engine, key, slot, nowUs);
    engine.flush();
    return stats.asked === 0 && engine.slab.rests.get(slot)?.wasReset !== true ? undefined : stats;
  }

  eachStats(): IterableIterator<Stats> {
    return eachStats(this.#engine);
  }

  /** The statistics of a host, zeros when it was never seen. */
  statsNow(target: Target): Stats {
    const engine = this.#engine;
    const nowUs = engine.nowUs();
    const { key, slots } = engine.need(target, nowUs);
    const stats = hostStats(engine, key, slots[0], nowUs);
    engine.flush();
    return stats;
  }

  elapsedMs(target: Target): number {
    const { keys, slab, nowUs } = this.#withRow(target);
    if (keys === undefined) return Number.POSITIVE_INFINITY;
    return (nowUs - slab.words[slab.at]) / 1000;
  }

  #withRow(target: Target): { keys: Engine["keys"] | undefined; slab: Engine["slab"]; nowUs: number } {
    const { keys, slab } = this.#engine;
    const nowUs = this.#engine.nowUs();
    const slot = keys.rowOf(keys.policy.resolve(target).key, true, nowUs);
    if (slot !== undefined) slab.key(slot);
    return { keys: slot === undefined ? undefined : keys, slab, nowUs };
  }

  /** Holds what the target names: its intent and scopes if it has any, else its host; without a target everything. */
  pause(target?: Target, duration?: Duration): void {
    const engine = this.#engine;
    const nowUs = engine.nowUs();
    checkPaused(target);
    const untilUs = duration === undefined ? Number.POSITIVE_INFINITY : nowUs + this.parts.readPause(duration);
    const need = target === undefined ? undefined : engine.need(target, nowUs);
    engine.events.tellFirst(
      () => namesOf(need).map((key) => ({ type: "pause", key, atMs: nowUs / 1000, untilMs: untilUs / 1000 })),
      () => {
        if (need === undefined) {
          engine.queue.pausedUntilUs = untilUs;
          engine.refresh();
        }
        const named = need === undefined ? [] : namedParts(need).map((index) => need.slots[index]);
        for (const slot of named) {
          engine.slab.key(slot).needRest().pausedUntilUs = untilUs;
          engine.queue.touch(slot);
        }
        const judged =
          need === undefined ? Array.from(engine.queue.lanes.values(), (lane) => lane.need.slots[0]) : named;
        for (const slot of judged) engine.waiting.judgeDeadlines(slot);
      },
    );
    engine.queue.run();
  }

  resume(target?: Target): void {
    const engine = this.#engine;
    const nowUs = engine.nowUs();
    const need = target === undefined ? undefined : engine.need(target, nowUs);
    if (need === undefined) {
      engine.queue.pausedUntilUs = Number.NEGATIVE_INFINITY;
      engine.refresh();
    }
    const slots = need === undefined ? engine.slab.rests.keys() : namedParts(need).map((index) => need.slots[index]);
    for (const slot of slots) {
      const { rest } = engine.slab.key(slot);
      if (rest === undefined || rest.pausedUntilUs === Number.NEGATIVE_INFINITY) continue;
      rest.pausedUntilUs = Number.NEGATIVE_INFINITY;
      engine.queue.touch(slot);
    }
    for (const key of namesOf(need)) engine.events.emit({ type: "resume", key, atMs: nowUs / 1000 });
    engine.queue.run();
  }

  /** Of a target these are all who asked for its host; where it names an intent or scopes, those who named the same, whatever the policy makes of it. */
  cancelWaiting(target?: Target, reason?: unknown): number {
    const engine = this.#engine;
    const why = reason ?? new DOMException("The wait was cancelled.", "AbortError");
    if (target === undefined) {
      return engine.waiting.cancelAll(
        [...engine.queue.lanes.values()],
        () => true,
        () => why,
      );
    }
    const { key, intent, scopes } = engine.keys.policy.resolve(target);
    const isMeant = (waiter: Waiter): boolean => {
      if (intent === undefined && scopes.length === 0) return true;
      const named = waiter.target;
      // No list names a scope twice.
      const isSame = named.scopes.length === scopes.length && scopes.every((scope) => named.scopes.includes(scope));
      return named.intent === intent && isSame;
    };
    const slot = engine.keys.hosts.get(key);
    const lanes = slot === undefined ? [] : (engine.queue.gateAt(slot)?.lanes ?? []);
    return engine.waiting.cancelAll(lanes, isMeant, () => why);
  }

  async idle(target?: Target): Promise<void> {
    const key = target === undefined ? undefined : this.keyOf(target);
    return this.#quiet.whenIdle(key, () => this.follower?.resting(key));
  }

  configure(policy: PolicyInput): void {
    if (typeof policy !== "object" || policy === null)
      throw new TypeError(`configure needs a policy; got ${String(policy)}.`);
    const compiled = this.parts.compile(policy);
    const engine = this.#engine;
    sameCounting(engine.keys.policy, compiled, engine.keys.hosts);
    const nowUs = engine.nowUs();
    const told = { type: "configure", key: "*", atMs: nowUs / 1000, summary: this.parts.summarise(compiled) } as const;
    engine.events.tellFirst(
      () => [told],
      () => {
        engine.keys.configure(compiled, nowUs);
        engine.refresh();
        engine.waiting.requeue(nowUs);
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
    if (options?.drain !== true) {
      const lanes = [...engine.queue.lanes.values()];
      engine.waiting.cancelAll(
        lanes,
        () => true,
        ({ need }) => new ClosedError(need.key),
      );
    }
    this.follower?.closed();
    this.#quiet.close();
    return this.#quiet.whenNobodyWaits();
  }

  /** Emits what a person should know about the policy. */
  announce(): void {
    const { events, keys } = this.#engine;
    const atMs = this.#engine.nowUs() / 1000;
    for (const { path, message } of keys.policy.warnings) events.emit({ type: "warn", key: path, atMs, message });
  }
}

/** Refuses a length of time where a host is meant. */
export function checkPaused(target: Target | undefined): void {
  if (typeof target !== "string" || !/^[\d.]+ ?(ms|s|m|min|h|d)$/.test(target)) return;
  throw new TypeError(
    `pause("${target}") names a host. To hold everything for a while, write pause(undefined, "${target}").`,
  );
}

/** Where the rows that a target names are among its keys: its intent and scopes if it has any, else its host. */
function namedParts({ scopeNames, target }: Need): readonly number[] {
  if (scopeNames === HOST_ONLY) return [0];
  const isNamed = (name: string): boolean => name === "intent" || target.scopes.includes(name);
  const named = scopeNames.flatMap((name, index) => (isNamed(name) ? [index] : []));
  return named.length > 0 ? named : [0];
}

function namesOf(need: Need | undefined): string[] {
  return need === undefined ? ["*"] : namedParts(need).map((index) => keyName(need, index));
}
