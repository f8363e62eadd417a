import { setTimeout as delay } from "node:timers/promises";
import type { UrlQueue } from "./queue/urlQueue.js";

/** So many hosts have requests here at a time; further ones follow when some are through. */
const MAX_LANES = 10_000;
/** So many keys are asked for together. */
const KEYS_TOGETHER = 256;
/** A host that starts at once has more of its URLs ready than one that has to wait. */
const AHEAD_SLOW = 2;
const AHEAD_FAST = 16;
const FAST_MS = 50;
/** While there are other hosts, one has at most so many times as many requests under way as there are places left. So a single one leaves an eighth of them. */
const SHARE = 7;
/** So many URLs, of all hosts together, may be at hosts that redirects lead to without counting as begun. Each was asked for in vain when the run is stopped meanwhile. */
const MAX_AWAY = 256;
const FIRST_CHUNK = 4;
const MAX_CHUNK = 512;
/** A piece that is used up sooner than this was too small; one that lasts longer than ten times this too large. */
const CHUNK_MS = 200;
const POLL_MS = 250;
const RESCAN_MS = 1_000;

/** One host: what was taken from the list for it, and how many of these are under way. */
export interface Lane {
  readonly key: string;
  /** Taken from the list, not begun. */
  readonly buffer: string[];
  /** Begun, and waiting for their first start. */
  waiting: number;
  /** Begun, and not ended. */
  open: number;
  /** Of these, those that go on at another host: its limits are none of this one's business. */
  away: number;
  /** Requests for these under way. */
  inFlight: number;
  /** Ended, with an answer that did not ask to be left alone. */
  calm: number;
  /** So many may be open here: fewer after answers of "too many requests", and slowly more again after others. From 1 to the concurrency. */
  most: number;
}

/** What a feeder works with. */
export interface FeederOptions {
  readonly queue: UrlQueue;
  /** Others work on the same list: it is not over before theirs is done. */
  readonly isShared: boolean;
  /** The most that one host may have begun at once, and all hosts under way. */
  readonly concurrency: number;
  /** Who would wait too long is given up: of each host, one waits at a time, so that nobody is given up for those before him on the list. Default false. */
  readonly hasDeadlines?: boolean;
  /** Begins with a URL. A call of `started` follows for its first start, if there is one, and one of `ended`. */
  begin(url: string, lane: Lane): void;
  /** Prepares what was taken from the list, before any of it begins. Returns what is to be begun: all but what is under way here already. */
  taken(urls: readonly string[]): readonly string[];
  /** Resolves once the list knows how everything ended that has ended. */
  settled(): Promise<void>;
  /** Cannot go on. */
  failed(error: unknown): void;
}

/**
 * Takes URLs from the list when their hosts have use for them.
 *
 * Every host has a lane of its own, with two URLs waiting in the limiter (16 while it starts them at once) and a few more taken from the list; all others
 * stay in the queue. So a host that is slow or told to wait holds two requests, and never those of another host. One whose answers drag on
 * leaves places to the others, and has no more than its share while it has not answered at all. At most 10,000 hosts have lanes at a time.
 */
export class Feeder {
  readonly lanes = new Map<string, Lane>();
  readonly #chunks = new WeakMap<Lane, Chunk>();
  /** Lanes that could begin more and leave places to others, the longest first. */
  readonly #modest = new Set<Lane>();
  #inFlight = 0;
  #away = 0;
  #cursor = "";
  /** When the keys were last walked through. */
  #endedMs = Number.NEGATIVE_INFINITY;
  #isStopped = false;
  #isHeld = false;
  #wake: () => void = () => undefined;

  constructor(readonly options: FeederOptions) {}

  /** Resolves once nothing is left to begin, and what was begun has ended; after `stop`, once the latter. */
  async run(): Promise<void> {
    while (!this.#isStopped) {
      if (this.lanes.size < MAX_LANES) await this.#open();
      if (this.lanes.size === 0 && !this.#isStopped) {
        if (await this.#isOver()) return;
        await delay(POLL_MS);
        continue;
      }
      await this.#next();
    }
    while ([...this.lanes.values()].some(({ open }) => open > 0)) await this.#next();
  }

  /** Begins nothing more. */
  stop(): void {
    this.#isStopped = true;
    this.#wake();
  }

  /** Begins nothing while it is held. What has begun goes on. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (!isHeld) for (const lane of this.lanes.values()) this.#fill(lane);
  }

  /** A URL of this lane starts after a wait. */
  started(lane: Lane, waitedMs: number): void {
    lane.waiting -= 1;
    const chunk = this.#chunk(lane);
    chunk.isFast = waitedMs < FAST_MS;
    this.#fill(lane);
  }

  /** A request for a URL of this lane is under way. */
  sending(lane: Lane): void {
    lane.inFlight += 1;
    this.#inFlight += 1;
  }

  /** That request is over. */
  sent(lane: Lane): void {
    lane.inFlight -= 1;
    this.#inFlight -= 1;
    this.#fillModest();
  }

  /** A URL of this lane goes on at another host. False when too many do: then it counts as one of this host still. */
  leaves(lane: Lane): boolean {
    if (this.#away >= MAX_AWAY) return false;
    this.#away += 1;
    lane.away += 1;
    this.#fill(lane);
    return true;
  }

  /** One that went on at another host is back, to end or to be begun once more. */
  returns(lane: Lane): void {
    this.#away -= 1;
    lane.away -= 1;
  }

  /** A URL of this lane has ended. */
  ended(lane: Lane): void {
    lane.open -= 1;
    this.#fill(lane);
    if (this.#isStopped) this.#wake();
  }

  /** A URL of this lane, which has not ended yet, is to be begun once more, after those that were taken from the list. */
  again(lane: Lane, url: string): void {
    lane.buffer.push(url);
  }

  /**
   * The host has answered. One that says "too many requests" knows better than its policy how much it takes: half as many are begun then, and
   * one more each time that all of those were answered otherwise.
   */
  answered(lane: Lane, isThrottled: boolean): void {
    lane.most = isThrottled
      ? Math.max(1, lane.most / 2)
      : Math.min(this.options.concurrency, lane.most + 1 / Math.max(1, lane.most));
  }

  /** Sleeps until something has changed, or a moment has passed: somebody else may have given something back. */
  #next(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, POLL_MS);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Opens lanes for hosts that have none: goes on where it was last, and starts over at the end, once a second at most. */
  async #open(): Promise<void> {
    const isEarly = performance.now() - this.#endedMs < RESCAN_MS;
    if (this.#cursor === "" && isEarly && this.lanes.size > 0) return;
    do {
      const keys = await this.options.queue.keys(this.#cursor, KEYS_TOGETHER);
      this.#cursor = keys.length < KEYS_TOGETHER ? "" : keys[keys.length - 1];
      for (const key of keys) {
        if (this.#isStopped || this.lanes.has(key) || this.lanes.size >= MAX_LANES) continue;
        const lane: Lane = {
          key,
          buffer: [],
          waiting: 0,
          open: 0,
          away: 0,
          inFlight: 0,
          calm: 0,
          most: this.options.concurrency,
        };
        this.lanes.set(key, lane);
        this.#fill(lane);
      }
    } while (this.#cursor !== "" && this.lanes.size < MAX_LANES && !this.#isStopped);
    this.#endedMs = performance.now();
  }

  #fill(lane: Lane): void {
    const chunk = this.#chunk(lane);
    // Beginning a URL may start it at once, which comes back here.
    if (chunk.isFilling) return;
    chunk.isFilling = true;
    const ahead = (): number => (this.options.hasDeadlines === true ? 1 : chunk.isFast ? AHEAD_FAST : AHEAD_SLOW);
    const canBegin = (): boolean => !this.#isStopped && !this.#isHeld && lane.open - lane.away < Math.floor(lane.most);
    while (lane.buffer.length > 0 && lane.waiting < ahead() && canBegin()) {
      if (!this.#hasRoom(lane)) {
        this.#modest.add(lane);
        break;
      }
      const url = lane.buffer.shift();
      if (url === undefined) break;
      lane.waiting += 1;
      lane.open += 1;
      this.options.begin(url, lane);
    }
    chunk.isFilling = false;
    if (this.#isStopped || chunk.isTaking || lane.buffer.length > chunk.size / 4) return;
    if (!chunk.isDry) void this.#take(lane, chunk);
    else if (lane.open === 0 && lane.buffer.length === 0) this.#drop(lane);
  }

  /**
   * Whether a lane may begin one more and leave places to others. One that has nothing under way always may: it waits for its turn like all
   * others. One that has not answered yet may never do so: it has its share, as if there were one host more, and each answer is worth a place.
   */
  #hasRoom({ inFlight, waiting, calm }: Lane): boolean {
    const { concurrency } = this.options;
    const own = inFlight + waiting;
    if (own === 0 || this.lanes.size === 1) return true;
    if (own >= concurrency / (this.lanes.size + 1) + calm) return false;
    return own < SHARE * (concurrency - this.#inFlight - waiting);
  }

  /** A place is free, or there are fewer hosts: one of those who left places to others may go on. */
  #fillModest(): void {
    const [lane] = this.#modest;
    if (lane === undefined) return;
    this.#modest.delete(lane);
    this.#fill(lane);
  }

  async #take(lane: Lane, chunk: Chunk): Promise<void> {
    chunk.isTaking = true;
    const tookMs = performance.now() - chunk.takenMs;
    if (tookMs < CHUNK_MS) chunk.size = Math.min(MAX_CHUNK, chunk.size * 2);
    else if (tookMs > 10 * CHUNK_MS) chunk.size = Math.max(AHEAD_SLOW, chunk.size >> 1);
    chunk.takenMs = performance.now();
    try {
      const urls = await this.options.queue.claim(lane.key, chunk.size);
      chunk.isDry = urls.length < chunk.size;
      lane.buffer.push(...this.options.taken(urls));
    } catch (error) {
      chunk.isDry = true;
      this.options.failed(error);
    }
    chunk.isTaking = false;
    this.#fill(lane);
  }

  #drop(lane: Lane): void {
    this.lanes.delete(lane.key);
    this.#modest.delete(lane);
    this.#fillModest();
    if (this.lanes.size === 0 || this.#cursor !== "") this.#wake();
  }

  /** Whether the list is done. Nothing is under way here when this is asked. */
  async #isOver(): Promise<boolean> {
    const { queue, isShared } = this.options;
    if ((await queue.keys("", 1)).length > 0) return false;
    if (!isShared) return true;
    // Else what has just ended would be given back as if it had not, and asked for again by somebody else.
    await this.options.settled();
    // What is out under our name although nothing is under way here got lost with an answer of the store.
    await queue.close();
    await queue.renew();
    const { total, fetched, refused, failed } = await queue.counts();
    return fetched + refused + failed >= total;
  }

  #chunk(lane: Lane): Chunk {
    let chunk = this.#chunks.get(lane);
    if (chunk === undefined) {
      chunk = {
        size: FIRST_CHUNK,
        takenMs: performance.now(),
        isFast: true,
        isDry: false,
        isTaking: false,
        isFilling: false,
      };
      this.#chunks.set(lane, chunk);
    }
    return chunk;
  }
}

/** How a lane is supplied. */
interface Chunk {
  size: number;
  takenMs: number;
  isFast: boolean;
  /** The list had no more for it. */
  isDry: boolean;
  isTaking: boolean;
  isFilling: boolean;
}
