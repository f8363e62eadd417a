import type { HostRecord } from "./hostRecord.js";

/** How long a turn is. */
const TURN_MS = 500;
/** Nothing is put further ahead: it is looked at then, and put ahead again. So there are at most 121 turns. */
const FAR_TURNS = 120;

/** Remembers which hosts are to be looked at again, and when, in turns of half a second. A host has one turn at most. */
export class DueTurns {
  readonly #turns = new Map<number, Set<HostRecord>>();

  /** Puts a host into the turn after `atMs`, instead of the one it had. Infinity: into none. */
  put(record: HostRecord, atMs: number, nowMs: number): void {
    this.drop(record);
    if (atMs === Number.POSITIVE_INFINITY) return;
    const thisTurn = Math.floor(nowMs / TURN_MS);
    const turn = Math.min(Math.floor(atMs / TURN_MS) + 1, thisTurn + FAR_TURNS);
    record.dueTurn = turn;
    const records = this.#turns.get(turn);
    if (records === undefined) this.#turns.set(turn, new Set([record]));
    else records.add(record);
  }

  drop(record: HostRecord): void {
    this.#turns.get(record.dueTurn)?.delete(record);
    record.dueTurn = Number.NEGATIVE_INFINITY;
  }

  /** Takes out the hosts whose turn has come. */
  *take(nowMs: number): Iterable<HostRecord> {
    const thisTurn = Math.floor(nowMs / TURN_MS);
    for (const [turn, records] of this.#turns) {
      if (turn > thisTurn) continue;
      this.#turns.delete(turn);
      for (const record of records) {
        record.dueTurn = Number.NEGATIVE_INFINITY;
        yield record;
      }
    }
  }
}
