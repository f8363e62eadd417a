import { HostTable, type KnownHost, OTHER, type StatCounts } from "./hostTable.js";
import { type LeaseResult, Leases } from "./leases.js";
import type { Gauges, Series, SeriesMaker } from "./metrics.js";
import type { LimiterEvent, Stats } from "./types.js";

/** A value now, or a promise of it. */
export type Soon<T> = T | Promise<T>;

/** The part of a limiter that exporters call. All four kinds fit: for hosts or one key, in memory or with a store. */
export interface MeasuredLimiter {
  /** Every host that is kept; of a limiter for one key, that one. */
  stats(): Soon<readonly Stats[] | Stats>;
  /** The same rows one by one, read in small parts where it is there: of limiters for hosts. */
  eachStats?(): Iterable<Stats>;
  subscribe(listener: (event: LimiterEvent) => void): () => void;
}

/** Says how many units the bucket of a host has now, among other things. */
export type TokensOf = (host: string) => Soon<{ readonly tokens?: number | undefined } | undefined>;

/** What all exporters can be told. */
export interface MeasureOptions {
  /** How many hosts have a label of their own: 0 to 10,000. All others share `"other"`. */
  readonly maxHosts?: number | undefined;
  /**
   * Asks for the tokens of a host: `(host) => limiter.stats(host)`. For limiters with a store, where the bucket is in the store: each reading then
   * puts one question to it for each of the 20 most active hosts. One that fails or takes over 2 s has no tokens. Default: not asked.
   */
  readonly tokensOf?: TokensOf | undefined;
}

/** What a look at the statistics gives. */
export interface Look {
  /** By label, `"other"` included. */
  readonly gauges: Map<string, Gauges>;
  /** Hosts whose statistics the limiter keeps. */
  hostCount: number;
}

/** What an exporter does with what is seen. */
export interface WatchOptions<S extends Series> extends MeasureOptions {
  readonly maker: SeriesMaker<S>;
  readonly defaultMaxHosts: number;
  readonly onLease?: (result: LeaseResult) => void;
}

const MAX_HOSTS_MOST = 10_000;
/** Some 250 rows take a millisecond or two. */
const ROWS_IN_ONE_GO = 250;
/** Rows whose counts from before somebody watched are remembered. */
const ROWS_MOST = 10_000;
/** How many hosts' tokens are asked for at a time, and how long that may take. */
const ASKED_MOST = 20;
const ASKED_WITHIN_MS = 2_000;
/** Two events of one cause are told one after the other. */
const JUST_NOW_MS = 1;
/** Instants are whole microseconds, but a difference of two is not exact. */
const HALF_A_MICROSECOND_MS = 0.0005;

/** Follows a limiter: events as they come, and the statistics whenever they are looked at. Throws `TypeError` or `RangeError` for options that make no sense. */
export class Watch<S extends Series> {
  readonly table: HostTable<S>;
  readonly leases: Leases;
  /** How often the store went away, and whether it is now. */
  outages = 0;
  isStoreAway = false;
  /** Hears nothing any more. */
  readonly close: () => void;
  readonly #limiter: MeasuredLimiter;
  readonly #tokensOf: TokensOf | undefined;
  #looks = 0;
  /** Of the look under way. */
  #tally: Tally | undefined = undefined;
  /** Rows that had counted something before anybody watched, and the sum that was seen last. */
  #before: ReadonlyMap<string, StatCounts> = new Map();
  #total: StatCounts = { throttled: 0, lapsed: 0 };
  #lastLook: Promise<unknown>;

  constructor(limiter: MeasuredLimiter, { maker, maxHosts, defaultMaxHosts, tokensOf, onLease }: WatchOptions<S>) {
    if (typeof limiter?.stats !== "function" || typeof limiter.subscribe !== "function") {
      throw new TypeError("limiter must be what politely() or limit() returned: it has no stats and subscribe.");
    }
    if (tokensOf !== undefined && typeof tokensOf !== "function") {
      throw new TypeError(`tokensOf must be a function of a host; got ${typeof tokensOf}.`);
    }
    this.#limiter = limiter;
    this.#tokensOf = tokensOf;
    this.table = new HostTable(readMaxHosts(maxHosts, defaultMaxHosts), maker);
    this.leases = new Leases(onLease);
    this.close = limiter.subscribe((event) => this.#hear(event));
    this.#lastLook = this.#begin();
  }

  /**
   * Reads the statistics: counts what only they tell, hands labels on, and gives what is true at this moment. One look at a time. Of a limiter
   * with `eachStats` it reads 250 rows in one turn of the event loop, so that others have theirs.
   */
  look(): Promise<Look> {
    const looked = this.#lastLook.then(() => this.#look());
    this.#lastLook = looked.catch(() => undefined);
    return looked;
  }

  async #begin(): Promise<void> {
    try {
      const tally = new Tally();
      for (const row of [await this.#limiter.stats()].flat()) tally.add(row, false);
      this.#before = new Map([...tally.rows].slice(0, ROWS_MOST));
      this.#total = tally.total;
    } catch {
      // Counting then begins at zero, with what the statistics say at the first look.
    }
  }

  async #look(): Promise<Look> {
    this.#looks += 1;
    const promoted = this.table.rank();
    const look: Look = { gauges: new Map(), hostCount: 0 };
    for (const [label] of this.table.all()) look.gauges.set(label, noGauges());
    this.#countGrowth(await this.#read(look), promoted);
    if (this.#tokensOf !== undefined) await this.#askTokens(this.#tokensOf, look);
    return look;
  }

  async #read(look: Look): Promise<Tally> {
    const tally = new Tally();
    this.#tally = tally;
    try {
      let count = 0;
      for (const row of this.#limiter.eachStats?.() ?? [await this.#limiter.stats()].flat()) {
        tally.add(row, this.table.labelled.has(row.host));
        this.#addTo(look, row);
        count += 1;
        if (count % ROWS_IN_ONE_GO === 0) await nextTurn();
      }
    } finally {
      this.#tally = undefined;
    }
    return tally;
  }

  #addTo(look: Look, row: Stats): void {
    if (row.foldedHosts === undefined) look.hostCount += 1;
    const host = this.table.find(row.host);
    if (host !== undefined && host.changedInLook !== this.#looks) host.open = row.inFlight;
    const label = host?.own === undefined ? OTHER : host.key;
    const gauge = look.gauges.get(label) ?? noGauges();
    look.gauges.set(label, gauge);
    gauge.inFlight += row.inFlight;
    gauge.waiting += row.waiting;
    gauge.cooldown = Math.max(gauge.cooldown, row.cooldownMs / 1_000);
    // Tokens of different buckets cannot be added.
    if (label !== OTHER) gauge.tokens = row.tokens;
  }

  /**
   * Counts what only the statistics know, by its growth since the last look. What `promoted` hosts did meanwhile was done under `"other"`.
   *
   * The sum over all labels grows exactly as the statistics do. What a host did just before its statistics were folded away goes to
   * `"other"`. After `reset` they begin at zero again, and what was counted since the last look is lost, of the hosts with a label excepted.
   */
  #countGrowth({ total, rows }: Tally, promoted: readonly KnownHost<S>[]): void {
    const hosts = [...this.table.labelled.values()];
    for (const name of ["throttled", "lapsed"] as const) {
      let left = growth(total[name], this.#total[name]);
      // A total that has become smaller was reset, wholly or for some hosts. Nobody knows what the others did meanwhile.
      let ofOthers = total[name] < this.#total[name] ? 0 : left;
      for (const host of hosts) {
        const before = host.seen ?? this.#before.get(host.key);
        const grown = growth(rows.get(host.key)?.[name] ?? 0, before?.[name] ?? 0);
        const counted = promoted.includes(host) || !rows.has(host.key) ? 0 : Math.min(left, grown);
        if (counted > 0) host.own?.count(name, counted);
        left -= counted;
        ofOthers = Math.max(0, ofOthers - counted);
      }
      if (ofOthers > 0) this.table.other.count(name, ofOthers);
    }
    for (const host of hosts) host.seen = rows.get(host.key) ?? host.seen;
    this.#total = total;
  }

  async #askTokens(tokensOf: TokensOf, { gauges }: Look): Promise<void> {
    const active = [...this.table.labelled.values()].sort((a, b) => b.activity - a.activity).slice(0, ASKED_MOST);
    const asked = active.map(async ({ key }) => {
      const gauge = gauges.get(key);
      if (gauge !== undefined && gauge.tokens === undefined) gauge.tokens = await tokensWithin(tokensOf, key);
    });
    await Promise.all(asked);
  }

  #hear(event: LimiterEvent): void {
    const { type, key } = event;
    // What is not here is of no number: waits are counted when they end, a permit's warning by its expiry.
    if (type === "grant") this.#started(this.table.at(key), event);
    else if (type === "release") this.#released(this.table.find(key), event);
    else if (type === "refuse") this.#decided(key).count("refused", 1, event.code);
    else if (type === "cancel") this.#decided(key).count("cancelled", 1);
    else if (type === "cooldown") this.#seriesOf(this.table.at(key)).count("cooldowns", 1);
    else if (type === "evict") this.#tally?.folded(key);
    else if (type === "expire" && event.what === "waiter") this.#decided(key).count("expired", 1);
    else if (type === "expire") this.#lapsed(this.table.find(key), event);
    else if (type === "outage") {
      this.isStoreAway = event.isAway;
      if (event.isAway) this.outages += 1;
    }
  }

  #decided(key: string): S {
    const host = this.table.at(key);
    host.activity += 1;
    return this.#seriesOf(host);
  }

  #seriesOf({ own = this.table.other }: KnownHost<S>): S {
    return own;
  }

  #started(host: KnownHost<S>, { atMs, waitedMs, recorded }: Extract<LimiterEvent, { type: "grant" }>): void {
    const { lastMs } = host;
    const series = this.#seriesOf(host);
    host.activity += 1;
    series.count("starts", 1);
    if (atMs >= lastMs) series.record("interval", (atMs - lastMs) / 1_000);
    // A request may be recorded long after it started; then nobody knows what came before it.
    if (!(atMs < lastMs)) Object.assign(host, { beforeMs: lastMs, lastMs: atMs });
    if (recorded === true) return;
    host.open += 1;
    host.changedInLook = this.#looks;
    series.record("wait", waitedMs / 1_000);
    series.record("inFlight", host.open);
  }

  #released(host: KnownHost<S> | undefined, event: Extract<LimiterEvent, { type: "release" }>): void {
    if (host === undefined) return;
    const { startedAtMs, outcome, atMs } = event;
    if (outcome === "unused") {
      this.#seriesOf(host).count("unused", 1);
      // It is no start: the next interval is counted from the one before it.
      if (host.lastMs === startedAtMs) Object.assign(host, { lastMs: host.beforeMs, beforeMs: Number.NaN });
      else if (host.beforeMs === startedAtMs) host.beforeMs = Number.NaN;
    }
    host.releasedMs = startedAtMs;
    host.releasedAtMs = atMs;
    // One that has lapsed is no longer counted.
    if (startedAtMs > host.lapsedUntilMs) this.#ended(host);
  }

  /** A permit ended by itself. It may have been released just before, as it always is with a store, and is counted as that then. */
  #lapsed(host: KnownHost<S> | undefined, { atMs, afterMs }: Extract<LimiterEvent, { type: "expire" }>): void {
    // Named after a scope, not a host.
    if (host === undefined) return;
    const startedMs = atMs - afterMs;
    const isJustNow = atMs - host.releasedAtMs < JUST_NOW_MS;
    if (isJustNow && Math.abs(host.releasedMs - startedMs) < HALF_A_MICROSECOND_MS) host.releasedMs = Number.NaN;
    else this.#ended(host);
    host.lapsedUntilMs = Math.max(host.lapsedUntilMs, startedMs + HALF_A_MICROSECOND_MS);
  }

  #ended(host: KnownHost<S>): void {
    host.open = Math.max(0, host.open - 1);
    host.changedInLook = this.#looks;
  }
}

/**
 * Adds up the rows of one look, which may take a while.
 *
 * A host that is folded away after its row was told is in the row of the folded ones too, so its own is taken out again. The total then lies between that
 * of the statistics at the beginning and at the end of the look, and never falls from look to look.
 */
class Tally {
  readonly total: StatCounts = { throttled: 0, lapsed: 0 };
  /** Rows of hosts: those that count something, and those asked for with `isKept`. */
  readonly rows = new Map<string, StatCounts>();

  add({ host, throttledRequests: throttled, lapsed, foldedHosts }: Stats, isKept: boolean): void {
    // A host that was reset begins again.
    this.folded(host);
    this.#add(throttled, lapsed);
    if (foldedHosts === undefined && (isKept || throttled + lapsed > 0)) this.rows.set(host, { throttled, lapsed });
  }

  /** A host was folded away, and will be in the row of the folded ones. */
  folded(host: string): void {
    const { throttled, lapsed } = this.rows.get(host) ?? { throttled: 0, lapsed: 0 };
    this.rows.delete(host);
    this.#add(-throttled, -lapsed);
  }

  #add(throttled: number, lapsed: number): void {
    this.total.throttled += throttled;
    this.total.lapsed += lapsed;
  }
}

/** Nothing is true of a host. */
export function noGauges(): Gauges {
  return { inFlight: 0, waiting: 0, cooldown: 0, tokens: undefined };
}

/** Resolves in a later turn of the event loop: what is due by now happens before. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}

function readMaxHosts(value: number | undefined, byDefault: number): number {
  if (value === undefined) return byDefault;
  if (Number.isInteger(value) && value >= 0 && value <= MAX_HOSTS_MOST) return value;
  const message = `maxHosts must be a whole number from 0 to ${MAX_HOSTS_MOST}; got ${String(value)}.`;
  throw typeof value === "number" ? new RangeError(message) : new TypeError(message);
}

/** The tokens of a host; undefined when they are not to be had in time. */
async function tokensWithin(tokensOf: TokensOf, host: string): Promise<number | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ASKED_WITHIN_MS, undefined);
  });
  const asked = Promise.resolve(host).then(tokensOf);
  const stats = await Promise.race([asked, late]).catch(() => undefined);
  clearTimeout(timer);
  return stats?.tokens;
}

/** A count that has become smaller began again at zero. */
function growth(now: number, before: number): number {
  return now >= before ? now - before : now;
}
