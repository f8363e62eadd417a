import type { LimiterEvent, PolicyInput, Stats } from "politely";
import type { ServiceLimiter } from "../serviceLimiter.js";
import { DueTurns } from "./dueTurns.js";
import { FeedSums } from "./feedSums.js";
import { headWaitMs } from "./headWait.js";
import { HostRecord, type Moment } from "./hostRecord.js";
import { type Pace, Paces } from "./paces.js";
import type { FeedTotals, Timeline } from "./row.js";
import { Seconds, TIMELINE_SECONDS } from "./seconds.js";
import { unhurried } from "./unhurried.js";

/** What a feed is made of. */
export interface HostFeedOptions {
  readonly limiter: Pick<ServiceLimiter, "eachStats" | "explain" | "stats" | "subscribe">;
  /** The policy in force: the same object until it is another one. */
  readonly policy: () => PolicyInput;
  /** The limiter's clock, and the calendar's. Default: the machine's. */
  readonly clock?: { now(): number; wall(): number };
  /** How many hosts are kept; those whose last event is longest ago leave. Default 20,000. */
  readonly maxHosts?: number;
}

/** What one look found. */
export interface FeedChanges {
  /** Hosts whose row says something new, at most 2,000. */
  readonly changed: readonly HostRecord[];
  /** Names of hosts that are not kept any more. */
  readonly gone: readonly string[];
}

/** So many hosts are counted anew in a look, and so many asked why they wait: at most 2,000 rows change in one. */
const MAX_COUNTED = 1_800;
const MAX_EXPLAINED = 200;
/** Counting all hosts at once, where one cannot be asked alone for less, may take this part of the time. */
const COUNTING_SHARE = 1 / 20;

/**
 * Knows how every host of a limiter stands, from its events.
 *
 * Hearing an event costs little and changes no row. `look` makes the rows of those hosts anew that had an event since, or whose row
 * changes by time alone; its cost has a bound, and what does not fit waits for the next look.
 */
export class HostFeed {
  /** The host whose last event is longest ago first, to a second. */
  readonly #records = new Map<string, HostRecord>();
  readonly #changed = new Set<HostRecord>();
  readonly #unexplained = new Set<HostRecord>();
  readonly #due = new DueTurns();
  readonly #seconds = new Seconds(new Uint32Array(2 * TIMELINE_SECONDS));
  readonly #unsubscribe: () => void;
  readonly #clock: { now(): number; wall(): number };
  readonly #sums = new FeedSums();
  #starts = 0;
  #gone: string[] = [];
  #paces: Paces | undefined;
  #allPausedUntilMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<FeedChanges> | undefined;
  #isEachAsked = true;
  #countableAtMs = Number.NEGATIVE_INFINITY;

  constructor(readonly options: HostFeedOptions) {
    this.#clock = options.clock ?? { now: () => performance.now(), wall: () => Date.now() };
    this.#unsubscribe = options.limiter.subscribe((event) => this.#hear(event));
  }

  get hostCount(): number {
    return this.#records.size;
  }

  /** Whether another look would find something at once. */
  get hasMore(): boolean {
    return this.#changed.size > 0 && this.#clock.now() >= this.#countableAtMs;
  }

  /** This moment, for making rows. */
  moment(): Moment {
    return { nowMs: this.#clock.now(), wallMs: this.#clock.wall(), allPausedUntilMs: this.#allPausedUntilMs };
  }

  /** All hosts, in no particular order. */
  records(): Iterable<HostRecord> {
    return this.#records.values();
  }

  record(key: string): HostRecord | undefined {
    return this.#records.get(key);
  }

  /** Everything together, hosts as the last look found them. */
  totals(): FeedTotals {
    const { throttled, waiting, inFlight, states } = this.#sums;
    const perSecond = Math.round(this.#seconds.perSecond(this.#clock.now()) * 100) / 100;
    return { starts: this.#starts, perSecond, throttled, waiting, inFlight, hosts: { ...states } };
  }

  /** The last two minutes of a host; without one, of all hosts that were ever heard of. */
  timeline(record?: HostRecord): Timeline {
    const nowMs = this.#clock.now();
    const newestMs = Math.floor(nowMs / 1_000) * 1_000;
    const fromMs = Math.round(this.#clock.wall() - nowMs + newestMs - (TIMELINE_SECONDS - 1) * 1_000);
    const { starts, throttled } = (record?.seconds ?? this.#seconds).lists(nowMs);
    const allowedPerSecond = record === undefined ? this.#allowedTogether() : this.#paceOf(record).perSecond;
    return { fromMs, stepMs: 1000, starts, throttled, allowedPerSecond };
  }

  /** Looks at hosts that may have changed. While a look is under way, that one's result is given. Never rejects. */
  look(): Promise<FeedChanges> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** Hears nothing from now on. */
  close(): void {
    this.#unsubscribe();
  }

  #hear(event: LimiterEvent): void {
    const { type, key, atMs } = event;
    if (key === "*") {
      if (type === "pause") this.#allPausedUntilMs = event.untilMs;
      if (type === "resume") this.#resumeAll();
      if (type !== "outage") for (const record of this.#records.values()) this.#changed.add(record);
      return;
    }
    const isSurelyHost = type === "grant" || type === "wait" || type === "refuse" || type === "pause";
    const record = isSurelyHost ? this.#recordOf(key, atMs) : this.#records.get(key);
    // A scope's.
    if (record === undefined) return;
    this.#changed.add(record);
    if (type === "grant") {
      record.started(atMs);
      this.#seconds.started(atMs);
      this.#starts += 1;
    } else if (type === "wait") record.waits(event);
    else if (type === "pause") record.pausedUntilMs = event.untilMs;
    else if (type === "resume") record.pausedUntilMs = Number.NEGATIVE_INFINITY;
    else if (type === "cooldown") record.coolingUntilMs = Math.max(record.coolingUntilMs, event.untilMs);
    if (isThrottled(event) && record.wasThrottled(event)) this.#seconds.throttled(atMs);
  }

  #resumeAll(): void {
    this.#allPausedUntilMs = Number.NEGATIVE_INFINITY;
    for (const record of this.#records.values()) record.pausedUntilMs = Number.NEGATIVE_INFINITY;
  }

  #recordOf(key: string, atMs: number): HostRecord {
    let record = this.#records.get(key);
    const second = Math.floor(atMs / 1_000);
    if (record === undefined) {
      record = new HostRecord(key);
      if (this.#records.size >= (this.options.maxHosts ?? 20_000)) this.#forgetOldest();
      this.#sums.put(record);
    } else if (record.touchedSec === second) return record;
    else this.#records.delete(key);
    record.touchedSec = second;
    this.#records.set(key, record);
    return record;
  }

  #forgetOldest(): void {
    for (const [key, record] of this.#records) {
      this.#records.delete(key);
      this.#changed.delete(record);
      this.#unexplained.delete(record);
      this.#due.drop(record);
      this.#sums.take(record);
      // Names that nobody asks for are not kept: whoever reads later begins with those that are there.
      if (this.#gone.length < 20_000) this.#gone.push(key);
      return;
    }
  }

  async #look(): Promise<FeedChanges> {
    for (const record of this.#due.take(this.#clock.now())) this.#changed.add(record);
    const looked = new Set(await this.#count());
    for (const record of await this.#explain()) looked.add(record);
    const moment = this.moment();
    const changed: HostRecord[] = [];
    for await (const record of unhurried(looked)) {
      // It may have been forgotten while a store was asked, or others had their turn.
      if (this.#records.get(record.domain) !== record) continue;
      this.#sums.take(record);
      record.pace = this.#paceOf(record);
      if (record.remake(moment)) changed.push(record);
      this.#sums.put(record);
      this.#due.put(record, record.changesAtMs(moment), moment.nowMs);
    }
    const gone = this.#gone.filter((key) => !this.#records.has(key));
    this.#gone = [];
    return { changed, gone };
  }

  /** Takes the limiter's counts of some hosts over. */
  async #count(): Promise<readonly HostRecord[]> {
    if (this.#clock.now() < this.#countableAtMs) return [];
    const some: HostRecord[] = [];
    for (const record of this.#changed) {
      if (some.length >= MAX_COUNTED) break;
      some.push(record);
    }
    for (const record of some) this.#changed.delete(record);
    const statsOf = some.length === 0 ? () => undefined : await this.#counter(some[0].domain);
    for await (const record of unhurried(some)) {
      if (this.#records.get(record.domain) !== record) continue;
      this.#sums.take(record);
      record.counted(statsOf(record.domain));
      this.#sums.put(record);
      if (record.waiting > 0) this.#unexplained.add(record);
      else this.#unexplained.delete(record);
    }
    return some;
  }

  /** How to get the counts of a host. A limiter with a store would ask it for each host; all hosts together are counted here, and cost no question. */
  async #counter(anyKey: string): Promise<(key: string) => Stats | undefined> {
    const { limiter } = this.options;
    if (this.#isEachAsked) {
      const first = tried(() => limiter.stats(anyKey));
      this.#isEachAsked = !(first instanceof Promise);
      if (first instanceof Promise) first.catch(() => undefined);
    }
    if (this.#isEachAsked) return (key) => tried(() => limiter.stats(key) as Stats | undefined);
    const beganMs = performance.now();
    const all = new Map<string, Stats>();
    for await (const stats of unhurried(limiter.eachStats())) all.set(stats.host, stats);
    this.#countableAtMs = this.#clock.now() + (performance.now() - beganMs) / COUNTING_SHARE;
    return (key) => all.get(key);
  }

  /** Asks why some hosts wait, those first that were to be asked first. */
  async #explain(): Promise<readonly HostRecord[]> {
    const some: HostRecord[] = [];
    for (const record of this.#unexplained) {
      if (some.length >= MAX_EXPLAINED) break;
      some.push(record);
    }
    for (const record of some) this.#unexplained.delete(record);
    await Promise.all(some.map((record) => this.#explainOne(record)));
    return some;
  }

  async #explainOne(record: HostRecord): Promise<void> {
    try {
      const { limiter } = this.options;
      const explanation = await limiter.explain(record.domain);
      // What a store says of a host leaves those who wait here out.
      const headMs = this.#isEachAsked
        ? headWaitMs(explanation, {
            limits: { host: this.#paceOf(record).limits, global: this.#pacesNow().global },
            stats: tried(() => limiter.stats(record.domain) as Stats | undefined),
          })
        : explanation.waitMs;
      record.explained(explanation, headMs, this.#clock.now());
    } catch {
      // As above: what was known last is shown.
    }
  }

  #paceOf({ domain }: HostRecord): Pace {
    return this.#pacesNow().of(domain);
  }

  /** The paces of the policy in force. Another policy than before is a change of every host, whenever it is noticed. */
  #pacesNow(): Paces {
    const policy = this.options.policy();
    if (this.#paces?.policy !== policy) {
      if (this.#paces !== undefined) for (const record of this.#records.values()) this.#changed.add(record);
      this.#paces = new Paces(policy);
    }
    return this.#paces;
  }

  #allowedTogether(): number | null {
    const { globalPerSecond } = this.#pacesNow();
    const { allowedPerSecond } = this.#sums;
    if (allowedPerSecond === null || globalPerSecond === null) return allowedPerSecond ?? globalPerSecond;
    return Math.min(allowedPerSecond, globalPerSecond);
  }
}

/** An answer "too many requests" is told by the release, or by the cooldown that it begins. */
function isThrottled(event: LimiterEvent): boolean {
  if (event.type === "release") return event.outcome === "rate_limited";
  return event.type === "cooldown" && /^(429|too many requests)\b/.test(event.because);
}

/** What a host's name gives, or nothing where the limiter does not take it as one. */
function tried<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}
