import { type Key, ROW } from "../core/key.js";
import { inFlight } from "../core/limits/places.js";
import { owedAt } from "../core/limits/rate.js";
import { type WindowView, windowViews } from "../core/limits/window.js";
import type { Rule } from "../core/rule.js";
import type { Stats, WindowStats } from "../observe/types.js";
import { addTo, type Counts } from "./books.js";
import type { Engine } from "./engine.js";

const { OWED, SEEN_US } = ROW;

/** The `host` of the row that adds up all hosts that have no row of their own. */
const FOLDED_HOST = "*";

/** `stats()` lists so many hosts; those beyond are added up, like the folded ones. */
const LISTED_MOST = 10_000;

/** What is true of a host at this moment, beside its counts. `lastUs`: the last start; minus Infinity where none is known. */
interface Present
  extends Pick<Stats, "inFlight" | "waiting">,
    Partial<Pick<Stats, "cooldownMs" | "windows" | "foldedHosts">> {
  readonly lastUs: number;
  readonly lastRequestAt?: Date | undefined;
  readonly tokens?: number | undefined;
}

/** The statistics of one row. */
export function hostStats(
  { books, clock, keys, local, queue, slab }: Engine,
  host: string,
  slot: number,
  nowUs: number,
): Stats {
  keys.bring(slot, host, nowUs);
  // Before the books are read: looking may find that some have lapsed.
  local.lapse(slot, nowUs);
  const rule = keys.ruleOf(slot);
  const key = slab.key(slot);
  const lastUs = keys.lastUs(slot);
  const hasStarted = lastUs !== Number.NEGATIVE_INFINITY;
  return snapshot(host, books.read(slot), {
    lastUs,
    lastRequestAt: hasStarted ? new Date(clock.wall() - (nowUs - lastUs) / 1000) : undefined,
    inFlight: inFlight(key, rule, nowUs),
    waiting: queue.waitingAt(slot),
    cooldownMs: Math.max(0, (key.rest?.holds?.incident?.untilUs ?? nowUs) - nowUs) / 1000,
    tokens: rule.rateCount === 0 ? undefined : tokensOf(key, rule, nowUs),
    windows: windowStats(rule, windowViews(key, rule, nowUs), nowUs),
  });
}

/** The row that adds up all hosts without one of their own; none where there are none. */
function foldedStats(counts: Counts, inFlight: number, waiting: number, foldedHosts: number): Stats[] {
  const lastUs = Number.NEGATIVE_INFINITY;
  const stats = snapshot(FOLDED_HOST, counts, { lastUs, inFlight, waiting, foldedHosts });
  return stats.asked > 0 ? [stats] : [];
}

function tokensOf({ words, at }: Key, rule: Rule, nowUs: number): number {
  const owed = owedAt(rule.rateCount, words[at + OWED], words[at + SEEN_US], nowUs);
  return Math.max(0, rule.burst - owed / rule.ratePerUs);
}

/** Statistics of the windows of a rule, of what is known of each. */
export function windowStats({ windows }: Rule, views: readonly WindowView[], nowUs: number): WindowStats[] {
  return views.map(({ used, freeUs, leavesUs }, index) => ({
    calls: used,
    remaining: Math.max(0, windows[index].count - used),
    periodMs: windows[index].perUs / 1000,
    nextFreeMs: Math.max(0, freeUs - nowUs) / 1000,
    oldestLeavesMs: Math.max(0, leavesUs - nowUs) / 1000,
  }));
}

/** Up to 10,000 hosts in order of first use, then all others added up: what remains of all hosts together without those listed. */
export function allStats(engine: Engine, nowUs: number): Stats[] {
  const { books, keys, queue, slab } = engine;
  keys.sweepAll(nowUs);
  const rows: Stats[] = [];
  const isLong = slab.statsAt >= 0 && keys.hostCount > LISTED_MOST;
  const counts = { ...(isLong ? books.all : books.folded) };
  let unseen = isLong ? keys.hostCount : 0;
  let inFlight = books.flying;
  let { waiting } = queue;
  for (const [host, slot] of slab.statsAt < 0 ? [] : keys.hosts()) {
    if (rows.length === LISTED_MOST) break;
    const stats = hostStats(engine, host, slot, nowUs);
    if (isLong) {
      addTo(counts, books.read(slot), -1);
      unseen -= 1;
    }
    if (books.isBlank(slot) && stats.waiting === 0) continue;
    rows.push(stats);
    inFlight -= stats.inFlight;
    waiting -= stats.waiting;
  }
  return [...rows, ...foldedStats(counts, inFlight, waiting, books.foldedHosts + unseen)];
}

/**
 * Every host with its row, in the same order, each as it is when it is asked for. No more hosts are looked at than there are at the beginning, so that it
 * ends however many come meanwhile; those that are there at the beginning come first.
 */
export function* eachStats(engine: Engine): Generator<Stats, void, undefined> {
  const { books, events, keys, queue, slab } = engine;
  const hasRows = slab.statsAt >= 0;
  let left = hasRows ? keys.hostCount : 0;
  for (const [host, slot] of keys.hosts()) {
    if (left-- === 0) break;
    const nowUs = engine.nowUs();
    keys.look(host, slot, nowUs);
    const stats = keys.rows.get(host) === slot ? hostStats(engine, host, slot, nowUs) : undefined;
    // Who reads has to hear that a host was folded away before the next row.
    events.flush();
    if (stats !== undefined && !(books.isBlank(slot) && stats.waiting === 0)) yield stats;
  }
  yield* foldedStats({ ...books.folded }, hasRows ? 0 : books.flying, hasRows ? 0 : queue.waiting, books.foldedHosts);
}

/** What JSON calls a field where that is not the same words in snake case. */
const JSON_NAMES: Readonly<Record<string, string>> = {
  host: "domain",
  totalWaitMs: "total_wait_time_ms",
  averageWaitMs: "average_wait_time_ms",
  lastRequestAt: "last_request_time",
};

/** What statistics can do: not one of their own fields, so that a copy has the numbers alone. */
const ABLE: Pick<Stats, "toJSON" | "toSnapshot"> & ThisType<Stats> = {
  toSnapshot() {
    return {
      domain: this.host,
      total_requests: this.totalRequests,
      delayed_requests: this.delayedRequests,
      total_wait_time_ms: Math.round(this.totalWaitMs),
      average_wait_time_ms: Math.round(this.averageWaitMs),
      last_request_time: this.lastRequestAt?.toISOString() ?? null,
      delay_rate: this.delayRate,
    };
  },
  toJSON() {
    return statsJson(this);
  },
};

/** Statistics as they were when asked for. */
export function snapshot(host: string, counts: Counts, { lastUs, ...present }: Present): Stats {
  const { granted, carried, delayed, refused, cancelled, expired, lapsed, throttled, waitedUs, firstUs } = counts;
  const { inFlight, waiting, windows = [], lastRequestAt, tokens, ...rest } = present;
  // Those in flight when the statistics were reset are in the books, and not in the numbers.
  const total = granted - carried;
  const hasMean = total >= 2 && lastUs !== Number.NEGATIVE_INFINITY;
  const totalWaitMs = waitedUs / 1000;
  const numbers: Omit<Stats, "toJSON" | "toSnapshot"> = {
    host,
    totalRequests: total,
    delayedRequests: delayed,
    cancelledRequests: cancelled,
    throttledRequests: throttled,
    totalWaitMs,
    averageWaitMs: delayed === 0 ? 0 : totalWaitMs / delayed,
    delayRate: total === 0 ? 0 : delayed / total,
    meanIntervalMs: hasMean ? Math.max(0, lastUs - firstUs) / (total - 1) / 1000 : 0,
    inFlight,
    waiting,
    cooldownMs: 0,
    windows,
    asked: granted + refused + cancelled + expired + waiting,
    granted,
    refused,
    cancelled,
    expired,
    released: granted - lapsed - inFlight,
    lapsed,
    ...rest,
    ...(lastRequestAt !== undefined && total > 0 ? { lastRequestAt } : {}),
    ...(tokens === undefined ? {} : { tokens }),
    ...(windows.length === 0 ? {} : { window: windows[0] }),
  };
  return Object.assign(Object.create(ABLE) as Stats, numbers);
}

/** Statistics with the names that they have in JSON. */
export function statsJson(stats: Partial<Stats>): Record<string, unknown> {
  const { window: _, ...rest } = stats;
  return inSnakeCase({ lastRequestAt: null, tokens: null, ...rest, windows: rest.windows?.map(inSnakeCase) });
}

function inSnakeCase(fields: object): Record<string, unknown> {
  const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [JSON_NAMES[name] ?? snake(name), value]));
}
