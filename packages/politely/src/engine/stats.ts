import { type Key, NOBODY, ONE, ROW } from "../core/key.js";
import { inFlight } from "../core/limits/places.js";
import { owedAt } from "../core/limits/rate.js";
import { oldestLeavesUs, windowReadyAt, windowUsed } from "../core/limits/window.js";
import type { Rule } from "../core/rule.js";
import type { Stats, WindowStats } from "../observe/types.js";
import type { Counts } from "./books.js";
import type { Engine } from "./engine.js";

const { OWED, SEEN_US } = ROW;

/** The `host` of the row that adds up all hosts that have no row of their own. */
const FOLDED_HOST = "*";

/** `stats()` lists so many hosts; those beyond are added up, like the folded ones. */
const LISTED_MOST = 10_000;

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
  const { arbiter, books, keys, queue, slab, clock } = engine;
  keys.bring(slot, host, true, nowUs);
  // Before the books are read: looking may find that some have lapsed.
  arbiter.lapse(slot, nowUs);
  const { rule } = keys.profileOf(slot);
  const key = slab.key(slot);
  const lastUs = books.lastUs(slot);
  const hasStarted = lastUs !== Number.NEGATIVE_INFINITY;
  const heldUs = Math.max(key.rest?.incident?.untilUs ?? nowUs, nowUs) - nowUs;
  // Nothing is spread: this is made for every host there is.
  return new Snapshot(host, books.read(slot) ?? { ...books.folded }, {
    lastRequestAt: hasStarted ? new Date(clock.wall() - (nowUs - lastUs) / 1000) : undefined,
    lastUs,
    inFlight: inFlight(key, rule, nowUs),
    waiting: queue.gateAt(slot)?.waiting ?? 0,
    cooldownMs: heldUs / 1000,
    tokens: rule.rateCount === 0 ? undefined : tokensOf(key, rule, nowUs),
    windows: rule.windows.length === 0 ? NO_WINDOWS : windowStats(key, rule, nowUs),
    foldedHosts: undefined,
  });
}

function tokensOf({ words, at }: Key, rule: Rule, nowUs: number): number {
  const owed = owedAt(rule.rateCount, words[at + OWED], words[at + SEEN_US], nowUs);
  return Math.max(0, rule.burst - owed / rule.ratePerUs);
}

function windowStats(key: Key, rule: Rule, nowUs: number): WindowStats[] {
  return rule.windows.map((window, index) => {
    const calls = windowUsed(key, rule, window, nowUs);
    const freeUs = windowReadyAt(key, rule, index, ONE, NOBODY, nowUs);
    return {
      calls,
      remaining: Math.max(0, window.count - calls),
      periodMs: window.perUs / 1000,
      nextFreeMs: Math.max(0, freeUs - nowUs) / 1000,
      oldestLeavesMs: Math.max(0, oldestLeavesUs(key, window, nowUs) - nowUs) / 1000,
    };
  });
}

/** Up to 10,000 hosts in order of first use, then all others added up. A million hosts take some 30 ms. */
export function allStats(engine: Engine, nowUs: number): Stats[] {
  const { keys, books } = engine;
  keys.sweepAll(nowUs);
  const rows: Stats[] = [];
  const rest = { ...books.folded };
  let restHosts = books.foldedHosts;
  let left = engine.options.keepStats > 0 ? LISTED_MOST : 0;
  let listedFlying = 0;
  let listedWaiting = 0;
  for (const [host, slot] of keys.hosts) {
    if (left > 0) {
      const stats = hostStats(engine, host, slot, nowUs);
      if (stats.asked === 0 && stats.granted === 0 && engine.slab.rests.get(slot)?.wasReset !== true) continue;
      rows.push(stats);
      left -= 1;
      listedFlying += stats.inFlight;
      listedWaiting += stats.waiting;
    } else if (engine.options.keepStats > 0) {
      if (keys.isUncleared(slot)) keys.bring(slot, host, true, nowUs);
      books.addTo(rest, slot);
      restHosts += 1;
    } else break;
  }
  const folded = restStats(rest, restHosts, books.flying - listedFlying, engine.queue.waiting - listedWaiting);
  if (folded.asked > 0) rows.push(folded);
  return rows;
}

/**
 * Every host with its row, in the same order, each as it is when it is asked for. No more hosts are looked at than there are at the beginning, so that it
 * ends however many come meanwhile; those that are there at the beginning come first.
 */
export function* eachStats(engine: Engine): Generator<Stats, void, undefined> {
  const { keys, books, options } = engine;
  if (options.keepStats > 0) {
    let left = keys.hosts.size;
    for (const [host, slot] of keys.hosts) {
      if (left-- === 0) break;
      const nowUs = engine.nowUs();
      keys.look(host, slot, true, nowUs);
      const stats = keys.hosts.get(host) === slot ? hostStats(engine, host, slot, nowUs) : undefined;
      // Who reads has to hear that a host was folded away before the next row.
      engine.flush();
      if (stats !== undefined && stats.asked > 0) yield stats;
    }
  }
  const isAll = options.keepStats === 0;
  const folded = restStats(
    { ...books.folded },
    books.foldedHosts,
    isAll ? books.flying : 0,
    isAll ? engine.queue.waiting : 0,
  );
  engine.flush();
  if (folded.asked > 0) yield folded;
}

function restStats(counts: Counts, foldedHosts: number, flying: number, waiting: number): Stats {
  return new Snapshot(FOLDED_HOST, counts, {
    lastRequestAt: undefined,
    lastUs: Number.NEGATIVE_INFINITY,
    inFlight: flying,
    waiting,
    cooldownMs: 0,
    tokens: undefined,
    windows: NO_WINDOWS,
    foldedHosts,
  });
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
    // Those in flight when the statistics were reset are in the books, and not in the numbers.
    const total = granted - counts.carried;
    this.totalRequests = total;
    this.delayedRequests = delayed;
    this.cancelledRequests = counts.cancelled;
    this.throttledRequests = counts.throttled;
    this.totalWaitMs = counts.waitedUs / 1000;
    this.averageWaitMs = delayed === 0 ? 0 : this.totalWaitMs / delayed;
    this.delayRate = total === 0 ? 0 : delayed / total;
    this.meanIntervalMs =
      total < 2 || present.lastUs === Number.NEGATIVE_INFINITY
        ? 0
        : Math.max(0, present.lastUs - counts.firstUs) / (total - 1) / 1000;
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
    if (present.lastRequestAt !== undefined && total > 0) this.lastRequestAt = present.lastRequestAt;
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
export function windowJson(window: WindowStats): Record<string, number> {
  const { calls, remaining, periodMs, nextFreeMs, oldestLeavesMs } = window;
  const json = { calls, remaining, period_ms: periodMs, next_free_ms: nextFreeMs };
  return oldestLeavesMs === undefined ? json : { ...json, oldest_leaves_ms: oldestLeavesMs };
}
