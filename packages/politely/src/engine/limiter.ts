import { checkNames } from "../core/checkNames.js";
import { NOBODY, ONE, type Slowdown } from "../core/key.js";
import { lastUs } from "../core/limits/gap.js";
import { needHolds } from "../core/limits/holds.js";
import { inFlight } from "../core/limits/places.js";
import { CapacityError, ClosedError } from "../errors.js";
import type { Cause, Explanation, LimiterEvent, Stats, UntimedEvent } from "../observe/types.js";
import type { CompiledPolicy, PolicyInput } from "../policy/types.js";
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
import { HOST_ONLY, keyName, type Need } from "./arbiter.js";
import { Engine, type EngineOptions } from "./engine.js";
import type { Waiter } from "./lanes.js";
import { checkOptions, checkPaused, costOf } from "./options.js";
import { BEHIND_OTHERS_MS, type Outlook, outlookOf } from "./outlook.js";
import { NO_OPTIONS } from "./queue.js";
import { allStats, eachStats, hostStats } from "./stats.js";

/** What stands in the way of a request. */
type Judged = Pick<Outlook, "lookMs" | "isEstimate" | "causes" | "reason">;

const FREE: Judged = { lookMs: 0, isEstimate: false, causes: [], reason: "" };
const waitMs = Number.POSITIVE_INFINITY;
const message = "the limiter is closed";
const CLOSED: Judged = {
  lookMs: waitMs,
  isEstimate: false,
  causes: [{ limit: "closed", scope: "all", key: "*", waitMs, message }],
  reason: message,
};

/** What the verbs need beside the engine. */
export interface LimiterParts extends EngineOptions {
  /** Makes the policy ready that is to follow another one, which has met these hosts. Throws `PolicyError`. */
  readonly compile: (
    policy: PolicyInput,
    before: CompiledPolicy,
    known: ReadonlyMap<string, unknown>,
  ) => CompiledPolicy;
  /** The status that a task returned or threw; undefined: none. */
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
  /** HTTP, which is made around the limiter. Undefined until it is. */
  follower: Follower | undefined = undefined;

  /** The rows that were paused, some of which may be free or others by now. */
  readonly #paused = new Set<number>();

  constructor(readonly parts: LimiterParts) {
    this.#engine = new Engine(parts);
  }

  /** What is in force now, for requests by HTTP as well. */
  get policy(): CompiledPolicy {
    return this.#engine.keys.policy;
  }

  acquire(target: Target, options?: AcquireOptions): Promise<Permit> {
    const plain = options === undefined ? this.#engine.startPlain(target) : null;
    // Asked by a field of it, V8 knows what it is when it makes the promise. Else it would have to look for a `then` there, a quarter of the whole call.
    if (plain !== null && plain !== undefined && plain.mark >= 0) return Promise.resolve(plain);
    try {
      return Promise.resolve(this.enter(target, options));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** The same as `acquire` without a promise where none is needed: grants at once, or promises to. Throws when it is refused. */
  enter(target: Target, options: AcquireOptions = NO_OPTIONS): Permit | Promise<Permit> {
    const { need, costs, nowUs } = this.request(target, options);
    const { maxWait } = options;
    const maxWaitUs = maxWait === undefined ? this.#engine.keys.maxWaitUs(need) : this.parts.readMaxWait(maxWait);
    options.signal?.throwIfAborted();
    return this.#engine.queue.enter(need, costs, options, maxWaitUs, nowUs);
  }

  tryAcquire(target: Target, options?: Pick<AcquireOptions, "cost">): Permit | undefined {
    const plain = options === undefined ? this.#engine.startPlain(target) : null;
    if (plain !== null && plain !== undefined) return plain;
    const { books, keys, queue } = this.#engine;
    if (plain === undefined) {
      books.count(keys.rows.get(target as string), "refused");
      return undefined;
    }
    const { need, costs, nowUs } = this.request(target, options);
    const permit = queue.start(need, costs, nowUs);
    if (permit === undefined) queue.refused(need, costs, "POLITELY_BUSY", nowUs);
    return permit;
  }

  /** What a request needs and costs. A host for which there is no room is counted as refused in the row of all others. */
  request(target: Target, options: AcquireOptions = NO_OPTIONS) {
    const { isClosed, keys, queue } = this.#engine;
    if (isClosed) throw new ClosedError(this.keyOf(target));
    if (options !== NO_OPTIONS) checkOptions(options);
    const nowUs = this.#engine.nowUs();
    try {
      const need = this.#engine.need(target, nowUs);
      return { need, costs: costOf(need, options.cost, (slot) => keys.ruleOf(slot)), nowUs };
    } catch (error) {
      if (error instanceof CapacityError) {
        const { key, code, waitMs, message: reason } = error;
        queue.turnedAway(undefined, key, code, { waitMs, reason }, nowUs);
      }
      throw error;
    }
  }

  check(target: Target): Decision {
    try {
      const { lookMs, reason, isEstimate } = this.#judge(target);
      if (lookMs === 0) return { proceed: true, waitMs: 0 };
      const waitMs = Math.ceil(lookMs) + (this.parts.clock.earlyMs ?? 0);
      return estimate({ proceed: false, waitMs, reason }, isEstimate);
    } catch (error) {
      if (!(error instanceof CapacityError)) throw error;
      const waitMs = Number.isFinite(error.waitMs) ? Math.ceil(error.waitMs) : BEHIND_OTHERS_MS;
      return { proceed: false, waitMs, reason: error.message, isEstimate: true };
    }
  }

  explain(target: Target): Explanation {
    const { lookMs: waitMs, causes, need, isEstimate } = this.#judge(target);
    const { key, host, name } = need;
    const ahead = this.#engine.queue.lanes.get(name)?.size ?? 0;
    return estimate({ key, proceed: waitMs === 0, waitMs, ahead, origin: host.origin, causes }, isEstimate);
  }

  /** How long a request would wait now, and why; `lookMs` is 0 only if it would not. */
  #judge(target: Target): Judged & { readonly need: Need } {
    const { arbiter, isClosed, queue } = this.#engine;
    const nowUs = this.#engine.nowUs();
    const need = this.#engine.need(target, nowUs);
    if (isClosed) return { need, ...CLOSED };
    const isFree = queue.isFirst(need, ONE, nowUs) && arbiter.look(need, ONE, nowUs, NOBODY) === undefined;
    return { need, ...(isFree ? FREE : outlookOf(queue, need, ONE, nowUs, 0)) };
  }

  /** What this process knows of what stands in the way of those who need the same. */
  causes(need: Need): readonly Cause[] {
    return outlookOf(this.#engine.queue, need, ONE, this.#engine.nowUs(), 0).causes;
  }

  record(target: Target, outcome: Outcome, options?: RecordOptions): void {
    this.#engine.local.record(target, outcome, options);
  }

  async run<T>(target: Target, task: (permit: Permit) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T> {
    if (typeof task !== "function") throw new TypeError(`task must be a function; got ${String(task)}.`);
    const plain = options === undefined ? this.#engine.startPlain(target) : null;
    const granted = plain ?? this.enter(target, options);
    const permit = granted instanceof Promise ? await granted : granted;
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

  keyOf(target: Target): string {
    return this.policy.resolve(target).key;
  }

  isEnabled(target: Target): boolean {
    return this.policy.isEnabled(target);
  }

  /** Sets what robots.txt asks of a target's host. */
  slowByRobots(target: Target, slowdown: Slowdown | undefined): void {
    const { queue, slab } = this.#engine;
    const [slot] = this.#engine.need(target, this.#engine.nowUs()).slots;
    const known = slab.key(slot).rest?.holds?.robots;
    // Asked with every request, and mostly the same.
    if (known?.gapUs === slowdown?.gapUs && known?.holdUntilUs === slowdown?.holdUntilUs) return;
    needHolds(slab.key(slot)).robots = slowdown;
    queue.judgeDeadlines(slot);
    queue.touch(slot);
    queue.run();
  }

  tell(event: UntimedEvent): void {
    this.#engine.events.emit?.({ ...event, atMs: this.#engine.nowUs() / 1000 });
    this.#engine.events.flush();
  }

  stats(target: Target): Stats | undefined;
  stats(): Stats[];
  stats(target?: Target): Stats | Stats[] | undefined {
    const { books, events, keys } = this.#engine;
    const nowUs = this.#engine.nowUs();
    try {
      if (target === undefined) return allStats(this.#engine, nowUs);
      const key = this.keyOf(target);
      const slot = keys.rows.get(key);
      if (slot === undefined || this.parts.keepStats === 0) return undefined;
      const stats = hostStats(this.#engine, key, slot, nowUs);
      return books.isBlank(slot) && stats.waiting === 0 ? undefined : stats;
    } finally {
      events.flush();
    }
  }

  eachStats(): IterableIterator<Stats> {
    return eachStats(this.#engine);
  }

  /** The statistics of a host, zeros when it was never seen. */
  statsNow(target: Target): Stats {
    const nowUs = this.#engine.nowUs();
    const { key, slots } = this.#engine.need(target, nowUs);
    const stats = hostStats(this.#engine, key, slots[0], nowUs);
    this.#engine.events.flush();
    return stats;
  }

  elapsedMs(target: Target): number {
    const { keys, slab } = this.#engine;
    const nowUs = this.#engine.nowUs();
    const slot = keys.rowOf(this.keyOf(target), nowUs);
    return slot === undefined ? Number.POSITIVE_INFINITY : (nowUs - lastUs(slab.key(slot))) / 1000;
  }

  /** Holds what the target names: its intent and scopes if it has any, else its host; without a target everything. */
  pause(target?: Target, duration?: Duration): void {
    checkPaused(target);
    const untilUs =
      duration === undefined ? Number.POSITIVE_INFINITY : this.#engine.nowUs() + this.parts.readPause(duration);
    this.#hold(target, untilUs);
  }

  resume(target?: Target): void {
    this.#hold(target, undefined);
  }

  #hold(target: Target | undefined, untilUs: number | undefined): void {
    const { events, queue, slab } = this.#engine;
    const nowUs = this.#engine.nowUs();
    const tell = (key: string): void => {
      const at = { key, atMs: nowUs / 1000 };
      events.emit?.(
        untilUs === undefined ? { type: "resume", ...at } : { type: "pause", ...at, untilMs: untilUs / 1000 },
      );
    };
    let slots: number[] = [];
    if (target === undefined) {
      tell("*");
      queue.pausedUntilUs = untilUs ?? Number.NEGATIVE_INFINITY;
      this.#engine.refresh();
      if (untilUs === undefined) slots = [...this.#paused];
      queue.judgeDeadlines();
    } else {
      const need = this.#engine.need(target, nowUs);
      const named = namedParts(need);
      for (const index of named) tell(keyName(need, index));
      slots = named.map((index) => need.slots[index]);
    }
    for (const slot of slots) {
      if (untilUs !== undefined) this.#paused.add(slot);
      else if (!this.#paused.delete(slot) || slab.key(slot).rest?.holds?.pausedUntilUs === undefined) continue;
      needHolds(slab.key(slot)).pausedUntilUs = untilUs;
      queue.judgeDeadlines(slot);
      queue.touch(slot);
    }
    queue.run();
  }

  /** Of a target these are all who asked for its host; where it names an intent or scopes, those who named the same, whatever the policy makes of it. */
  cancelWaiting(target?: Target, reason?: unknown): number {
    const { keys, queue } = this.#engine;
    const why = reason ?? new DOMException("The wait was cancelled.", "AbortError");
    if (target === undefined) return queue.cancelAll(queue.lanes.values(), () => why);
    const { key, intent, scopes } = this.policy.resolve(target);
    const named = String([intent, [...scopes].sort()]);
    const isMeant = ({ target: asked }: Waiter): boolean =>
      (intent === undefined && scopes.length === 0) || String([asked.intent, [...asked.scopes].sort()]) === named;
    const gate = queue.gateAt(keys.rows.get(key) ?? -1);
    return queue.cancelAll(gate?.lanes ?? [], () => why, isMeant);
  }

  async idle(target?: Target): Promise<void> {
    const key = target === undefined ? undefined : this.keyOf(target);
    for (;;) {
      await this.#engine.whenQuiet(() => this.#isQuiet(key));
      const nextEnd = this.follower?.resting(key);
      if (nextEnd !== undefined) await nextEnd;
      // A redirect's next hop may have come since.
      else if (this.#isQuiet(key)) return;
    }
  }

  #isQuiet(key: string | undefined): boolean {
    const { books, keys, queue, slab } = this.#engine;
    if (key === undefined) return queue.waiting === 0 && books.flying === 0;
    const nowUs = this.#engine.nowUs();
    const slot = keys.rowOf(key, nowUs);
    if (slot === undefined) return true;
    this.#engine.local.lapse(slot, nowUs);
    return queue.waitingAt(slot) === 0 && inFlight(slab.key(slot), keys.ruleOf(slot), nowUs) === 0;
  }

  configure(policy: PolicyInput): void {
    if (typeof policy !== "object" || policy === null)
      throw new TypeError(`configure needs a policy; got ${String(policy)}.`);
    const { events, keys } = this.#engine;
    const compiled = this.parts.compile(policy, keys.policy, keys.rows);
    const { arbiter } = this.#engine;
    const nowUs = this.#engine.nowUs();
    const summary = this.parts.summarise(compiled);
    events.emit?.({ type: "configure", key: "*", atMs: nowUs / 1000, summary });
    this.#engine.begin(arbiter.partOf?.(compiled) ?? compiled, undefined);
    this.follower?.configured();
    this.announce();
  }

  reset(target?: Target, what: ResetWhat = "pacing"): void {
    if (what !== "pacing" && what !== "stats" && what !== "all") {
      throw new RangeError(`reset takes "pacing", "stats" or "all"; got ${String(what)}.`);
    }
    if (target === "pacing" || target === "stats" || target === "all") {
      throw new TypeError(`reset("${target}") names a host. To reset every host, write reset(undefined, "${target}").`);
    }
    const { books, keys, queue } = this.#engine;
    const nowUs = this.#engine.nowUs();
    // Without statistics per host all counts are in the folded ones, and permits in flight at any host stay there.
    const { keepStats } = this.parts;
    if (what !== "pacing" && (target === undefined || keepStats === 0))
      books.clearFolded(keepStats === 0 ? books.flying : 0);
    if (target === undefined) this.#engine.begin(keys.policy, what);
    else {
      const { slots, scopeNames } = this.#engine.need(target, nowUs);
      slots.forEach((slot, index) => {
        // What is over everything is not the target's own.
        if (scopeNames[index] === "global") return;
        keys.forgetRow(slot, keys.ruleOf(slot), what, nowUs, true);
        queue.touch(slot);
      });
    }
    queue.run();
  }

  subscribe(listener: (event: LimiterEvent) => void): () => void {
    if (typeof listener !== "function") throw new TypeError(`listener must be a function; got ${String(listener)}.`);
    return this.#engine.events.subscribe(listener, () => this.#engine.refresh());
  }

  close(options?: { readonly drain?: boolean }): Promise<void> {
    if (options !== undefined) checkNames(options, ["drain"], "options");
    const { queue } = this.#engine;
    this.#engine.isClosed = true;
    this.#engine.refresh();
    if (options?.drain !== true) {
      queue.cancelAll(queue.lanes.values(), ({ need }) => new ClosedError(need.key));
    }
    this.follower?.closed();
    return this.#engine.whenQuiet(() => queue.waiting === 0);
  }

  /** Emits what a person should know about the policy. */
  announce(): void {
    for (const { path, message } of this.policy.warnings) this.tell({ type: "warn", key: path, message });
  }
}

/** Says of what was found that it is an estimate, if it is. */
export function estimate<Found extends object>(found: Found, isEstimate: boolean): Found & { isEstimate?: true } {
  return isEstimate ? { ...found, isEstimate: true } : found;
}

/** Where the rows that a target names are among its keys: its intent and scopes if it has any, else its host. */
export function namedParts({ scopeNames, target }: Need): readonly number[] {
  if (scopeNames === HOST_ONLY) return [0];
  const isNamed = (name: string): boolean => name === "intent" || target.scopes.includes(name);
  const named = scopeNames.flatMap((name, index) => (isNamed(name) ? [index] : []));
  return named.length > 0 ? named : [0];
}
