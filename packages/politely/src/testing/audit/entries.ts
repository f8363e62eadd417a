import { Numbers } from "./numbers.js";
import { readRetryAfter } from "./readRetryAfter.js";
import type { AuditOptions, TraceEntry, TraceInstant, TraceMark } from "./types.js";

/** An instant in whole microseconds, both ends included; `lo` equals `hi` where it is known exactly. */
export interface Span {
  readonly lo: number;
  readonly hi: number;
}

/** What an answer asked for: to stay away from its instant on for so long. */
export interface Asked {
  readonly id: number;
  readonly answered: Span;
  readonly waitUs: number;
}

const LINES = 2 ** 36;
const MAX_SOURCES = 2 ** 16;
const MAX_MS = 8.64e15 / 1000;

/** An entry that was read and has not been kept yet. */
export interface ReadEntry {
  readonly started: Span;
  /** The earliest its place can have been free; NaN where that is not known. */
  readonly endedUs: number;
  readonly place: number;
  readonly isUnused: boolean;
  readonly asked: Omit<Asked, "id"> | undefined;
}

/** The entries of a trace in columns: four numbers each. */
export class Entries {
  readonly #options: AuditOptions;
  readonly #lo = new Numbers();
  readonly #hi = new Numbers();
  readonly #ended = new Numbers();
  readonly #place = new Numbers();
  readonly #sources: string[] = [""];
  readonly #sourceNumbers = new Map<string, number>();
  readonly #unused = new Set<number>();
  readonly #slackUs: number;

  constructor(options: AuditOptions) {
    this.#options = options;
    this.#slackUs = Math.round((options.slackMs ?? 0) * 1000);
  }

  get length(): number {
    return this.#lo.length;
  }

  /** Reads an entry without keeping it. Throws `TypeError` for times that are none. */
  read(entry: TraceEntry): ReadEntry {
    const started = readInstant(entry.startedAtMs, "startedAtMs");
    const ended = entry.endedAtMs === undefined ? undefined : readInstant(entry.endedAtMs, "endedAtMs");
    const isEndKnown = ended !== undefined && ended.hi >= started.lo;
    return {
      started,
      endedUs: isEndKnown ? Math.max(ended.lo, started.lo) : Number.NaN,
      place: this.#placeOf(entry),
      isUnused: entry.unused === true,
      asked: this.#askedBy(entry, started, isEndKnown ? ended : undefined),
    };
  }

  /** Keeps an entry; returns its number. */
  keep(entry: ReadEntry): number {
    const id = this.length;
    this.#lo.push(entry.started.lo);
    this.#hi.push(entry.started.hi);
    this.#ended.push(entry.endedUs);
    this.#place.push(entry.place);
    if (entry.isUnused) this.#unused.add(id);
    return id;
  }

  /** The earliest it can have started. */
  loOf(id: number): number {
    return this.#lo.at(id) - this.#slackUs;
  }

  /** The latest it can have started. */
  hiOf(id: number): number {
    return this.#hi.at(id) + this.#slackUs;
  }

  /** The earliest it can have ended; NaN where that is not known. */
  endOf(id: number): number {
    return this.#ended.at(id) - this.#slackUs;
  }

  isUnused(id: number): boolean {
    return this.#unused.has(id);
  }

  /** The entry as it was given, to be found again. */
  mark(id: number): TraceMark {
    const lo = this.#lo.at(id);
    const hi = this.#hi.at(id);
    const place = this.#place.at(id);
    const line = place % LINES;
    const source = Math.floor(place / LINES);
    return {
      index: id,
      startedAtMs: lo === hi ? lo / 1000 : [lo / 1000, (hi + 1) / 1000],
      line: line === 0 ? undefined : line,
      source: source === 0 ? undefined : this.#sources[source],
    };
  }

  #placeOf({ line = 0, source }: TraceEntry): number {
    if (!Number.isSafeInteger(line) || line < 0 || line >= LINES)
      throw new TypeError(`line must be a whole number from 1; got ${line}.`);
    if (source === undefined) return line;
    let number = this.#sourceNumbers.get(source);
    if (number === undefined) {
      if (this.#sources.length >= MAX_SOURCES) throw new RangeError(`A trace has at most ${MAX_SOURCES} sources.`);
      number = this.#sources.push(source) - 1;
      this.#sourceNumbers.set(source, number);
    }
    return number * LINES + line;
  }

  #askedBy(entry: TraceEntry, started: Span, ended: Span | undefined): Omit<Asked, "id"> | undefined {
    if (entry.unused === true || !mayAsk(entry.status)) return undefined;
    if (entry.retryAfterMs === undefined && entry.retryAfter === undefined) return undefined;
    const withinUs = Math.round((this.#options.answerWithinMs ?? 1000) * 1000);
    const answered =
      entry.answeredAtMs === undefined
        ? (ended ?? { lo: started.lo, hi: started.hi + withinUs })
        : readInstant(entry.answeredAtMs, "answeredAtMs");
    const slackUs = this.#slackUs;
    const wide = { lo: answered.lo - slackUs, hi: answered.hi + slackUs };
    // Counted from the earliest moment, like every wait below, so that a date stays that date.
    const wallMs = answered.lo / 1000 + (this.#options.wallAtZeroMs ?? 0);
    const waitMs = entry.retryAfterMs ?? readRetryAfter(entry.retryAfter ?? "", wallMs);
    const waitUs = Math.floor(waitMs * 1000);
    return waitUs > 0 ? { answered: wide, waitUs } : undefined;
  }
}

/** Success, redirects and most refusals carry a Retry-After that is not about staying away from the host. */
function mayAsk(status: number | undefined): boolean {
  return status === undefined || status >= 500 || [403, 408, 418, 420, 429].includes(status);
}

function readInstant(value: TraceInstant, name: string): Span {
  if (typeof value === "number") {
    checkMs(value, name);
    const us = Math.round(value * 1000);
    return { lo: us, hi: us };
  }
  if (!Array.isArray(value) || value.length !== 2)
    throw new TypeError(`${name} must be milliseconds, or [fromMs, untilMs]; got ${String(value)}.`);
  const [fromMs, untilMs] = value as readonly [number, number];
  checkMs(fromMs, name);
  checkMs(untilMs, name);
  const lo = Math.round(fromMs * 1000);
  const hi = Math.round(untilMs * 1000) - 1;
  if (hi < lo) throw new TypeError(`${name} must end after it begins; got [${fromMs}, ${untilMs}].`);
  return { lo, hi };
}

function checkMs(value: number, name: string): void {
  // Beyond this, microseconds are no whole numbers any more.
  if (typeof value !== "number" || !(Math.abs(value) <= MAX_MS))
    throw new TypeError(`${name} must be a number of milliseconds; got ${String(value)}.`);
}
