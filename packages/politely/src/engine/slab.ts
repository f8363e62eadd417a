import type { WallCalendar } from "../core/calendar.js";
import { type Key, Rest, ROW } from "../core/key.js";

// The blocks of all keys of a process are rows of numbers in a few large chunks, so that growing copies nothing, finding a row among a
// million misses no cache on the way, and the memory of forgotten keys can be given back.

const { LAST_US, SEEN_US, PROFILE } = ROW;

/** Statistics, where they are kept, follow the block in the words from here on (see books.ts). */
const STATS_AT = 5;
const WORDS_BARE = 5;
const WORDS_WITH_STATS = 10;

/** Bits of PROFILE above the profile's number. A row with none of them set may take the short way. */
export const PROFILE_MASK = 0x00ff_ffff;
export const HAS_REST = 1 << 24;
export const HAS_GATE = 1 << 25;
export const IS_IDLE = 1 << 26;
export const IS_OTHER = 1 << 27;
/** A host with its port, which counts with its host once no entry names it. */
export const HAS_PORT = 1 << 28;

const CHUNK_BITS = 15;
const CHUNK_ROWS = 1 << CHUNK_BITS;
const CHUNK_MASK = CHUNK_ROWS - 1;
const FIRST_ROWS = 16;
const NONE = 0xffff_ffff;

/** Rows that live and go together. */
export class Chunk {
  words = new Float64Array(0);
  halves = new Uint32Array(0);
  #live = 0;
  /** Rows handed out so far; those returned are linked from `free`. */
  #used = 0;
  #free = NONE;

  constructor(
    readonly stride: number,
    readonly firstRows: number,
  ) {}

  get isFull(): boolean {
    return this.#free === NONE && this.#used === CHUNK_ROWS;
  }

  /** A row of zeros but for LAST_US and SEEN_US, which say "never". */
  take(): number {
    let row = this.#free;
    if (row !== NONE) this.#free = this.halves[2 * row * this.stride + PROFILE];
    else {
      row = this.#used++;
      if (this.words.length < this.#used * this.stride) this.#resize(Math.max(this.firstRows, 2 * row));
    }
    this.#live += 1;
    const word = row * this.stride;
    this.words.fill(0, word, word + this.stride);
    this.words[word + LAST_US] = Number.NEGATIVE_INFINITY;
    this.words[word + SEEN_US] = Number.NEGATIVE_INFINITY;
    return row;
  }

  /** Takes a row back. With the last one all memory goes. */
  giveBack(row: number): void {
    this.#live -= 1;
    if (this.#live === 0) {
      this.#resize(0);
      this.#used = 0;
      this.#free = NONE;
      return;
    }
    this.halves[2 * row * this.stride + PROFILE] = this.#free;
    this.#free = row;
  }

  #resize(rows: number): void {
    const words = new Float64Array(rows * this.stride);
    if (rows > 0) words.set(this.words);
    this.words = words;
    this.halves = new Uint32Array(words.buffer);
  }
}

/** Rows by number. A number stays the same for the life of its row, and is used again afterwards. */
export class Slab implements Key {
  readonly chunks: Chunk[] = [];
  readonly rests = new Map<number, Rest>();
  readonly stride: number;
  /** In 8-byte words from the row's first; -1 when no statistics are kept. */
  readonly statsAt: number;
  // As a `Key` the slab is the row that `key` was last called with. Nothing keeps it across calls.
  words: Float64Array = new Float64Array(0);
  halves: Uint32Array = new Uint32Array(0);
  at = 0;
  rest: Rest | undefined = undefined;
  slot = -1;
  /** The chunk that new rows come from. */
  #open = 0;

  constructor(
    hasStats: boolean,
    readonly calendar: WallCalendar,
  ) {
    this.stride = hasStats ? WORDS_WITH_STATS : WORDS_BARE;
    this.statsAt = hasStats ? STATS_AT : -1;
  }

  /** The row as a key, valid until the next call. */
  key(slot: number): Slab {
    const { words, halves } = this.chunks[slot >>> CHUNK_BITS];
    this.slot = slot;
    this.words = words;
    this.halves = halves;
    this.at = (slot & CHUNK_MASK) * this.stride;
    this.rest = (halves[2 * this.at + PROFILE] & HAS_REST) === 0 ? undefined : this.rests.get(slot);
    return this;
  }

  needRest(): Rest {
    if (this.rest !== undefined) return this.rest;
    this.rest = new Rest();
    this.rests.set(this.slot, this.rest);
    this.halves[2 * this.at + PROFILE] |= HAS_REST;
    return this.rest;
  }

  dropRest(slot: number): void {
    if (!this.rests.delete(slot)) return;
    this.setFlag(slot, HAS_REST, false);
    if (this.slot === slot) this.rest = undefined;
  }

  chunkOf(slot: number): Chunk {
    return this.chunks[slot >>> CHUNK_BITS];
  }

  /** First 8-byte word of the row within its chunk; the first 4-byte word is at twice that. */
  wordOf(slot: number): number {
    return (slot & CHUNK_MASK) * this.stride;
  }

  half(slot: number, offset: number): number {
    return this.chunkOf(slot).halves[2 * this.wordOf(slot) + offset];
  }

  setProfile(slot: number, number: number): void {
    const { halves } = this.chunkOf(slot);
    const at = 2 * this.wordOf(slot) + PROFILE;
    halves[at] = (halves[at] & ~PROFILE_MASK) | number;
  }

  hasFlag(slot: number, flag: number): boolean {
    return (this.half(slot, PROFILE) & flag) !== 0;
  }

  setFlag(slot: number, flag: number, isSet: boolean): void {
    const { halves } = this.chunkOf(slot);
    const at = 2 * this.wordOf(slot) + PROFILE;
    halves[at] = isSet ? halves[at] | flag : halves[at] & ~flag;
  }

  allocate(): number {
    if (this.chunks[this.#open]?.isFull !== false) {
      this.#open = this.chunks.findIndex((chunk) => !chunk.isFull);
      if (this.#open < 0) {
        this.chunks.push(new Chunk(this.stride, this.chunks.length === 0 ? FIRST_ROWS : CHUNK_ROWS));
        this.#open = this.chunks.length - 1;
      }
    }
    return (this.#open << CHUNK_BITS) | this.chunks[this.#open].take();
  }

  release(slot: number): void {
    this.rests.delete(slot);
    this.chunkOf(slot).giveBack(slot & CHUNK_MASK);
  }
}
