/** A new value for one of the cells of a change. */
export interface CellWrite {
  /** Which of the keys. */
  readonly index: number;
  /** Without U+0000, which some databases cut text at. */
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
 * together with the values or after them, and while nobody else can change them: a whole number of microseconds.
 */
export type ChangeCells<Answer> = (values: readonly (string | undefined)[], nowUs: number) => CellChange<Answer>;

/** A place that keeps strings under keys and can change several in one atomic step: with a lock, a transaction, or compare and swap. */
export interface Cells {
  readonly name: string;
  readonly timeline: "epoch" | "machine";
  /** Keys are at most 2,000 characters, without duplicates. Rejects with `StoreError`; a change that fails has changed nothing, or all of it. */
  change<Answer>(keys: readonly string[], change: ChangeCells<Answer>): Promise<Answer>;
}
