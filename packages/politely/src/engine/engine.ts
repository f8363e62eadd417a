import type { Answer } from "../core/answer.js";
import { WallCalendar } from "../core/calendar.js";
import { ROW } from "../core/key.js";
import { owedAt } from "../core/limits/rate.js";
import type { CompiledPolicy } from "../policy/types.js";
import type { Clock, Outcome, Target } from "../types.js";
import type { Need } from "./arbiter.js";
import { Books } from "./books.js";
import { Events } from "./events.js";
import { Keys } from "./keys.js";
import { LocalArbiter } from "./localArbiter.js";
import { HeldPermit } from "./permit.js";
import { Queue } from "./queue.js";
import { IS_IDLE, PROFILE_MASK, Slab } from "./slab.js";
import { toUs } from "./systemClock.js";

const { FLIGHT, LAST_US, OWED, PROFILE, SEEN_US, UNITS } = ROW;

/** While somebody waits for quiet, permits that were never released are looked for this often. */
const LOOK_EVERY_US = 1_000_000;
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
  /** Understands an outcome; throws `TypeError` when it is none. */
  readonly readOutcome: (outcome: Outcome | undefined) => Answer;
  /** A host without limits was asked for: by which entry of the policy. */
  readonly onDisabled: (key: string, origin: string) => void;
}

/** The parts of a limiter of one process, and what they have in common: the clock, the events, what a target needs. */
export class Engine {
  readonly clock: Clock;
  readonly events = new Events();
  readonly slab: Slab;
  readonly books: Books;
  readonly keys: Keys;
  readonly arbiter = new LocalArbiter(this);
  readonly queue: Queue;
  isClosed = false;
  onQuiet: (() => void) | undefined = undefined;
  /** The short way is open. */
  #isPlain = false;
  #hotKey = "";
  #hotSlot = -1;
  #hotNeed: Need | undefined = undefined;
  /** The beginning of all URLs with the same need, as they are written; empty when it came from a bare host. */
  #hotOrigin = "";
  #lastUs = Number.NEGATIVE_INFINITY;
  #watchers: { readonly isQuiet: () => boolean; readonly resolve: () => void }[] = [];
  readonly #warned = new Set<string>();

  constructor(readonly options: EngineOptions) {
    const { clock, policy, maxKeys, keepStats, ageingUs } = options;
    this.clock = clock;
    this.slab = new Slab(keepStats > 0, new WallCalendar(() => clock.wall()));
    this.books = new Books(this.slab);
    this.keys = new Keys(this.slab, this.books, {
      policy,
      maxKeys,
      keepStats,
      lapse: (slot, nowUs) => this.arbiter.lapse(slot, nowUs),
      onDrop: (key, wasFolded) => this.#dropped(key, wasFolded),
    });
    this.queue = new Queue(this, ageingUs);
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
    const { policy } = this.keys;
    this.#hotKey = "";
    this.#hotNeed = undefined;
    const isFree =
      !this.isClosed && this.events.emit === undefined && this.queue.pausedUntilUs === Number.NEGATIVE_INFINITY;
    this.#isPlain = isFree && policy.hostIsKey && policy.global === undefined;
  }

  /**
   * The short way, for a known host given by its name, with gap and bucket at most: the arithmetic of `core/limits/gap.ts` and `rate.ts` on its row, without the
   * questions whose answers are known. Undefined: it would have to wait, which counts as refused unless it `isPatient`; null: the composed way decides.
   */
  startPlain(target: Target, isPatient: boolean): HeldPermit | undefined | null {
    if (!this.#isPlain || typeof target !== "string") return null;
    const slot = target === this.#hotKey ? this.#hotSlot : this.keys.rows.get(target);
    if (slot === undefined) return null;
    this.#hotKey = target;
    this.#hotSlot = slot;
    const nowUs = this.nowUs();
    const { words, halves } = this.slab.chunkOf(slot);
    const word = this.slab.wordOf(slot);
    const half = 2 * word;
    const number = halves[half + PROFILE];
    const profile = number > PROFILE_MASK ? undefined : this.keys.profiles[number];
    if (profile === undefined || !profile.isSimple) return null;
    const { gapUs, maxHoldUs, rateCount, ratePerUs } = profile.rule;
    const previousUs = words[word + LAST_US];
    // Starts in flight that have come to nothing are counted as lost first.
    if (halves[half + FLIGHT] !== 0 && previousUs + maxHoldUs <= nowUs) return null;
    const owed = rateCount === 0 ? 0 : owedAt(rateCount, words[word + OWED], words[word + SEEN_US], nowUs) + ratePerUs;
    if (previousUs + gapUs > nowUs || owed > profile.owedMost) {
      if (!isPatient) this.books.count(slot, "refused");
      return undefined;
    }
    if (rateCount !== 0) {
      words[word + OWED] = owed;
      words[word + SEEN_US] = nowUs;
    }
    words[word + LAST_US] = nowUs;
    halves[half + FLIGHT] += 1;
    const unitsAfter = (halves[half + UNITS] + 1) >>> 0;
    halves[half + UNITS] = unitsAfter;
    this.books.granted(slot, nowUs, 0);
    this.books.flying += 1;
    this.keys.granted(nowUs);
    const sinceUs = previousUs === Number.NEGATIVE_INFINITY ? undefined : nowUs - previousUs;
    return new HeldPermit(this.arbiter, target, slot, nowUs, unitsAfter, sinceUs);
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
    if (hot !== undefined && typeof target === "string" && !this.slab.hasFlag(hot.slots[0], IS_IDLE)) {
      if (hot.key === target || (this.#hotOrigin !== "" && target.startsWith(this.#hotOrigin))) return hot;
    }
    let resolved = policy.resolve(target);
    // A key cut out of a URL would keep the whole URL alive for as long as the key is known.
    if (resolved.key !== target && !this.keys.rows.has(resolved.key)) {
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

  /** Resolves once `isQuiet` is true. It is asked whenever somebody stopped waiting or something stopped being in flight. */
  whenQuiet(isQuiet: () => boolean): Promise<void> {
    if (isQuiet()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#watchers.push({ isQuiet, resolve });
      this.onQuiet = () => this.#lookForQuiet();
      this.setAlarm();
    });
  }

  #lookForQuiet(): void {
    const done = this.#watchers.filter(({ isQuiet }) => isQuiet());
    this.#watchers = this.#watchers.filter((each) => !done.includes(each));
    if (this.#watchers.length === 0) this.onQuiet = undefined;
    for (const { resolve } of done) resolve();
    this.setAlarm();
  }

  /** A permit that is never released ends by itself: whoever waits for quiet is told within a second. */
  setAlarm(): void {
    const isAwaited = this.#watchers.length > 0 && !this.isClosed && this.books.flying > 0;
    if (!isAwaited) this.queue.alarmUs = Number.POSITIVE_INFINITY;
    else if (this.queue.alarmUs === Number.POSITIVE_INFINITY) this.queue.alarmUs = this.nowUs() + LOOK_EVERY_US;
    this.queue.rearm();
  }

  /** `alarmUs` of the queue has come. */
  alarm(nowUs: number): void {
    this.queue.alarmUs = Number.POSITIVE_INFINITY;
    this.keys.sweepAll(nowUs);
    this.onQuiet?.();
  }

  #dropped(key: string, wasFolded: boolean): void {
    if (this.#hotKey === key) this.#hotKey = "";
    if (this.#hotNeed?.key === key) this.#hotNeed = undefined;
    if (wasFolded) this.events.emit?.({ type: "evict", key, atMs: this.#lastUs / 1000 });
  }

  #warnOfIntent({ host, key }: Need, intent: string): void {
    const name = `${host.origin}\n${intent}`;
    if (this.#warned.size >= WARNED_MOST || this.#warned.has(name)) return;
    this.#warned.add(name);
    const known = host.intents.size === 0 ? "no intents" : `only ${[...host.intents.keys()].join(", ")}`;
    const message = `a request names the intent "${intent}", for which ${host.origin} has no limits; it knows ${known}`;
    this.events.emit?.({ type: "warn", key, atMs: this.#lastUs / 1000, message });
  }
}

/** A URL's text up to its path, which alone decides the host; empty when it has no path. */
function originOf(target: string): string {
  const authority = target.indexOf("://") + 3;
  const end = authority < 3 ? -1 : target.indexOf("/", authority);
  return end < 0 ? "" : target.slice(0, end + 1);
}
