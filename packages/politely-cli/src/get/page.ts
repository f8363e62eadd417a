import type { IncomingHttpHeaders } from "undici/types/header.js";
import type { SavedBody } from "./bodyFiles.js";
import type { GrantTimes } from "./grants.js";
import { type EarlierStart, type IndexLine, keptHeaders, type Outcome } from "./indexLine.js";
import type { KnownPage } from "./journal.js";
import type { PageAnswer } from "./pageHandler.js";

const MAX_EARLIER = 40;
/** Statuses that ask to be left alone. */
const THROTTLED: readonly number[] = [429, 418, 420, 509, 529];

/** One URL on its way: what has been asked and answered so far. */
export class Page {
  /** No request for it has started yet. */
  isWaiting = true;
  /** How often it was begun once more because its site wanted to be left alone. */
  repeats = 0;
  status: number | undefined = undefined;
  #saving: Promise<SavedBody> | undefined = undefined;
  #saved: SavedBody | undefined = undefined;
  #headers: IncomingHttpHeaders = {};
  #starts = 0;
  #started: GrantTimes | undefined = undefined;
  #startUrl: string;
  #endedMs: number;
  #waitedMs = 0;
  readonly #earlier: EarlierStart[] = [];

  constructor(
    readonly url: string,
    readonly key: string,
    /** What it was when it was fetched before. */
    readonly known: KnownPage | undefined,
    /** Answers of its host before it was begun that did not ask to be left alone. */
    readonly calmBefore: number,
  ) {
    this.#startUrl = url;
    this.#endedMs = performance.now();
  }

  /** Where its last request went. */
  get lastUrl(): string {
    return this.#startUrl;
  }

  /** Whether its last answer asked to be left alone: 429 and the like, and 503 with Retry-After. */
  get isThrottled(): boolean {
    const { status = 0 } = this;
    return THROTTLED.includes(status) || (status === 503 && this.#headers["retry-after"] !== undefined);
  }

  /** How long it has waited for a request that begins at `beganMs`. */
  waitedUntil(beganMs: number): number {
    return Math.max(0, beganMs - this.#endedMs);
  }

  /** A request starts. */
  started(url: string, started: GrantTimes): void {
    if (this.#started !== undefined && this.#earlier.length < MAX_EARLIER) {
      this.#earlier.push(this.#start(this.#started));
    }
    this.#waitedMs += this.waitedUntil(started.beganMs);
    this.#starts += 1;
    this.#started = started;
    this.#startUrl = url;
    this.#headers = {};
    this.status = undefined;
    this.#saving = undefined;
  }

  /** It was answered, and its body has arrived. */
  answered({ status, headers, saved }: PageAnswer): void {
    this.status = status;
    this.#headers = headers;
    this.#saving = saved;
  }

  /** Resolves once its body is on disk, if it has one. Rejects when it cannot be. */
  async saved(): Promise<void> {
    this.#saved = await this.#saving;
  }

  /** The last byte of a request's answer is there, or it failed. */
  ended(): void {
    this.#endedMs = performance.now();
  }

  /** What the index says of it. */
  line(outcome: Outcome, error: string | undefined): IndexLine {
    const { url, key, status, known } = this;
    const body = outcome === "unchanged" ? known : this.#saved;
    const started = this.#started;
    return {
      url,
      finalUrl: this.#startUrl,
      key,
      outcome,
      ...(status === undefined ? {} : { status }),
      headers: this.#keptHeaders(),
      bytes: body?.bytes ?? 0,
      ...(body === undefined ? {} : { sha256: body.sha256, file: body.file }),
      waitedMs: rounded(this.#waitedMs),
      ...(started === undefined
        ? {}
        : {
            startedAt: new Date(performance.timeOrigin + started.startedMs).toISOString(),
            startedAtMs: wallMs(started.startedMs),
          }),
      tookMs: started === undefined ? 0 : rounded(this.#endedMs - started.beganMs),
      attempt: this.#starts,
      ...(error === undefined ? {} : { error }),
      ...(this.#earlier.length === 0 ? {} : { earlier: this.#earlier }),
    };
  }

  #start({ startedMs, beganMs }: GrantTimes): EarlierStart {
    const { status } = this;
    const retryAfter = textOf(this.#headers["retry-after"]);
    return {
      url: this.#startUrl,
      startedAtMs: wallMs(startedMs),
      tookMs: rounded(this.#endedMs - beganMs),
      ...(status === undefined ? {} : { status }),
      ...(retryAfter === undefined ? {} : { retryAfter }),
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
