import type { IncomingHttpHeaders } from "undici/types/header.js";
import type { SavedBody } from "./bodyFiles.js";
import type { GrantTimes } from "./grants.js";
import { type EarlierStart, type IndexLine, keptHeaders, type Outcome } from "./indexLine.js";
import type { KnownPage } from "./journal.js";
import type { PageAnswer } from "./pageHandler.js";
import { isThrottled } from "./throttled.js";
import { isPart } from "./verdict.js";

/** Enough for 100 repetitions with nine redirects each. */
const MAX_EARLIER = 1_000;
const NO_CONDITIONS = {};
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

/** One request for a page. */
export interface PageStart {
  readonly url: string;
  readonly granted: GrantTimes;
  /** When its last byte arrived or it failed, as far as that is known. */
  endedMs: number;
  status?: number;
  retryAfter?: string;
  /** The site's own, where it said when to come back. */
  date?: string | undefined;
}

/** One URL on its way: what has been asked and answered so far. */
export class Page {
  /** No request for it has started yet. */
  isWaiting = true;
  /** How often it was begun once more because its site wanted to be left alone. */
  repeats = 0;
  status: number | undefined = undefined;
  /** Whether its last answer asked to be left alone. */
  isThrottled = false;
  /** Whether it goes on at another host than its own. */
  isAway = false;
  #saving: Promise<SavedBody> | undefined = undefined;
  #saved: SavedBody | undefined = undefined;
  #headers: IncomingHttpHeaders = {};
  #rest: Promise<void> | undefined = undefined;
  #startCount = 0;
  #last: PageStart | undefined = undefined;
  #waitedMs = 0;
  readonly #beganMs = performance.now();
  readonly #earlier: PageStart[] = [];

  constructor(
    readonly url: string,
    readonly key: string,
    /** What it was when it was fetched before. */
    readonly known: KnownPage | undefined,
    /** `calm` of its lane when it was begun. */
    readonly calmBefore: number,
  ) {}

  /** Where its last request went. */
  get lastUrl(): string {
    return this.#last?.url ?? this.url;
  }

  /** Whether its last answer says that it is what it was, and was asked for that. */
  get isUnchanged(): boolean {
    return this.status === 304 && Object.keys(this.conditionsAt(this.lastUrl)).length > 0;
  }

  /** Whether its last answer had a part of it only. */
  get isPart(): boolean {
    return this.status !== undefined && isPart(this.status, this.#headers["content-range"]);
  }

  /** Where its last answer redirects to, as that says it; undefined when it does not. */
  get location(): string | undefined {
    return REDIRECTS.includes(this.status ?? 0) ? textOf(this.#headers.location) : undefined;
  }

  /** The same as a URL; undefined when it is none. */
  get redirectsTo(): string | undefined {
    const { location } = this;
    if (location === undefined) return undefined;
    return URL.canParse(location, this.lastUrl) ? new URL(location, this.lastUrl).href : undefined;
  }

  /** Headers for a request that goes to `url`: what came from there before is wanted only if it has changed. What a redirect leads to now may be another page. */
  conditionsAt(url: string): Readonly<Record<string, string>> {
    const { finalUrl, etag, lastModified } = this.known ?? {};
    if (finalUrl !== url) return NO_CONDITIONS;
    return {
      ...(typeof etag === "string" ? { "if-none-match": etag } : {}),
      ...(typeof lastModified === "string" ? { "if-modified-since": lastModified } : {}),
    };
  }

  /** How long it has waited for a request that begins at `beganMs`. */
  waitedUntil(beganMs: number): number {
    return Math.max(0, beganMs - (this.#last?.endedMs ?? this.#beganMs));
  }

  /** A request starts. */
  started(url: string, granted: GrantTimes): PageStart {
    if (this.#last !== undefined && this.#earlier.length < MAX_EARLIER) this.#earlier.push(this.#last);
    this.#waitedMs += this.waitedUntil(granted.beganMs);
    this.#startCount += 1;
    const start: PageStart = { url, granted, endedMs: granted.beganMs };
    this.#last = start;
    this.#headers = {};
    this.status = undefined;
    this.isThrottled = false;
    this.#saving = undefined;
    return start;
  }

  /** It was answered, and its body has arrived, or is about to where nobody needs it. */
  answered(start: PageStart, { status, headers, saved, rest }: PageAnswer): void {
    this.status = status;
    // Once: a date in it is of this moment.
    this.isThrottled = isThrottled(status, headers);
    this.#headers = headers;
    this.#saving = saved;
    this.#rest = rest;
    start.status = status;
    const retryAfter = textOf(headers["retry-after"]);
    if (retryAfter !== undefined) Object.assign(start, { retryAfter, date: textOf(headers.date) });
  }

  /** Resolves once its last answer is over, and the body on disk, if it has one. Rejects when it cannot be. */
  async saved(): Promise<void> {
    await this.#rest;
    this.#saved = await this.#saving;
  }

  /** Whether the body of its last answer is on disk, once it is saved. */
  get hasBody(): boolean {
    return this.#saved !== undefined;
  }

  /** The last byte of a request's answer is there, or it failed. */
  ended(start: PageStart): void {
    start.endedMs = performance.now();
  }

  /** What the index says of it. */
  line(outcome: Outcome, error: string | undefined): IndexLine {
    const { url, key, status, known } = this;
    const body = outcome === "unchanged" ? known : this.#saved;
    const last = this.#last;
    return {
      url,
      finalUrl: this.lastUrl,
      key,
      outcome,
      ...(status === undefined ? {} : { status }),
      headers: this.#keptHeaders(),
      bytes: body?.bytes ?? 0,
      ...(body === undefined ? {} : { sha256: body.sha256, file: body.file }),
      waitedMs: rounded(this.#waitedMs),
      ...(last === undefined
        ? {}
        : {
            startedAt: new Date(performance.timeOrigin + last.granted.startedMs).toISOString(),
            startedAtMs: wallMs(last.granted.startedMs),
          }),
      tookMs: last === undefined ? 0 : tookMs(last),
      attempt: this.#startCount,
      ...(error === undefined ? {} : { error }),
      ...(this.#earlier.length === 0 ? {} : { earlier: this.#earlier.map(earlierOf) }),
    };
  }

  #keptHeaders(): Record<string, string> {
    const kept: Record<string, string> = {};
    for (const name of keptHeaders) {
      const value = textOf(this.#headers[name]);
      if (value !== undefined) kept[name] = value;
    }
    return kept;
  }
}

function earlierOf(start: PageStart): EarlierStart {
  const { url, granted, status, retryAfter, date } = start;
  return {
    url,
    startedAtMs: wallMs(granted.startedMs),
    tookMs: tookMs(start),
    ...(status === undefined ? {} : { status }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(date === undefined ? {} : { date }),
  };
}

function tookMs({ granted, endedMs }: PageStart): number {
  return rounded(endedMs - granted.beganMs);
}

function textOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}

/** Milliseconds since 1970, with microseconds. */
function wallMs(monotonicMs: number): number {
  return rounded(performance.timeOrigin + monotonicMs);
}

function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
