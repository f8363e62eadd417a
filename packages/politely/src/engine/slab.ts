import { type Calendars, type Key, type LogSpace, Rest, ROW } from "../core/key.js";

// The blocks of all keys of a process are rows of numbers in a few large pieces, so that growing copies nothing, finding a row among a
// million misses no cache on the way, and a piece of forgotten keys can be given back whole.

const { LAST_US, SEEN_US, PROFILE, LOG } = ROW;

/** Statistics, where they are kept, follow the block in the words from here on (see books.ts). */
export const STATS_AT = 6;
const WORDS_BARE = 6;
const WORDS_WITH_STATS = 11;

/** Bits of PROFILE above the profile's number. A row with none of them set and a simple profile is decided by arithmetic alone. */
export const PROFILE_MASK = 0x00ff_ffff;
export const HAS_REST = 1 << 24;
export const HAS_GATE = 1 << 25;
export const HAS_LOG = 1 << 26;
export const IS_IDLE = 1 << 27;
export const IS_OTHER = 1 << 28;

const CHUNK_BITS = 15;
const CHUNK_ROWS = 1 << CHUNK_BITS;
const CHUNK_MASK = CHUNK_ROWS - 1;
const FIRST_ROWS = 16;
const NONE = 0xffff_ffff;

/** Rows that live and go together. */
export class Chunk {
  words: Float64Array;
  halves: Uint32Array;
  live = 0;
  /** Rows handed out so far; those returned are linked from `free`. */
  used = 0;
  free = NONE;
  /** It is on the list of chunks that may have room. */
  isRoomy = true;

  constructor(
    rows: number,
    readonly stride: number,
  ) {
    this.words = new Float64Array(rows * stride);
    this.halves = new Uint32Array(this.words.buffer);
  }

  get rows(): number {
    return this.words.length / this.stride;
  }

  /** Moves the rows into a new block of `rows`. */
  resize(rows: number): void {
    const words = new Float64Array(rows * this.stride);
    words.set(this.words.subarray(0, Math.min(words.length, this.words.length)));
    this.words = words;
    this.halves = new Uint32Array(words.buffer);
  }
}

/** Rows by number. A number stays the same for the life of its row, and is used again afterwards. */
export class Slab implements Key {
  readonly chunks: Chunk[] = [];
  readonly rests = new Map<number, Rest>();
  readonly logs = new Logs();
  readonly stride: number;
  /** In 8-byte words from the row's first; -1 when no statistics are kept. */
  readonly statsAt: number;
  /** Rows in use. */
  live = 0;
  // As a `Key` the slab is the row that `at` was last called with. Nothing keeps it across calls.
  words: Float64Array = new Float64Array(0);
  halves: Uint32Array = new Uint32Array(0);
  at = 0;
  rest: Rest | undefined = undefined;
  slot = -1;
  /** Chunks that may have room; checked when used. */
  readonly #roomy: number[] = [];

  constructor(
    hasStats: boolean,
    readonly calendar: Calendars,
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

  /** Notes whether the row has a log by now, for those who decide by a look at its flags. */
  noteLog(): void {
    const at = 2 * this.at;
    if (this.halves[at + LOG] !== 0) this.halves[at + PROFILE] |= HAS_LOG;
    else this.halves[at + PROFILE] &= ~HAS_LOG;
  }

  /** A row of zeros but for LAST_US and SEEN_US, which say "never". */
  allocate(): number {
    const index = this.#chunkWithRoom();
    const chunk = this.chunks[index];
    let row: number;
    if (chunk.free === NONE) row = chunk.used++;
    else {
      row = chunk.free;
      chunk.free = chunk.halves[2 * row * chunk.stride + PROFILE];
    }
    chunk.live += 1;
    this.live += 1;
    const word = row * chunk.stride;
    chunk.words.fill(0, word, word + chunk.stride);
    chunk.words[word + LAST_US] = Number.NEGATIVE_INFINITY;
    chunk.words[word + SEEN_US] = Number.NEGATIVE_INFINITY;
    return (index << CHUNK_BITS) | row;
  }

  /** Gives the row back; a chunk whose last row goes gives its memory back. */
  release(slot: number): void {
    this.rests.delete(slot);
    const index = slot >>> CHUNK_BITS;
    const chunk = this.chunks[index];
    const row = slot & CHUNK_MASK;
    chunk.live -= 1;
    this.live -= 1;
    if (!chunk.isRoomy) this.#roomy.push(index);
    chunk.isRoomy = true;
    if (chunk.live === 0) {
      this.chunks[index] = new Chunk(index === 0 ? FIRST_ROWS : 0, chunk.stride);
      return;
    }
    chunk.halves[2 * row * chunk.stride + PROFILE] = chunk.free;
    chunk.free = row;
  }

  #chunkWithRoom(): number {
    for (;;) {
      const index = this.#roomy.at(-1);
      if (index === undefined) {
        this.chunks.push(new Chunk(this.chunks.length === 0 ? FIRST_ROWS : CHUNK_ROWS, this.stride));
        this.#roomy.push(this.chunks.length - 1);
        continue;
      }
      const chunk = this.chunks[index];
      if (chunk.free !== NONE || chunk.used < chunk.rows) return index;
      if (chunk.rows < CHUNK_ROWS) chunk.resize(index === 0 ? chunk.rows * 2 : CHUNK_ROWS);
      else {
        this.#roomy.pop();
        chunk.isRoomy = false;
      }
    }
  }
}

const FIRST_WORDS = 64;

/** Pieces of one growing block, used again by size. The block is given back when no piece is in use. */
export class Logs implements LogSpace {
  memory: Float64Array = new Float64Array(FIRST_WORDS);
  // Word 0 is never given out, so that a place of 0 can mean "none".
  #end = 1;
  #live = 0;
  readonly #free = new Map<number, number[]>();

  allocate(words: number): number {
    this.#live += 1;
    const reused = this.#free.get(words)?.pop();
    if (reused !== undefined) {
      this.memory.fill(0, reused, reused + words);
      return reused;
    }
    const at = this.#end;
    this.#end += words;
    if (this.#end > this.memory.length) {
      const memory = new Float64Array(Math.max(this.#end, Math.ceil(this.memory.length * 1.5)));
      memory.set(this.memory);
      this.memory = memory;
    }
    return at;
  }

  release(at: number, words: number): void {
    this.#live -= 1;
    if (this.#live === 0) {
      this.memory = new Float64Array(FIRST_WORDS);
      this.#end = 1;
      this.#free.clear();
      return;
    }
    const free = this.#free.get(words);
    if (free === undefined) this.#free.set(words, [at]);
    else free.push(at);
  }
}
