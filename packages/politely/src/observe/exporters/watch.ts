import type { LimiterEvent, Stats } from "../types.js";
import { addRow, type Gauges, noGauges } from "./gauges.js";
import { HostTable, type KnownHost, OTHER } from "./hostTable.js";
import { type MeasuredLimiter, rowsOf, type TokensOf } from "./measured.js";
import { nextTurn } from "./nextTurn.js";
import { type Series, type SeriesMaker, UNKNOWN } from "./series.js";
import { StatCounters } from "./statCounters.js";
import { Tally } from "./tally.js";

/** What a look at the statistics gives. */
export interface Look {
  /** By label, `"other"` included. */
  readonly gauges: ReadonlyMap<string, Gauges>;
  /** Hosts whose statistics the limiter keeps. */
  readonly hostCount: number;
}

/** As `MeasureOptions`, read. */
export interface WatchOptions {
  readonly maxHosts: number;
  readonly tokensOf: TokensOf | undefined;
}

/** Follows a limiter: events as they come, and the statistics whenever they are looked at. */
export class Watch<S extends Series> {
  readonly table: HostTable<S>;
  /** How often the store went away, and whether it is now. */
  outages = 0;
  isStoreAway = false;
  readonly #limiter: MeasuredLimiter;
  readonly #tokensOf: TokensOf | undefined;
  readonly #counters: StatCounters<S>;
  readonly #stop: () => void;
  #looks = 0;
  /** Of the look under way. */
  #tally: Tally | undefined = undefined;
  #lastLook: Promise<unknown>;

  constructor(limiter: MeasuredLimiter, maker: SeriesMaker<S>, { maxHosts, tokensOf }: WatchOptions) {
    this.#limiter = limiter;
    this.#tokensOf = tokensOf;
    this.table = new HostTable(maxHosts, maker);
    this.#counters = new StatCounters(this.table);
    this.#stop = limiter.subscribe((event) => this.#hear(event));
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

  /** Hears nothing any more. */
  close(): void {
    this.#stop();
  }

  async #begin(): Promise<void> {
    try {
      const tally = new Tally();
      for (const row of rowsOf(await this.#limiter.stats())) tally.add(row, false);
      this.#counters.begin(tally);
    } catch {
      // Counting then begins at zero, with what the statistics say at the first look.
    }
  }

  async #look(): Promise<Look> {
    this.#looks += 1;
    const promoted = this.table.rank();
    const look = { gauges: new Map<string, Gauges>(), hostCount: 0 };
    for (const label of [OTHER, ...this.table.labelled.keys()]) look.gauges.set(label, noGauges());
    this.#counters.update(await this.#read(look), promoted);
    if (this.#tokensOf !== undefined) await this.#askTokens(this.#tokensOf, look);
    return look;
  }

  async #read(look: GrowingLook): Promise<Tally> {
    const tally = new Tally();
    this.#tally = tally;
    try {
      let count = 0;
      for (const row of this.#limiter.eachStats?.() ?? rowsOf(await this.#limiter.stats())) {
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

  #addTo(look: GrowingLook, row: Stats): void {
    if (row.foldedHosts === undefined) look.hostCount += 1;
    const host = this.table.find(row.host);
    const isFresh = host !== undefined && host.changedInLook !== this.#looks;
    if (isFresh) host.open = row.inFlight;
    const label = host?.label ?? OTHER;
    const gauge = look.gauges.get(label) ?? noGauges();
    look.gauges.set(label, gauge);
    addRow(gauge, row, label !== OTHER);
  }

  async #askTokens(tokensOf: TokensOf, { gauges }: Look): Promise<void> {
    const active = [...this.table.labelled.values()].sort((a, b) => b.activity - a.activity).slice(0, ASKED_MOST);
    await Promise.all(
      active.map(async ({ key, label }) => {
        const gauge = gauges.get(label);
        if (gauge !== undefined && gauge.tokens === undefined) gauge.tokens = await tokensWithin(tokensOf, key);
      }),
    );
  }

  #hear(event: LimiterEvent): void {
    // What is not here is of no number: waits are counted when they end, a permit's warning by its expiry.
    if (event.type === "grant") this.#started(this.table.at(event.key), event);
    else if (event.type === "release") this.#released(this.table.find(event.key), event);
    else if (event.type === "refuse") this.#decided(event.key).refused(event.code);
    else if (event.type === "cancel") this.#decided(event.key).cancelled();
    else if (event.type === "cooldown") this.table.at(event.key).series.cooledDown();
    else if (event.type === "outage") this.#outage(event.isAway);
    else if (event.type === "evict") this.#tally?.folded(event.key);
    else if (event.type !== "expire") return;
    else if (event.what === "waiter") this.#decided(event.key).expired();
    else this.#lapsed(this.table.find(event.key), event);
  }

  #decided(key: string): S {
    const host = this.table.at(key);
    host.activity += 1;
    return host.series;
  }

  #started(host: KnownHost<S>, { atMs, waitedMs, recorded }: Extract<LimiterEvent, { type: "grant" }>): void {
    host.activity += 1;
    const { lastMs } = host;
    // A request may be recorded long after it started; then nobody knows what came before it.
    const isLater = !(atMs < lastMs);
    const intervalMs = atMs >= lastMs ? atMs - lastMs : UNKNOWN;
    if (isLater) {
      host.beforeMs = lastMs;
      host.lastMs = atMs;
    }
    if (recorded === true) {
      host.series.started(UNKNOWN, intervalMs, UNKNOWN);
      return;
    }
    host.open += 1;
    host.changedInLook = this.#looks;
    host.series.started(waitedMs, intervalMs, host.open);
  }

  #released(host: KnownHost<S> | undefined, event: Extract<LimiterEvent, { type: "release" }>): void {
    if (host === undefined) return;
    const { startedAtMs, outcome } = event;
    if (outcome === "unused") {
      host.series.unused();
      forgetStart(host, startedAtMs);
    }
    host.releasedMs = startedAtMs;
    host.releasedAtMs = event.atMs;
    // One that has lapsed is no longer counted.
    if (startedAtMs > host.lapsedUntilMs) this.#ended(host);
  }

  /** A permit ended by itself. It may have been released just before, as it always is with a store, and is counted as that then. */
  #lapsed(host: KnownHost<S> | undefined, { atMs, afterMs }: Extract<LimiterEvent, { type: "expire" }>): void {
    // Named after a scope, not a host.
    if (host === undefined) return;
    const startedMs = atMs - afterMs;
    const isJustNow = atMs - host.releasedAtMs < JUST_NOW_MS;
    const isReleased = isJustNow && Math.abs(host.releasedMs - startedMs) < HALF_A_MICROSECOND_MS;
    if (isReleased) host.releasedMs = Number.NaN;
    else this.#ended(host);
    host.lapsedUntilMs = Math.max(host.lapsedUntilMs, startedMs + HALF_A_MICROSECOND_MS);
  }

  #ended(host: KnownHost<S>): void {
    host.open = Math.max(0, host.open - 1);
    host.changedInLook = this.#looks;
  }

  #outage(isAway: boolean): void {
    this.isStoreAway = isAway;
    if (isAway) this.outages += 1;
  }
}

/** A look that is not complete. */
interface GrowingLook extends Look {
  readonly gauges: Map<string, Gauges>;
  hostCount: number;
}

/** Some 250 rows take a millisecond or two. */
const ROWS_IN_ONE_GO = 250;

/** How many hosts' tokens are asked for at a time, and how long that may take. */
const ASKED_MOST = 20;
const ASKED_WITHIN_MS = 2_000;

/** The tokens of a host; undefined when they are not to be had in time. */
async function tokensWithin(tokensOf: TokensOf, host: string): Promise<number | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ASKED_WITHIN_MS, undefined);
  });
  try {
    return (await Promise.race([tokensOf(host), late]))?.tokens;
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

/** Two events of one cause are told one after the other. */
const JUST_NOW_MS = 1;

/** Instants are whole microseconds, but a difference of two is not exact. */
const HALF_A_MICROSECOND_MS = 0.0005;

/** A start that was not used is none: the next interval is counted from the one before it. */
function forgetStart<S extends Series>(host: KnownHost<S>, startedMs: number): void {
  if (host.lastMs === startedMs) {
    host.lastMs = host.beforeMs;
    host.beforeMs = Number.NaN;
  } else if (host.beforeMs === startedMs) host.beforeMs = Number.NaN;
}
