import { PassThrough, type Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { machineTicker, type Ticker } from "../../view/ticker.js";
import type { HostFeed } from "./hostFeed.js";
import { HOST_STATES, type HostRow } from "./row.js";

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

  /**
   * Begins a stream: hello with the 2,000 most interesting hosts as they were last looked at, then changes. It ends by being destroyed, with `close`, or
   * because nobody reads it: what waits for a reader is bounded, and after a minute without a byte taken it is cut off.
   */
  join(): Readable {
    const stream = new PassThrough({ highWaterMark: BUFFER_BYTES });
    const rows = this.ranked();
    const totals = JSON.stringify(this.feed.totals());
    const pending = new Set(rows.slice(MAX_ROWS).map(({ domain }) => domain));
    const reader: Reader = { stream, pending, gone: new Set(), totals, quietTicks: 0, deafTicks: 0 };
    const { hostCount } = this.feed;
    const now = Math.round(this.feed.moment().wallMs);
    const opening: FeedOpening = { ...this.hello, now, hostCount, rows: rows.slice(0, MAX_ROWS) };
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

  /** The rows of all hosts that fit, the most interesting first: by state, then those with the most waiting, the fastest, the latest. */
  ranked(fits: (row: HostRow) => boolean = () => true): HostRow[] {
    const moment = this.feed.moment();
    return Array.from(this.feed.records(), (record) => record.row(moment))
      .filter(fits)
      .sort(byInterest);
  }

  /** Ends every stream. */
  close(): void {
    for (const { stream } of this.#readers) stream.end();
    this.#readers.clear();
    this.#stop();
  }

  async #tick(): Promise<void> {
    await this.#look();
    for (const reader of this.#readers) this.#send(reader);
  }

  /** Whoever looks, all readers hear of what was found. */
  async #look(): Promise<void> {
    const { changed, gone } = await this.feed.look();
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
      stream.write(message("rows", `[${this.#rowsFor(pending)}]`));
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

  #rowsFor(pending: Set<string>): string {
    const moment = this.feed.moment();
    const texts: string[] = [];
    for (const domain of pending) {
      if (texts.length >= MAX_ROWS) break;
      pending.delete(domain);
      // Forgotten since the last look: the next one tells.
      const record = this.feed.record(domain);
      if (record !== undefined) texts.push(JSON.stringify(record.row(moment)));
    }
    return texts.join(",");
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

function byInterest(a: HostRow, b: HostRow): number {
  return (
    HOST_STATES.indexOf(a.state) - HOST_STATES.indexOf(b.state) ||
    b.waiting - a.waiting ||
    b.perSecond - a.perSecond ||
    (b.lastAt ?? 0) - (a.lastAt ?? 0) ||
    (a.domain < b.domain ? -1 : 1)
  );
}

function message(event: string, data: string): string {
  return `event: ${event}\ndata: ${data}\n\n`;
}
