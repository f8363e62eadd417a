/** One line of `index.jsonl`: a URL that is finished for this run. */
export interface IndexLine {
  readonly url: string;
  /** Where redirects led. The same as `url` without one, and when nothing was answered. */
  readonly finalUrl: string;
  /** What the limiter counts it under. */
  readonly key: string;
  readonly outcome: Outcome;
  /** Of the last answer; absent when none came. */
  readonly status?: number;
  /** Those of `keptHeaders` that the last answer had. */
  readonly headers: Readonly<Record<string, string>>;
  /** Length of the body as written; 0 without a file. */
  readonly bytes: number;
  /** SHA-256 of the body, in hexadecimal. */
  readonly sha256?: string;
  /** All time spent waiting for a turn, repetitions and redirects included. */
  readonly waitedMs: number;
  /** When the last request for it started: ISO 8601, UTC, with milliseconds. Absent when none did. */
  readonly startedAt?: string;
  /** The same with microseconds, in milliseconds since 1970. */
  readonly startedAtMs?: number;
  /** From that start to the last byte. */
  readonly tookMs: number;
  /** Relative to the folder, with `/`; absent without a body. */
  readonly file?: string;
  /** Requests that were made for it, redirects included. */
  readonly attempt: number;
  /** What went wrong, in a sentence. */
  readonly error?: string;
  /** The requests before the last one: repetitions and redirects. Absent when there was one only. */
  readonly earlier?: readonly EarlierStart[];
}

/** A request that was followed by another one for the same URL. */
export interface EarlierStart {
  readonly url: string;
  readonly startedAtMs: number;
  readonly tookMs: number;
  readonly status?: number;
  readonly retryAfter?: string;
  /** The `Date` that came with it. */
  readonly date?: string;
}

/**
 * How a URL ended: `fetched` (2xx, the body is there), `unchanged` (304, the file from before stays), `refused` (another answer that
 * asking again does not change, or robots.txt), `failed` (network, timeout, 429, 5xx: the next run tries again).
 */
export type Outcome = "fetched" | "unchanged" | "refused" | "failed";

/** Headers of an answer that the index keeps. */
export const keptHeaders = [
  "content-type",
  "content-encoding",
  "etag",
  "last-modified",
  "retry-after",
  "cache-control",
  "date",
  "location",
] as const;
