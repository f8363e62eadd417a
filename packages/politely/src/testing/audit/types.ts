/** A moment in milliseconds, or `[fromMs, untilMs]`: some time inside, the end excluded. A stamp of whole seconds is `[t, t + 1000]`. */
export type TraceInstant = number | readonly [fromMs: number, untilMs: number];

/** One request, as a log tells it. All instants are of one timeline and are rounded to whole microseconds. */
export interface TraceEntry {
  /** Where it went. One of `url` and `host` is needed. */
  readonly url?: string | URL | undefined;
  readonly host?: string | undefined;
  readonly intent?: string | undefined;
  /** Further keys it was counted under. A name that the policy does not know is left out. */
  readonly scopes?: readonly string[] | undefined;
  readonly startedAtMs: TraceInstant;
  /** When its place was free again: the last byte. Absent: not known, and concurrency is not judged by it. An end before the start counts as absent. */
  readonly endedAtMs?: TraceInstant | undefined;
  /** When its status and headers were there. Default `endedAtMs`. */
  readonly answeredAtMs?: TraceInstant | undefined;
  readonly status?: number | undefined;
  /** How long the answer asked to stay away. 0, negative or not a number counts as absent. */
  readonly retryAfterMs?: number | undefined;
  /** The same as the header's text: seconds or a date. Used where `retryAfterMs` is absent. */
  readonly retryAfter?: string | undefined;
  /** Units taken from rate, window and quota, as `acquire` takes them. Default 1. */
  readonly cost?: number | Readonly<Record<string, number>> | undefined;
  /** It was never sent: it only took a place. Default false. */
  readonly unused?: boolean | undefined;
  /** Where the log says so. They come back in what proves a violation. */
  readonly line?: number | undefined;
  readonly source?: string | undefined;
}

/** How a trace is read. */
export interface AuditOptions {
  /** Each stamp may be wrong by so much in either direction: every instant becomes an interval. Default 0. */
  readonly slackMs?: number | undefined;
  /** Wall time, in milliseconds since 1970, at instant 0 of the trace, for calendar quotas and dates. Default 0: stamps are wall time. */
  readonly wallAtZeroMs?: number | undefined;
  /** How long an answer may have taken where neither `answeredAtMs` nor `endedAtMs` is known. Default 1,000. */
  readonly answerWithinMs?: number | undefined;
  /** How many entries of a violation are named. Default 10, at least 2: the first ones, and the last. */
  readonly maxProof?: number | undefined;
  /** How many entries a trace may have. Default 10,000,000; each takes about 60 bytes, and each host a few kilobytes. */
  readonly maxEntries?: number | undefined;
}

/** One entry of the trace, to be found again. */
export interface TraceMark {
  /** Its place in the trace, from 0. */
  readonly index: number;
  readonly startedAtMs: TraceInstant;
  readonly line: number | undefined;
  readonly source: string | undefined;
}

/** The kinds of limits that are judged. */
export type AuditLimit = "minDelay" | "rate" | "window" | "quota" | "concurrency";

/** The tightest violation of one limit of one key. */
export interface AuditViolation {
  readonly limit: AuditLimit;
  /** The limit as the policy has it: `"1/s burst 3"`. */
  readonly text: string;
  /** `"answer"`: it is kept by starts, but not when counted from answers, as the policy asks. */
  readonly countFrom: "start" | "answer";
  /** What the limit allows over the span: units, requests in flight, or for `minDelay` the least milliseconds between two starts. */
  readonly allowed: number;
  /** What was found, at the very least: units or requests; for `minDelay` the most milliseconds there can have been. */
  readonly found: number;
  /** The stretch of time that holds it. */
  readonly fromMs: number;
  readonly untilMs: number;
  /** Entries that prove it: the first ones and the last of `proofCount`. */
  readonly proof: readonly TraceMark[];
  readonly proofCount: number;
  /** All this in a sentence. */
  readonly says: string;
}

/** A start inside the time for which the host had asked to be left alone. */
export interface IgnoredRetryAfter {
  /** The request whose answer asked. */
  readonly asked: TraceMark;
  readonly retryAfterMs: number;
  /** The start that came too early. */
  readonly start: TraceMark;
  /** How much too early it was, at the very least. */
  readonly earlyMs: number;
  readonly says: string;
}

/** The most starts in any stretch of this length, (t, t + P]. With intervals: at least so many. */
export interface AuditPeak {
  readonly perMs: number;
  readonly starts: number;
  /** What the limit of this length allows, in starts of one unit; undefined where there is no limit of it. */
  readonly allowed: number | undefined;
  /** Where that was. */
  readonly fromMs: number;
}

/** How many answers had a status. */
export interface StatusCount {
  readonly status: number;
  readonly count: number;
}

/** What the trace did to one key. */
export interface AuditedKey {
  readonly kind: "host" | "intent" | "scope" | "global";
  /** The host, or what stands for it; the name of the scope; `"global"`. */
  readonly key: string;
  /** Only of kind `"intent"`. */
  readonly intent: string | undefined;
  /** Which entry of the policy it is held against: `"hosts.example.com"`, `"presets.arxiv"`, `"default"`, `"scopes"`, … */
  readonly origin: string;
  /** Its limits as the policy has them: `"window 10/s"`, `"concurrency 4"`. */
  readonly limits: readonly string[];
  /** False: the policy turns its limits off (a localhost, for instance), and nothing is judged. */
  readonly isLimited: boolean;
  /** Entries, those never sent not counted. */
  readonly requests: number;
  /** How many answers had each status, lowest first; those without one are not in it. */
  readonly statuses: readonly StatusCount[];
  /** The first and the last start. */
  readonly firstMs: number;
  readonly lastMs: number;
  /** For a second, and for the length of each limit, shortest first. */
  readonly peaks: readonly AuditPeak[];
  /** The most in flight at once, at the very least. Undefined: no end is known. */
  readonly peakConcurrency: number | undefined;
  readonly violations: readonly AuditViolation[];
  /** Only of kind `"host"`: how many starts ignored a Retry-After, and the earliest ones relative to what was asked. */
  readonly ignoredCount: number;
  readonly ignoredRetryAfters: readonly IgnoredRetryAfter[];
  /** No violation, and no Retry-After ignored. */
  readonly isClean: boolean;
}

/** What `auditTrace` found. */
export interface AuditReport {
  readonly isClean: boolean;
  readonly entries: number;
  /** Every key that the trace touched, in the order they came up. */
  readonly keys: readonly AuditedKey[];
}

/** Takes a trace entry by entry, for logs that are not in memory. */
export interface TraceAudit {
  /** Adds an entry. Throws `TypeError` or `RangeError` for one that makes no sense, and has then added nothing. */
  add(entry: TraceEntry): void;
  /** Judges what was added so far. */
  report(): AuditReport;
}
