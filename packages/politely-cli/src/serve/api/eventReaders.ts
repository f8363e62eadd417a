import type { ServerResponse } from "node:http";
import type { LimiterEvent } from "politely";
import type { Ticker } from "../../view/ticker.js";
import type { ServiceLimiter } from "../serviceLimiter.js";

/** Which events a reader wants. */
export interface EventFilter {
  /** The key of one domain. Default: all. */
  readonly key?: string | undefined;
  /** Default: all. */
  readonly types?: ReadonlySet<string> | undefined;
}

/** Bytes that may wait for one reader; beyond them it loses events. */
const BUFFER_BYTES = 262_144;
const BEAT_MS = 15_000;
/** A reader that takes nothing for so many beats is dropped. */
const DEAF_BEATS = 4;

/**
 * Those who read events as they happen.
 *
 * A reader that is slow loses events, and is told how many. The limiter is listened to only while somebody reads. A comment goes out each 15 s, so that
 * both sides notice when the other has gone.
 */
export class EventReaders {
  readonly #readers = new Set<Reader>();
  #stop: (() => void) | undefined = undefined;

  constructor(
    readonly limiter: ServiceLimiter,
    readonly ticker: Ticker,
    /** How many may read at once. */
    readonly most: number,
  ) {}

  get size(): number {
    return this.#readers.size;
  }

  /** Sends events to `response`, whose headers are written already, until it closes. */
  add(response: ServerResponse, filter: EventFilter): void {
    const reader = new Reader(response, filter);
    this.#readers.add(reader);
    // Not the response: those behind another one on the same connection hear nothing of its end.
    response.req.socket.once("close", () => this.#remove(reader));
    this.#stop ??= this.#listen();
  }

  /** Ends all streams. */
  close(): void {
    for (const reader of this.#readers) {
      reader.response.end();
      this.#remove(reader);
    }
  }

  #listen(): () => void {
    const unsubscribe = this.limiter.subscribe((event) => this.#tell(event));
    const stopBeat = this.ticker.every(BEAT_MS, () => {
      for (const reader of this.#readers) reader.beat();
    });
    return () => {
      unsubscribe();
      stopBeat();
    };
  }

  #remove(reader: Reader): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    this.#stop?.();
    this.#stop = undefined;
  }

  #tell(event: LimiterEvent): void {
    let text: string | undefined;
    for (const reader of this.#readers) {
      if (!reader.wants(event)) continue;
      text ??= `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
      reader.tell(text);
    }
  }
}

class Reader {
  #lostCount = 0;
  #deafBeats = 0;

  constructor(
    readonly response: ServerResponse,
    readonly filter: EventFilter,
  ) {}

  wants({ key, type }: LimiterEvent): boolean {
    const { filter } = this;
    if (filter.types !== undefined && !filter.types.has(type)) return false;
    return filter.key === undefined || key === filter.key || key === "*";
  }

  tell(text: string): void {
    if (this.response.writableLength > BUFFER_BYTES) {
      this.#lostCount++;
      return;
    }
    this.#confess();
    this.response.write(text);
  }

  beat(): void {
    if (this.response.writableLength > BUFFER_BYTES) {
      this.#deafBeats++;
      if (this.#deafBeats >= DEAF_BEATS) this.response.req.socket.destroy();
      return;
    }
    this.#deafBeats = 0;
    this.#confess();
    this.response.write(":\n\n");
  }

  /** Says how many events were lost, once there is room to say it. */
  #confess(): void {
    if (this.#lostCount === 0) return;
    this.response.write(`event: lost\ndata: {"count":${this.#lostCount}}\n\n`);
    this.#lostCount = 0;
  }
}
