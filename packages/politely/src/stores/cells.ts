/** A new value for one of the cells of a change. */
export interface CellWrite {
  /** Which of the keys. */
  readonly index: number;
  /** Well-formed text without U+0000, which some databases cut text at. */
  readonly value: string;
  /** From the instant of the change on; then the cell may vanish. Never 0. */
  readonly ttlUs: number;
}

/** What comes out of a change. */
export interface CellChange<Answer> {
  /** Empty when nothing changes. */
  readonly writes: readonly CellWrite[];
  readonly answer: Answer;
}

/**
 * Works out new values from old ones. Pure: it may be called several times before one result is kept.
 *
 * `values` has an entry for each key, undefined where there is none or it has expired. `nowUs` is the store's time, read
 * together with the values or after them, and while nobody else can change them: a whole number of microseconds. `errorUs`: by how much it may be behind; absent
 * where the store has a clock that can be read.
 */
export type ChangeCells<Answer> = (
  values: readonly (string | undefined)[],
  nowUs: number,
  errorUs?: number,
) => CellChange<Answer>;

/** How processes tell each other whose turn has come. A call that gets lost delays somebody until it looks again by itself. */
export interface Bell {
  ring(askers: readonly string[]): void;
  /** Calls `onWake` with each asker of that process, until the returned function is called. */
  readonly listen: (process: string, onWake: (asker: string) => void) => () => void;
}

/** A place that keeps strings under keys and can change several in one atomic step: with a lock, a transaction, or compare and swap. */
export interface Cells {
  readonly name: string;
  readonly timeline: "epoch" | "machine";
  /** The wall clock of this process, in milliseconds since 1970, where the store has none. Default `Date.now`. */
  readonly wallMs?: () => number;
  /** Tells other processes whose turn has come, and hears of it. Absent where a store cannot: then askers look again by themselves. */
  readonly bell?: Bell;
  /** As of a store. */
  readonly clockErrorUs?: number;
  readonly isContended?: boolean;
  /** Keys are at most 2,000 characters, without duplicates. Rejects with `StoreError`; a change that fails has changed nothing, or all of it. */
  change<Answer>(keys: readonly string[], change: ChangeCells<Answer>): Promise<Answer>;
}
