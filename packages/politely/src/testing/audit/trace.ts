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

/** Beyond this, microseconds are no whole numbers any more. */
const maxMs = 8.64e15 / 1000;
const maxRetryAfterLength = 100;

/** The entries of a trace in columns: five numbers each. */
export class Trace {
  readonly #options: AuditOptions;
  readonly #slackUs: number;
  readonly #lo: number[] = [];
  readonly #hi: number[] = [];
  readonly #ended: number[] = [];
  readonly #line: number[] = [];
  readonly #source: (string | undefined)[] = [];
  readonly #unused = new Set<number>();

  constructor(options: AuditOptions) {
    this.#options = options;
    this.#slackUs = Math.round((options.slackMs ?? 0) * 1000);
  }

  get length(): number {
    return this.#lo.length;
  }

  /** Keeps an entry, and tells what its answer asked for. Throws `TypeError` for times that are none, and keeps nothing then. */
  add(entry: TraceEntry): Asked | undefined {
    const started = readInstant(entry.startedAtMs, "startedAtMs");
    const given = entry.endedAtMs === undefined ? undefined : readInstant(entry.endedAtMs, "endedAtMs");
    const ended = given !== undefined && given.hi >= started.lo ? given : undefined;
    const asked = this.#askedBy(entry, started, ended);
    if (entry.unused === true) this.#unused.add(this.length);
    this.#lo.push(started.lo);
    this.#hi.push(started.hi);
    this.#ended.push(ended === undefined ? Number.NaN : Math.max(ended.lo, started.lo));
    this.#line.push(entry.line ?? 0);
    this.#source.push(entry.source);
    return asked;
  }

  /** The earliest it can have started. */
  loOf(id: number): number {
    return this.#lo[id] - this.#slackUs;
  }

  /** The latest it can have started. */
  hiOf(id: number): number {
    return this.#hi[id] + this.#slackUs;
  }

  /** The earliest it can have ended; NaN where that is not known. */
  endOf(id: number): number {
    return this.#ended[id] - this.#slackUs;
  }

  isSent(id: number): boolean {
    return !this.#unused.has(id);
  }

  /** The entry as it was given, to be found again. */
  mark(id: number): TraceMark {
    const lo = this.#lo[id];
    const hi = this.#hi[id];
    const startedAtMs = lo === hi ? lo / 1000 : ([lo / 1000, (hi + 1) / 1000] as const);
    return { index: id, startedAtMs, line: this.#line[id] || undefined, source: this.#source[id] };
  }

  #askedBy(entry: TraceEntry, started: Span, ended: Span | undefined): Asked | undefined {
    const { retryAfterMs, retryAfter, answeredAtMs, status } = entry;
    if (retryAfterMs === undefined && retryAfter === undefined) return undefined;
    // Success, redirects and most refusals carry a Retry-After that is not about staying away from the host.
    const mayAsk = status === undefined || status >= 500 || [403, 408, 418, 420, 429].includes(status);
    if (entry.unused === true || !mayAsk) return undefined;
    const withinUs = Math.round((this.#options.answerWithinMs ?? 1000) * 1000);
    const unknown = ended ?? { lo: started.lo, hi: started.hi + withinUs };
    const { lo, hi } = answeredAtMs === undefined ? unknown : readInstant(answeredAtMs, "answeredAtMs");
    // Counted from the earliest moment, like every wait, so that a date stays that date.
    const wallMs = lo / 1000 + (this.#options.wallAtZeroMs ?? 0);
    const waitUs = Math.floor((retryAfterMs ?? readRetryAfter(retryAfter ?? "", wallMs)) * 1000);
    const answered = { lo: lo - this.#slackUs, hi: hi + this.#slackUs };
    return waitUs > 0 ? { id: this.length, answered, waitUs } : undefined;
  }
}

function readInstant(value: TraceInstant, name: string): Span {
  const isPair = Array.isArray(value);
  if (isPair && value.length !== 2)
    throw new TypeError(`${name} must be milliseconds, or [fromMs, untilMs]; got ${String(value)}.`);
  const [fromMs, untilMs] = (isPair ? value : [value, value]) as readonly [number, number];
  for (const ms of [fromMs, untilMs]) {
    if (typeof ms !== "number" || !(Math.abs(ms) <= maxMs))
      throw new TypeError(`${name} must be a number of milliseconds; got ${String(ms)}.`);
  }
  const lo = Math.round(fromMs * 1000);
  const hi = Math.round(untilMs * 1000) - (isPair ? 1 : 0);
  if (hi < lo) throw new TypeError(`${name} must end after it begins; got [${fromMs}, ${untilMs}].`);
  return { lo, hi };
}

/**
 * Reads the text of a Retry-After header: milliseconds from `wallMs` on, 0 where it says nothing usable.
 *
 * Seconds may have decimals; of several joined with commas the smallest counts, since the client may have gone by it.
 */
function readRetryAfter(text: string, wallMs: number): number {
  const value = text.trim();
  if (value.length > maxRetryAfterLength) return 0;
  const seconds = value.split(",").map((part) => (/^\d+(\.\d+)?$/.test(part.trim()) ? Number(part) : Number.NaN));
  if (!seconds.some(Number.isNaN)) return Math.min(...seconds) * 1000;
  // Without a name of a month it is no date of HTTP, and Date.parse takes far too much for one.
  const atMs = /^[A-Za-z]{3,9},? .*[A-Za-z]{3}.*\d$|GMT$/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(atMs) ? 0 : Math.max(0, atMs - wallMs);
}

/** The starts of one key by time, in columns. What was never sent is not among them. */
export interface Timeline {
  readonly length: number;
  readonly ids: Uint32Array;
  /** The earliest and the latest each can have started, in whole microseconds. Neither ever falls. */
  readonly lo: Float64Array;
  readonly hi: Float64Array;
}

/**
 * Sorts the starts among `all`, and leaves out every one whose interval reaches around another's.
 *
 * Then both ends of the intervals are in one order, and so, by exchanging two starts, is some best choice of times: looking at
 * the starts in this order is exact. Leaving out a start can only hide a violation, never make one. Logs with stamps of one
 * precision lose nothing.
 */
export function timelineOf(trace: Trace, all: Uint32Array): Timeline {
  const sent = all.filter((id) => trace.isSent(id));
  const byLo = sorted(
    sorted(sent, (id) => trace.hiOf(id)),
    (id) => trace.loOf(id),
  );
  let soonestHi = Number.POSITIVE_INFINITY;
  // From the end on: a start stays if it ends no later than all that begin after it.
  const isKept = byLo.toReversed().map((id) => {
    const isWithin = trace.hiOf(id) <= soonestHi;
    if (isWithin) soonestHi = trace.hiOf(id);
    return Number(isWithin);
  });
  const ids = byLo.filter((_, index) => isKept[byLo.length - 1 - index] === 1);
  const { length } = ids;
  return { length, ids, lo: columnOf(ids, (id) => trace.loOf(id)), hi: columnOf(ids, (id) => trace.hiOf(id)) };
}

/**
 * The same numbers, by what `keyOf` gives for each; those with the same key keep their order.
 *
 * Merges runs, from single ones on. Typed arrays sort slowly by a function, and by number only themselves.
 */
export function sorted(ids: Uint32Array, keyOf: (id: number) => number): Uint32Array {
  const keys = columnOf(ids, keyOf);
  const count = keys.length;
  if (keys.every((key, index) => index === 0 || keys[index - 1] <= key)) return ids;
  let order = ids.map((_, index) => index);
  let merged = new Uint32Array(count);
  for (let size = 1; size < count; size *= 2) {
    for (let from = 0; from < count; from += 2 * size) {
      const middle = Math.min(from + size, count);
      const until = Math.min(from + 2 * size, count);
      let left = from;
      let right = middle;
      for (let to = from; to < until; to++) {
        const isLeft = left < middle && (right >= until || keys[order[left]] <= keys[order[right]]);
        merged[to] = isLeft ? order[left++] : order[right++];
      }
    }
    [order, merged] = [merged, order];
  }
  return order.map((index) => ids[index]);
}

// A plain loop: `Float64Array.from` takes ten times as long.
function columnOf(ids: Uint32Array, keyOf: (id: number) => number): Float64Array {
  const column = new Float64Array(ids.length);
  for (let index = 0; index < column.length; index++) column[index] = keyOf(ids[index]);
  return column;
}
