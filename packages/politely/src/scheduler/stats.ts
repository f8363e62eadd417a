import { snapshot } from "../engine/stats.js";
import type { Stats, WindowStats } from "../observe/types.js";
import type { Engine } from "./engine.js";

/** The `host` of the row that adds up all hosts no longer kept. */
export const FOLDED_HOST = "*";

const NO_WINDOWS: readonly WindowStats[] = [];

/** The statistics of one row. */
export function hostStats(engine: Engine, host: string, slot: number, nowUs: number): Stats {
  const { ledger, queue, clock } = engine;
  // Counted before the books are read: looking may find that some have lapsed.
  const inFlight = ledger.inFlight(slot, nowUs);
  const lastUs = Math.max(ledger.lastUs(slot), engine.books.lastUs(slot));
  const hasStarted = lastUs !== Number.NEGATIVE_INFINITY;
  // Nothing is spread: this is made for every host there is.
  return snapshot(host, engine.books.read(slot) ?? { ...engine.books.folded }, {
    lastRequestAt: hasStarted ? new Date(clock.wall() - (nowUs - lastUs) / 1000) : undefined,
    lastUs,
    inFlight,
    waiting: queue.gateAt(slot)?.waiting ?? 0,
    cooldownMs: 0,

    windows: NO_WINDOWS,
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
      inFlight += ledger.inFlight(slot, nowUs);
    }
  }
  return snapshot(
    FOLDED_HOST,
    { ...books.folded },
    {
      lastRequestAt: undefined,
      lastUs: Number.NEGATIVE_INFINITY,
      inFlight,
      waiting: options.keepStats === 0 ? queue.waiting : 0,
      cooldownMs: 0,

      windows: NO_WINDOWS,
      foldedHosts: books.foldedHosts,
    },
  );
}
