import { PassThrough, type Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { machineTicker, type Ticker } from "../../view/ticker.js";
import type { HostFeed } from "./hostFeed.js";
import { ranking } from "./ranking.js";
import type { HostRow } from "./row.js";
import { unhurried } from "./unhurried.js";

/** What every reader is told first, beside the hosts. */
export interface FeedHello {
  readonly version: string;
  /** Whether hosts can be paused and limits changed here. */
  readonly isWritable: boolean;
  /** When the service began, in milliseconds since 1970. */
  readonly startedAt: number;
}

/** How often hosts are looked at while somebody reads. */
const TICK_MS = 500;
/** Rows that one reader is sent in a tick. */
const MAX_ROWS = 2_000;
const MAX_READERS = 64;
/** Ticks without a word, after which a comment says that the line is alive: 15 s. */
const QUIET_TICKS = 30;
/** Ticks without taking anything, after which a reader is cut off: a minute. */
const DEAF_TICKS = 120;
/** Names that a reader may have to be told of beside the hosts that are kept. Beyond them it is cut off, and begins anew. */
const MAX_UNTOLD = 20_000;
/** Looks in a row that bring everything up to date: 20,000 hosts and some. */
const MAX_LOOKS = 12;
const BUFFER_BYTES = 1024 * 1024;

interface Reader {
  readonly stream: PassThrough;
  /** Names of hosts whose row it has not seen yet as it is now. A slow reader gets the newest row of each, never a longer list. */
  readonly pending: Set<string>;
  /** Names of hosts that are not kept any more, which it was not told yet. */
  readonly gone: Set<string>;
  totals: string;
  quietTicks: number;
  /** Ticks in a row in which it took nothing. */
  deafTicks: number;
}

/** The first event of the feed. */
export interface FeedOpening extends FeedHello {
  /** The service's clock at this moment, in milliseconds since 1970: the reader's may differ. */
  readonly now: number;
  /** All hosts that are kept; those not among `rows` follow. */
  readonly hostCount: number;
  readonly rows: readonly HostRow[];
}

/** Sends the feed to those who read it, as server-sent events. Nothing is looked at while nobody reads. */
export class FeedReaders {
  readonly #readers = new Set<Reader>();
  /** Rows as they are sent, by name, of this tick. */
  #texts: Map<string, string> = new Map();
  #stopTicking: (() => void) | undefined;

  constructor(
    readonly feed: HostFeed,
    readonly hello: FeedHello,
    /** Default the machine's time. */
    readonly ticker: Ticker = machineTicker,
  ) {}

  /** Whether one more may read. */
  get hasRoom(): boolean {
    return this.#readers.size < MAX_READERS;
  }

  /** The hosts that a stream begins with, the most interesting first: 2,000 at most. */
  async first(): Promise<readonly HostRow[]> {
    return (await ranking(this.feed, { limit: MAX_ROWS })).rows;
  }

  /**
   * Begins a stream: hello with the hosts of `first` as they were last looked at, then all others, then changes. It ends by being destroyed, with `close`, or
   * because nobody reads it: what waits for a reader is bounded, and after a minute without a byte taken it is cut off.
   */
  join(first: readonly Pick<HostRow, "domain">[]): Readable {
    const stream = new PassThrough({ highWaterMark: BUFFER_BYTES });
    const moment = this.feed.moment();
    const records = first.slice(0, MAX_ROWS).map(({ domain }) => this.feed.record(domain));
    const rows = records.flatMap((record) => (record === undefined ? [] : [record.row(moment)]));
    const totals = JSON.stringify(this.feed.totals());
    const pending = new Set<string>();
    for (const { domain } of this.feed.records()) pending.add(domain);
    for (const { domain } of rows) pending.delete(domain);
    const reader: Reader = { stream, pending, gone: new Set(), totals, quietTicks: 0, deafTicks: 0 };
    const { hostCount } = this.feed;
    const opening: FeedOpening = { ...this.hello, now: Math.round(moment.wallMs), hostCount, rows };
    stream.write(message("hello", JSON.stringify(opening)));
    stream.write(message("totals", totals));
    stream.once("close", () => this.#leave(reader));
    this.#readers.add(reader);
    this.#stopTicking ??= this.ticker.every(TICK_MS, () => void this.#tick());
    return stream;
  }

  /** Brings every row up to date, as far as that goes without waiting. Others have their turn between two looks. */
  async refresh(): Promise<void> {
    for (let looks = 0; looks < MAX_LOOKS; looks++) {
      await this.#look();
      if (!this.feed.hasMore) return;
      await setImmediate();
    }
  }

  /** Ends every stream. */
  close(): void {
    for (const { stream } of this.#readers) stream.end();
    this.#readers.clear();
    this.#stop();
  }

  async #tick(): Promise<void> {
    await this.#look();
    await this.#write();
    for (const reader of this.#readers) this.#send(reader);
  }

  /** Writes the rows that readers are told next: each once, however many read it, and others have their turn in between. */
  async #write(): Promise<void> {
    const wanted = new Set<string>();
    for (const { pending, stream } of this.#readers) {
      if (stream.writableNeedDrain) continue;
      for (const domain of firstOf(pending)) wanted.add(domain);
    }
    const moment = this.feed.moment();
    const texts = new Map<string, string>();
    this.#texts = texts;
    for await (const domain of unhurried(wanted)) {
      const record = this.feed.record(domain);
      if (record !== undefined) texts.set(domain, JSON.stringify(record.row(moment)));
    }
  }

  /** Whoever looks, all readers hear of what was found. */
  async #look(): Promise<void> {
    const { changed, gone } = await this.feed.look();
    // What was written before is out of date; it is told with the next tick.
    for (const { domain } of changed) this.#texts.delete(domain);
    const most = this.feed.hostCount + MAX_UNTOLD;
    for (const reader of this.#readers) {
      for (const { domain } of changed) {
        reader.gone.delete(domain);
        reader.pending.add(domain);
      }
      for (const domain of gone) {
        reader.pending.delete(domain);
        reader.gone.add(domain);
      }
      if (reader.pending.size + reader.gone.size > most) this.#cutOff(reader);
    }
  }

  #send(reader: Reader): void {
    const { stream, pending, gone } = reader;
    // Whoever does not keep up gets less often, and then what is newest.
    if (stream.writableNeedDrain) {
      reader.deafTicks += 1;
      if (reader.deafTicks >= DEAF_TICKS) this.#cutOff(reader);
      return;
    }
    reader.deafTicks = 0;
    reader.quietTicks += 1;
    if (gone.size > 0) {
      stream.write(message("gone", JSON.stringify({ domains: [...gone] })));
      gone.clear();
      reader.quietTicks = 0;
    }
    if (pending.size > 0) {
      const rows = this.#takeRows(pending);
      if (rows.length > 0) stream.write(message("rows", `[${rows.join(",")}]`));
      reader.quietTicks = 0;
    }
    const totals = JSON.stringify(this.feed.totals());
    if (totals !== reader.totals) {
      reader.totals = totals;
      stream.write(message("totals", totals));
      reader.quietTicks = 0;
    }
    if (reader.quietTicks < QUIET_TICKS) return;
    reader.quietTicks = 0;
    stream.write(": still here\n\n");
  }

  /** Takes those rows out that are told now. What came after the texts were written stays. */
  #takeRows(pending: Set<string>): string[] {
    const rows: string[] = [];
    for (const domain of firstOf(pending)) {
      const text = this.#texts.get(domain);
      // Forgotten since the last look: the next one tells.
      if (text !== undefined || this.feed.record(domain) === undefined) pending.delete(domain);
      if (text !== undefined) rows.push(text);
    }
    return rows;
  }

  #cutOff(reader: Reader): void {
    reader.stream.destroy();
    this.#leave(reader);
  }

  #leave(reader: Reader): void {
    this.#readers.delete(reader);
    if (this.#readers.size === 0) this.#stop();
  }

  #stop(): void {
    this.#stopTicking?.();
    this.#stopTicking = undefined;
  }
}

/** As many as a reader is sent in a tick. */
function firstOf(pending: ReadonlySet<string>): readonly string[] {
  const some: string[] = [];
  for (const domain of pending) {
    if (some.length >= MAX_ROWS) break;
    some.push(domain);
  }
  return some;
}

function message(event: string, data: string): string {
  return `event: ${event}\ndata: ${data}\n\n`;
}
