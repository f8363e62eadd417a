import { PassThrough, type Readable } from "node:stream";
import type { HostFeed } from "./hostFeed.js";
import type { HostRecord } from "./hostRecord.js";
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
/** Looks in a row that bring everything up to date: 20,000 hosts and some. */
const MAX_LOOKS = 12;
const BUFFER_BYTES = 1024 * 1024;

interface Reader {
  readonly stream: PassThrough;
  /** Hosts whose row it has not seen yet as it is now. A slow reader gets the newest row of each, never a longer list. */
  readonly pending: Set<HostRecord>;
  totals: string;
  quietTicks: number;
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
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(
    readonly feed: HostFeed,
    readonly hello: FeedHello,
  ) {}

  /** Whether one more may read. */
  get hasRoom(): boolean {
    return this.#readers.size < MAX_READERS;
  }

  /** Begins a stream: hello with the 2,000 most interesting hosts, then changes. It ends by being destroyed, or with `close`. */
  async join(): Promise<Readable> {
    await this.refresh();
    const stream = new PassThrough({ highWaterMark: BUFFER_BYTES });
    const rows = this.ranked();
    const moment = this.feed.moment();
    const first = rows.slice(0, MAX_ROWS).map((record) => record.row(moment));
    const totals = JSON.stringify(this.feed.totals());
    const reader: Reader = { stream, pending: new Set(rows.slice(MAX_ROWS)), totals, quietTicks: 0 };
    const { hostCount } = this.feed;
    const now = Math.round(moment.wallMs);
    const opening: FeedOpening = { ...this.hello, now, hostCount, rows: first };
    stream.write(message("hello", JSON.stringify(opening)));
    stream.write(message("totals", totals));
    stream.once("close", () => this.#leave(reader));
    this.#readers.add(reader);
    this.#timer ??= setInterval(() => void this.#tick(), TICK_MS).unref();
    return stream;
  }

  /** Brings every row up to date, as far as that goes without waiting. */
  async refresh(): Promise<void> {
    for (let looks = 0; looks < MAX_LOOKS; looks++) {
      await this.#look();
      if (!this.feed.hasMore) return;
    }
  }

  /** All hosts, the most interesting first: by state, then those with the most waiting, the fastest, the latest. */
  ranked(): HostRecord[] {
    const moment = this.feed.moment();
    const rows = Array.from(this.feed.records(), (record) => ({ record, row: record.row(moment) }));
    return rows.sort((a, b) => byInterest(a.row, b.row)).map(({ record }) => record);
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
    for (const { pending, stream } of this.#readers) {
      for (const record of changed) pending.add(record);
      if (gone.length > 0) stream.write(message("gone", JSON.stringify({ domains: gone })));
    }
  }

  #send(reader: Reader): void {
    const { stream, pending } = reader;
    // Whoever does not keep up gets less often, and then what is newest.
    if (stream.writableNeedDrain) return;
    reader.quietTicks += 1;
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

  #rowsFor(pending: Set<HostRecord>): string {
    const moment = this.feed.moment();
    const texts: string[] = [];
    for (const record of pending) {
      if (texts.length >= MAX_ROWS) break;
      pending.delete(record);
      // Forgotten meanwhile: the reader was told that it is gone.
      if (this.feed.record(record.domain) === record) texts.push(JSON.stringify(record.row(moment)));
    }
    return texts.join(",");
  }

  #leave(reader: Reader): void {
    this.#readers.delete(reader);
    if (this.#readers.size === 0) this.#stop();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
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
