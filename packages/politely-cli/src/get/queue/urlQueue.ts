/** A URL on a list, and what the limiter counts it under. */
export interface QueuedUrl {
  readonly url: string;
  readonly key: string;
}

/** How a URL of the list ended: `failed` ones are handed out again by the next `begin`, the others are finished. */
export type QueueOutcome = "fetched" | "refused" | "failed";

/** A URL that needs no further request in this round. */
export interface FinishedUrl extends QueuedUrl {
  readonly outcome: QueueOutcome;
}

/** How many URLs are where. `total` = `waiting` + out + `fetched` + `refused` + `failed`. */
export interface QueueCounts {
  readonly total: number;
  readonly waiting: number;
  readonly fetched: number;
  readonly refused: number;
  readonly failed: number;
}

/** Counts of one key. */
export interface KeyCounts extends QueueCounts {
  readonly key: string;
}

/** Which URLs `begin` puts on the list again. */
export interface BeginOptions {
  /**
   * Finished ones too: a new round begins. While one that was begun so has something left, that one goes on instead, so that workers who all ask
   * for it share a round, and one that was broken off is not begun anew. `"if-finished"`: only when nothing is left to do.
   */
  readonly again: boolean | "if-finished";
}

/** Whose URLs `renew` looks after. */
export interface RenewOptions {
  /** Lets the URLs of workers wait again that have not renewed in time. Default true. */
  readonly takesOver?: boolean;
}

/**
 * A list of URLs that workers take from. Each URL is handed out to one worker at a time.
 *
 * A worker holds what it took by a lease, which `renew` makes longer. When a worker has not renewed in time, what it held is handed out
 * again; what it finished stays finished, whoever held it. Methods reject with what the store's client throws. Batches have at most 1,000 URLs.
 */
export interface UrlQueue {
  /** Puts URLs on the list, at its end. Those that are on it stay as they are. */
  add(urls: readonly QueuedUrl[]): Promise<void>;
  /** To be called once all URLs are added: those that failed before wait again. True when finished URLs are to be asked for again. */
  begin(options: BeginOptions): Promise<boolean>;
  /** Keys with waiting URLs that come after `after` in the order of their bytes; fewer than `count` means that the end is reached. */
  keys(after: string, count: number): Promise<readonly string[]>;
  /** Takes up to `count` waiting URLs of a key, in the order of the list. */
  claim(key: string, count: number): Promise<readonly string[]>;
  /** Finishes URLs, whoever holds them. Those that are finished or not on the list stay as they are. */
  finish(urls: readonly FinishedUrl[]): Promise<void>;
  /** Makes the lease of this worker longer, and lets the URLs of dead workers wait again. Resolves to how many those were. */
  renew(options?: RenewOptions): Promise<number>;
  counts(): Promise<QueueCounts>;
  /** Counts of the keys with the most URLs left, at most `count`. */
  countsByKey(count: number): Promise<readonly KeyCounts[]>;
  /** Gives back what this worker still holds, and leaves. The list stays. */
  close(): Promise<void>;
  /** Says what to do when the store comes back after it was away. Absent where it never is. */
  onReturn?(options: ReturnOptions): void;
}

/** What to do when a store comes back: it may have forgotten what it was told last, or everything. */
export interface ReturnOptions {
  /** Runs before anything else is asked, with a queue that does not wait for the store, and again after it has failed. */
  restore(queue: UrlQueue): Promise<void>;
  /** For so long nobody is taken for dead, in milliseconds: the others could not say that they live. */
  readonly graceMs: number;
}

/** How a queue is opened. */
export interface QueueOptions {
  /** Which list: lists with different names share nothing. 1 to 100 letters, digits, `-`, `_` or `.`. */
  readonly name: string;
  /** Nobody else has this name: it stands for this process. */
  readonly worker: string;
  /** How long after its last `renew` a worker counts as dead, in milliseconds. Each worker's own counts for it. */
  readonly leaseMs: number;
}

/** States of a URL as the stores write them. */
export const state = { waiting: 0, out: 1, fetched: 2, failed: 3, refused: 4, parked: 5 } as const;
