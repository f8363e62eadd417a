import { WallCalendar } from "../core/calendar.js";
import type { LimiterEvent } from "../observe/types.js";
import type { CompiledPolicy } from "../policy/types.js";
import type { Clock, Target } from "../types.js";
import { Books } from "./books.js";
import { Events } from "./events.js";
import { toUs } from "./instant.js";
import { Keys } from "./keys.js";
import type { Waiter } from "./lane.js";
import { Learning } from "./learning.js";
import { LocalArbiter } from "./localArbiter.js";
import type { Need } from "./need.js";
import type { HeaderReader } from "./outcome.js";
import type { HeldPermit } from "./permit.js";
import { PlainStarts } from "./plainStarts.js";
import { Queue, type QueueOwner } from "./queue.js";
import { Signals } from "./signals.js";
import { IS_IDLE, Slab } from "./slab.js";
import { Waiting } from "./waiting.js";

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
  readonly readHeaders: HeaderReader;
  /** A host without limits was asked for: by which entry of the policy. */
  readonly onDisabled: (key: string, origin: string) => void;
}

/** How many unknown intents are warned about. */
const WARNED_MOST = 100;

/** The parts of a limiter of one process, and what they have in common: the clock, the events, what a target needs. */
export class Engine implements QueueOwner {
  readonly clock: Clock;
  readonly events = new Events();
  readonly slab: Slab;
  readonly books: Books;
  readonly keys: Keys;
  readonly arbiter = new LocalArbiter(this);
  readonly queue: Queue;
  readonly learning = new Learning(this);
  readonly waiting = new Waiting(this);
  readonly plain: PlainStarts;
  readonly signals = new Signals<Waiter>(
    (waiter, reason) => this.waiting.cancel(waiter, reason),
    () => this.queue.run(),
  );
  isClosed = false;
  /** Called whenever somebody stopped waiting or something stopped being in flight; undefined while nobody asks. */
  onQuiet: (() => void) | undefined = undefined;
  /** Called after permits were looked at because somebody waits for rest. */
  onAlarm: (() => void) | undefined = undefined;
  /** A known key given as a target may be decided by arithmetic alone. */
  isPlain = false;
  #hotNeed: Need | undefined = undefined;
  /** The beginning of all URLs with the same need, as they are written; empty when it came from a bare host. */
  #hotOrigin = "";
  #lastUs = Number.NEGATIVE_INFINITY;
  readonly #later: LimiterEvent[] = [];
  readonly #warned = new Set<string>();

  constructor(readonly options: EngineOptions) {
    const { clock, policy, maxKeys, keepStats } = options;
    this.clock = clock;
    this.slab = new Slab(keepStats > 0, new WallCalendar(() => clock.wall()));
    this.books = new Books(this.slab);
    this.keys = new Keys(this.slab, this.books, {
      policy,
      maxKeys,
      keepStats,
      onDrop: (key, wasFolded) => this.#dropped(key, wasFolded),
    });
    this.queue = new Queue(this, this.arbiter, this.slab, clock, options.ageingUs);
    this.plain = new PlainStarts(this);
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
    this.plain.forget();
    this.#hotNeed = undefined;
    this.isPlain =
      !this.isClosed &&
      this.keys.policy.hostIsKey &&
      this.keys.policy.global === undefined &&
      !this.events.hasListeners &&
      this.queue.pausedUntilUs === Number.NEGATIVE_INFINITY;
  }

  /** Takes a target apart and finds its rows. Nothing may be swept between this and taking from them. */
  need(target: Target, nowUs: number): Need {
    if (this.queue.pausedUntilUs <= nowUs && this.queue.pausedUntilUs !== Number.NEGATIVE_INFINITY) {
      this.queue.pausedUntilUs = Number.NEGATIVE_INFINITY;
      this.refresh();
    }
    const hot = this.#hotNeed;
    if (hot !== undefined && typeof target === "string" && !this.slab.hasFlag(hot.slots[0], IS_IDLE)) {
      if (hot.key === target || (this.#hotOrigin !== "" && target.startsWith(this.#hotOrigin))) return hot;
    }
    const { policy } = this.keys;
    let resolved = policy.resolve(target);
    // A key cut out of a URL would keep the whole URL alive for as long as the key is known.
    if (resolved.key !== target && !this.keys.hosts.has(resolved.key)) {
      resolved = { ...resolved, key: ` ${resolved.key}`.slice(1) };
    }
    const need = this.keys.need(resolved, nowUs);
    if (!need.host.rule.enabled) this.options.onDisabled(need.key, need.host.origin);
    else if (need.slots.length === 1 && typeof target === "string" && policy.hostIsKey) {
      this.#hotNeed = need;
      this.#hotOrigin = originOf(target);
    }
    const { intent } = resolved;
    if (intent !== undefined && !need.host.exempt && !need.host.intents.has(intent)) this.#warnOfIntent(need, intent);
    return need;
  }

  granted(waiter: Waiter, permit: HeldPermit): void {
    this.signals.unwatch(waiter);
    waiter.resolve(permit);
    this.onQuiet?.();
  }

  aborted(waiter: Waiter, reason: unknown): void {
    this.waiting.cancel(waiter, reason);
  }

  expired(waiter: Waiter, need: Need, nowUs: number): void {
    this.waiting.expire(waiter, need, nowUs);
  }

  holdEvents(): boolean {
    return this.events.hold();
  }

  tellEvents(): void {
    this.events.tellHeld();
  }

  alarm(nowUs: number): void {
    this.queue.alarmUs = Number.POSITIVE_INFINITY;
    for (const slot of [...this.keys.hosts.values(), ...this.keys.others.values()]) this.arbiter.lapse(slot, nowUs);
    this.onQuiet?.();
    this.onAlarm?.();
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

  #dropped(key: string, wasFolded: boolean): void {
    this.plain.forgetKey();
    if (this.#hotNeed?.key === key) this.#hotNeed = undefined;
    const atMs = this.#lastUs / 1000;
    if (wasFolded) this.emitLater(() => ({ type: "evict", key, atMs }));
  }

  #warnOfIntent({ host, key }: Need, intent: string): void {
    const name = `${host.origin}\n${intent}`;
    if (this.#warned.size >= WARNED_MOST || this.#warned.has(name)) return;
    this.#warned.add(name);
    const known = host.intents.size === 0 ? "no intents" : `only ${[...host.intents.keys()].join(", ")}`;
    const message = `a request names the intent "${intent}", for which ${host.origin} has no limits; it knows ${known}`;
    this.emitLater(() => ({ type: "warn", key, atMs: this.#lastUs / 1000, message }));
  }
}

/** A URL's text up to its path, which alone decides the host; empty when it has no path. */
function originOf(target: string): string {
  const authority = target.indexOf("://") + 3;
  const end = authority < 3 ? -1 : target.indexOf("/", authority);
  return end < 0 ? "" : target.slice(0, end + 1);
}
