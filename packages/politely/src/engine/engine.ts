import type { Answer } from "../core/answer.js";
import { WallCalendar } from "../core/calendar.js";
import type { LimiterEvent } from "../observe/types.js";
import type { CompiledPolicy } from "../policy/types.js";
import type { Clock, Outcome, Target } from "../types.js";
import type { Arbiter, Need } from "./arbiter.js";
import { Books } from "./books.js";
import { type Forget, Keys } from "./keys.js";
import { LocalArbiter } from "./localArbiter.js";
import type { HeldPermit } from "./permit.js";
import { Queue } from "./queue.js";
import { IS_IDLE, Slab } from "./slab.js";
import { toUs } from "./systemClock.js";

/** How many unknown intents are warned about. */
const WARNED_MOST = 100;

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
  /** Understands the outcome of a request to a key; throws `TypeError` when it is none. */
  readonly readOutcome: (outcome: Outcome | undefined, key: string) => Answer;
  /** A host without limits was asked for: by which entry of the policy. */
  readonly onDisabled: (key: string, origin: string) => void;
  /** Makes who says who may start. Absent: the rows of this process do. */
  readonly makeArbiter?: (engine: Engine) => Arbiter;
}

/** The parts of a limiter of one process, and what they have in common: the clock, the events, what a target needs. */
export class Engine {
  readonly clock: Clock;
  readonly events = new Events();
  readonly slab: Slab;
  readonly books: Books;
  readonly keys: Keys;
  /** Decides over the rows of this process. */
  readonly local: LocalArbiter;
  /** Whom the queue asks: the local one, or that of a fleet. */
  readonly arbiter: Arbiter;
  readonly queue: Queue;
  isClosed = false;
  /** The short way is open. */
  isPlain = false;
  /** The last host that took the short way. */
  #hotKey = "";
  #hotSlot = -1;
  /** The last need of a single key, and the target it was of. */
  #hotNeed: Need | undefined = undefined;
  #hotTarget = "";
  #lastUs = Number.NEGATIVE_INFINITY;
  /** Those who wait for quiet, here or there; each says whether it still does. */
  #watchers: (() => boolean)[] = [];
  readonly #warned = new Set<string>();

  constructor(readonly options: EngineOptions) {
    const { clock, keepStats, ageingUs } = options;
    this.clock = clock;
    this.slab = new Slab(keepStats > 0, new WallCalendar(() => clock.wall()));
    this.books = new Books(this.slab);
    this.keys = new Keys(this);
    this.local = new LocalArbiter(this);
    this.arbiter = options.makeArbiter?.(this) ?? this.local;
    this.queue = new Queue(this, ageingUs);
    this.refresh();
  }

  /** Others share the limits. */
  get isShared(): boolean {
    return this.arbiter !== this.local;
  }

  /** Puts a policy in force, or resets every key, and lets everybody who waits wait under it. */
  begin(policy: CompiledPolicy, forget: Forget | undefined): void {
    const nowUs = this.nowUs();
    this.keys.begin(policy, forget, nowUs);
    this.refresh();
    this.queue.requeue(nowUs);
  }

  /** A random number as promised, whatever was delivered: jitter must not shorten anything. */
  random(): number {
    try {
      const number = this.options.random();
      return number >= 0 && number < 1 ? number : 0;
    } catch {
      return 0;
    }
  }

  /** The current instant, read afresh. A clock that steps back stands still. */
  nowUs(): number {
    const nowUs = toUs(this.clock.now());
    if (nowUs > this.#lastUs) this.#lastUs = nowUs;
    return this.#lastUs;
  }

  /** Works out again which short cuts are open, after a change of policy, listeners or state of the whole. */
  refresh(): void {
    const { policy } = this.keys;
    this.#hotKey = "";
    this.#hotNeed = undefined;
    const isFree =
      !this.isShared &&
      !this.isClosed &&
      this.events.emit === undefined &&
      this.queue.pausedUntilUs === Number.NEGATIVE_INFINITY;
    this.isPlain = isFree && policy.hostIsKey && policy.global === undefined;
  }

  /** The short way for a newcomer, a host given by its name. Undefined: it would have to wait; null: the composed way decides. */
  startPlain(target: Target): HeldPermit | undefined | null {
    if (!this.isPlain || typeof target !== "string") return null;
    const slot = target === this.#hotKey ? this.#hotSlot : this.keys.rows.get(target);
    if (slot === undefined) return null;
    this.#hotKey = target;
    this.#hotSlot = slot;
    const started = this.local.takePlain(target, slot);
    return started === this.local.stop ? undefined : (started as HeldPermit | null);
  }

  /** Takes a target apart and finds its rows. Nothing may be swept between this and taking from them. */
  need(target: Target, nowUs: number): Need {
    if (this.queue.pausedUntilUs <= nowUs && this.queue.pausedUntilUs !== Number.NEGATIVE_INFINITY) {
      this.queue.pausedUntilUs = Number.NEGATIVE_INFINITY;
      this.refresh();
    }
    const { policy } = this.keys;
    // Others wait for the same, and nothing has changed since.
    const lane = typeof target === "string" && policy.hostIsKey ? this.queue.lanes.get(target) : undefined;
    if (lane?.need.host.rule.enabled === true && lane.need.target.intent === undefined) return lane.need;
    const hot = this.#hotNeed;
    if (hot !== undefined && target === this.#hotTarget && !this.slab.hasFlag(hot.slots[0], IS_IDLE)) return hot;
    let resolved = policy.resolve(target);
    // A key cut out of a URL would keep the whole URL alive for as long as the key is known.
    if (resolved.key !== target && !this.keys.rows.has(resolved.key)) {
      resolved = { ...resolved, key: ` ${resolved.key}`.slice(1) };
    }
    const need = this.keys.need(resolved, nowUs);
    if (!need.host.rule.enabled) this.options.onDisabled(need.key, need.host.origin);
    else if (need.slots.length === 1 && typeof target === "string" && policy.hostIsKey) {
      this.#hotNeed = need;
      this.#hotTarget = target;
    }
    const { intent } = resolved;
    if (intent !== undefined && !need.host.exempt && !need.host.intents.has(intent)) this.#warnOfIntent(need, intent);
    return need;
  }

  /** Resolves once `isQuiet` is true. */
  whenQuiet(isQuiet: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#watchers.push(() => {
        const isOver = isQuiet();
        if (isOver) resolve();
        return !isOver;
      });
      this.queue.run();
    });
  }

  get isWatched(): boolean {
    return this.#watchers.length > 0;
  }

  /** A permit that is never released ends by itself: whoever waits for quiet is told within a second. */
  get isQuietDue(): boolean {
    return this.isWatched && !this.isClosed && this.books.flying > 0;
  }

  /** Tells those who wait for quiet. Somebody may have stopped waiting, or something being in flight. */
  lookForQuiet(): void {
    if (this.isWatched) this.#watchers = this.#watchers.filter((isBusy) => isBusy());
  }

  /** The row of a host was given back. */
  dropped(key: string, wasFolded: boolean): void {
    if (this.#hotKey === key) this.#hotKey = "";
    if (this.#hotNeed?.key === key) this.#hotNeed = undefined;
    if (wasFolded) this.events.emit?.({ type: "evict", key, atMs: this.#lastUs / 1000 });
  }

  #warnOfIntent({ host, key }: Need, intent: string): void {
    const name = `${host.origin}\n${intent}`;
    if (this.events.emit === undefined || this.#warned.size >= WARNED_MOST || this.#warned.has(name)) return;
    this.#warned.add(name);
    const known = host.intents.size === 0 ? "no intents" : `only ${[...host.intents.keys()].join(", ")}`;
    const message = `a request names the intent "${intent}", for which ${host.origin} has no limits; it knows ${known}`;
    this.events.emit?.({ type: "warn", key, atMs: this.#lastUs / 1000, message });
  }
}

/**
 * Passes events on to listeners, in the order in which they happened. One that throws is ignored; the others still hear.
 *
 * They are told once what is under way is complete, since a listener may change anything. What they cause comes last.
 */
class Events {
  /**
   * Notes what happened. Undefined while nobody listens, so that `emit?.({ … })` makes nothing for nobody. Whoever makes things happen calls `flush` at
   * the end.
   */
  emit: ((event: LimiterEvent) => void) | undefined = undefined;
  readonly #listeners = new Set<(event: LimiterEvent) => unknown>();
  #waiting: LimiterEvent[] = [];
  #isTelling = false;

  /** Adds a listener and returns how to remove it. The same function twice counts twice. `onChange` is called after both. */
  subscribe(listener: (event: LimiterEvent) => unknown, onChange: () => void): () => void {
    const own = (event: LimiterEvent): unknown => listener(event);
    const changed = (): void => {
      this.emit = this.#listeners.size === 0 ? undefined : (event) => this.#note(event);
      onChange();
    };
    this.#listeners.add(own);
    changed();
    return () => {
      this.#listeners.delete(own);
      changed();
    };
  }

  #note(event: LimiterEvent): void {
    this.#waiting.push(event);
    // Nothing is kept to itself by a call that throws.
    if (this.#waiting.length === 1) queueMicrotask(() => this.flush());
  }

  /** Tells what has waited, and what is added meanwhile. */
  flush(): void {
    if (this.#isTelling || this.#waiting.length === 0) return;
    this.#isTelling = true;
    for (const event of this.#waiting) this.#tell(event);
    this.#waiting = [];
    this.#isTelling = false;
  }

  #tell(event: LimiterEvent): void {
    // A copy, since a listener may come or go meanwhile; one that has gone is not called any more.
    for (const listener of Array.from(this.#listeners)) {
      if (!this.#listeners.has(listener)) continue;
      try {
        const result: unknown = listener(event);
        // A listener may be async without its type saying so; its rejection is ignored like a throw.
        if (result instanceof Promise) result.catch(() => undefined);
      } catch {
        // Watching must not change what is watched.
      }
    }
  }
}
