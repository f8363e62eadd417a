import type { Stats, WindowStats } from "../observe/types.js";
import type { Counts } from "./books.js";
import { ONE } from "./cost.js";
import type { Engine } from "./engine.js";

/** The `host` of the row that adds up all hosts no longer kept. */
export const FOLDED_HOST = "*";

/** What is true of a host at this moment, beside its counts. */
interface Present {
  readonly lastRequestAt: Date | undefined;
  readonly lastUs: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly cooldownMs: number;
  readonly tokens: number | undefined;
  readonly windows: readonly WindowStats[];
  readonly foldedHosts: number | undefined;
}

const NO_WINDOWS: readonly WindowStats[] = [];

/** The statistics of one row. */
export function hostStats(engine: Engine, host: string, slot: number, nowUs: number): Stats {
  const { ledger, queue, clock } = engine;
  const { rule } = ledger.profileOf(slot);
  ledger.lapse(slot, nowUs);
  // Counted before the books are read: looking may find that some have lapsed.
  const inFlight = ledger.inFlight(slot, nowUs);
  const lastUs = Math.max(ledger.lastUs(slot), engine.books.lastUs(slot));
  const hasStarted = lastUs !== Number.NEGATIVE_INFINITY;
  const heldUs = Math.max(ledger.cooldowns.get(slot)?.untilUs ?? nowUs, nowUs) - nowUs;
  // Nothing is spread: this is made for every host there is.
  return new Snapshot(host, engine.books.read(slot) ?? { ...engine.books.folded }, {
    lastRequestAt: hasStarted ? new Date(clock.wall() - (nowUs - lastUs) / 1000) : undefined,
    lastUs,
    inFlight,
    waiting: queue.gateAt(slot)?.waiting ?? 0,
    cooldownMs: heldUs / 1000,
    tokens: rule.rateCount === 0 ? undefined : Math.max(0, rule.burst - ledger.owedAt(slot, nowUs) / rule.ratePerUs),
    windows: rule.windows.length === 0 ? NO_WINDOWS : windowStats(engine, slot, nowUs),
    foldedHosts: undefined,
  });
}

function windowStats({ ledger }: Engine, slot: number, nowUs: number): WindowStats[] {
  const { rule } = ledger.profileOf(slot);
  return rule.windows.map((window, index) => {
    const calls = ledger.windowUsed(slot, index, nowUs);
    const freeUs = ledger.windowAt(slot, index, ONE, nowUs);
    const nextFreeMs = Math.max(0, freeUs - nowUs) / 1000;
    return { calls, remaining: Math.max(0, window.count - calls), periodMs: window.perUs / 1000, nextFreeMs };
  });
}

/** Everything that is kept: hosts in order of first use, then those beyond `maxKeys` together, then the folded ones. */
export function allStats(engine: Engine, nowUs: number): Stats[] {
  const { keys, options } = engine;
  keys.sweepAll(nowUs);
  const rows: Stats[] = [];
  if (options.keepStats > 0) {
    for (const [host, slot] of [...keys.hosts, ...keys.overflow]) {
      const stats = hostStats(engine, host, slot, nowUs);
      if (stats.asked > 0) rows.push(stats);
    }
  }
  const folded = foldedStats(engine, nowUs);
  if (folded.asked > 0) rows.push(folded);
  return rows;
}

/**
 * The same rows in the same order, each as it is when it is asked for. No more hosts are looked at than there are at the beginning, so that it ends however
 * many come meanwhile; those that are there at the beginning come first.
 */
export function* eachStats(engine: Engine): Generator<Stats, void, undefined> {
  const { keys, options } = engine;
  if (options.keepStats > 0) {
    let left = keys.hosts.size;
    for (const [host, slot] of keys.hosts) {
      if (left-- === 0) break;
      const nowUs = engine.nowUs();
      keys.sweepOne(host, slot, nowUs);
      const stats = keys.hosts.get(host) === slot ? hostStats(engine, host, slot, nowUs) : undefined;
      // Who reads has to hear that a host was folded away before the next row.
      engine.flush();
      if (stats !== undefined && stats.asked > 0) yield stats;
    }
    for (const [host, slot] of keys.overflow) yield* told(engine, hostStats(engine, host, slot, engine.nowUs()));
  }
  yield* told(engine, foldedStats(engine, engine.nowUs()));
}

function told(engine: Engine, stats: Stats): readonly Stats[] {
  engine.flush();
  return stats.asked > 0 ? [stats] : [];
}

function foldedStats(engine: Engine, nowUs: number): Stats {
  const { keys, books, ledger, queue, options } = engine;
  let inFlight = 0;
  if (options.keepStats === 0) {
    for (const [, slot] of [...keys.hosts, ...keys.overflow]) {
      ledger.lapse(slot, nowUs);
      inFlight += ledger.inFlight(slot, nowUs);
    }
  }
  return new Snapshot(
    FOLDED_HOST,
    { ...books.folded },
    {
      lastRequestAt: undefined,
      lastUs: Number.NEGATIVE_INFINITY,
      inFlight,
      waiting: options.keepStats === 0 ? queue.waiting : 0,
      cooldownMs: 0,
      tokens: undefined,
      windows: NO_WINDOWS,
      foldedHosts: books.foldedHosts,
    },
  );
}

/** Statistics as they were when asked for. */
export class Snapshot implements Stats {
  readonly totalRequests: number;
  readonly delayedRequests: number;
  readonly cancelledRequests: number;
  readonly throttledRequests: number;
  readonly totalWaitMs: number;
  readonly averageWaitMs: number;
  readonly delayRate: number;
  readonly meanIntervalMs: number;
  declare readonly lastRequestAt?: Date;
  readonly inFlight: number;
  readonly waiting: number;
  readonly cooldownMs: number;
  declare readonly tokens?: number;
  declare readonly window?: WindowStats;
  readonly windows: readonly WindowStats[];
  readonly asked: number;
  readonly granted: number;
  readonly refused: number;
  readonly cancelled: number;
  readonly expired: number;
  readonly released: number;
  readonly lapsed: number;
  declare readonly foldedHosts?: number;

  constructor(
    readonly host: string,
    counts: Counts,
    present: Present,
  ) {
    const { granted, delayed } = counts;
    this.totalRequests = granted;
    this.delayedRequests = delayed;
    this.cancelledRequests = counts.cancelled;
    this.throttledRequests = counts.throttled;
    this.totalWaitMs = counts.waitedUs / 1000;
    this.averageWaitMs = delayed === 0 ? 0 : this.totalWaitMs / delayed;
    this.delayRate = granted === 0 ? 0 : delayed / granted;
    this.meanIntervalMs =
      granted < 2 || present.lastUs === Number.NEGATIVE_INFINITY
        ? 0
        : Math.max(0, present.lastUs - counts.firstUs) / (granted - 1) / 1000;
    this.inFlight = present.inFlight;
    this.waiting = present.waiting;
    this.cooldownMs = present.cooldownMs;
    this.windows = present.windows;
    this.asked = granted + counts.refused + counts.cancelled + counts.expired + present.waiting;
    this.granted = granted;
    this.refused = counts.refused;
    this.cancelled = counts.cancelled;
    this.expired = counts.expired;
    this.released = granted - counts.lapsed - present.inFlight;
    this.lapsed = counts.lapsed;
    if (present.lastRequestAt !== undefined && granted > 0) this.lastRequestAt = present.lastRequestAt;
    if (present.tokens !== undefined) this.tokens = present.tokens;
    if (present.windows.length > 0) this.window = present.windows[0];
    if (present.foldedHosts !== undefined) this.foldedHosts = present.foldedHosts;
  }

  toJSON(): Record<string, unknown> {
    return {
      domain: this.host,
      total_requests: this.totalRequests,
      delayed_requests: this.delayedRequests,
      total_wait_time_ms: this.totalWaitMs,
      average_wait_time_ms: this.averageWaitMs,
      last_request_time: this.lastRequestAt?.toISOString() ?? null,
      delay_rate: this.delayRate,
      cancelled_requests: this.cancelledRequests,
      throttled_requests: this.throttledRequests,
      mean_interval_ms: this.meanIntervalMs,
      in_flight: this.inFlight,
      waiting: this.waiting,
      cooldown_ms: this.cooldownMs,
      tokens: this.tokens ?? null,
      windows: this.windows.map(windowJson),
      asked: this.asked,
      granted: this.granted,
      refused: this.refused,
      cancelled: this.cancelled,
      expired: this.expired,
      released: this.released,
      lapsed: this.lapsed,
      ...(this.foldedHosts === undefined ? {} : { folded_hosts: this.foldedHosts }),
    };
  }
}

/** A window with the names that statistics have in JSON. */
export function windowJson({ calls, remaining, periodMs, nextFreeMs }: WindowStats): Record<string, number> {
  return { calls, remaining, period_ms: periodMs, next_free_ms: nextFreeMs };
}
