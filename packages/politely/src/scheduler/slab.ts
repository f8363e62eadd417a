// The state of a key is a row of numbers: three instants and debts, five small counts, then what its policy needs beyond
// that. Rows lie in chunks, so that growing copies nothing and a chunk of forgotten keys can be given back whole.

/**
 * Where the parts of every row are. Whoever needs them takes them out once, at the top of its file: an imported constant is read and checked at each use, one of the
 * file itself is part of its machine code.
 */
export const ROW = {
  /** In 8-byte words: the last start, the bucket's debt, and when that debt was noted. */
  LAST_US: 0,
  OWED: 1,
  SEEN_US: 2,
  /** In 4-byte words: which profile applies and what is out of the ordinary, then who is in flight (see flight.ts). */
  PROFILE: 6,
  FLIGHT: 7,
  FLIGHT_BEFORE: 8,
  EPOCH: 9,
  /** Units ever taken, modulo 2^32; so two starts never look alike. */
  UNITS: 10,
} as const;
const { LAST_US, SEEN_US, PROFILE } = ROW;
/** Statistics, where they are kept, follow in the words from here on (see books.ts), the first count in the half word before. */
const STATS_AT = 6;
const STATS_WORDS = 5;
/** Behind that, in 4-byte words: one handle for each window. */
const WINDOWS_BARE = 11;
const WINDOWS_BEHIND_STATS = 2 * (STATS_AT + STATS_WORDS);

/** Bits of PROFILE above the profile's number. A row with none of them set and a simple profile is decided by arithmetic alone. */
export const PROFILE_MASK = 0x00ff_ffff;
export const HAS_COOLDOWN = 1 << 24;
export const HAS_PAUSE = 1 << 25;
export const HAS_GATE = 1 << 26;
export const IS_RESERVED = 1 << 27;
export const IS_IDLE = 1 << 28;
export const HAS_SLOWDOWN = 1 << 29;

// Few and large, so that finding a row among a million does not miss the cache on the way to it; small enough for the last to waste little.
const CHUNK_BITS = 15;
const CHUNK_ROWS = 1 << CHUNK_BITS;
const CHUNK_MASK = CHUNK_ROWS - 1;
const FIRST_ROWS = 16;
const NONE = 0xffff_ffff;

/** Where each part of a row begins. */
export interface Layout {
  /** In 4-byte words: one handle per window. */
  readonly windowsAt: number;
  readonly windowCount: number;
  /** In 8-byte words: period index and units used; -1 when no rule has a quota. */
  readonly quotaAt: number;
  /** In 8-byte words; -1 when no statistics are kept. */
  readonly statsAt: number;
  /** In 8-byte words. */
  readonly stride: number;
}

/** The layout for rules with up to `windowCount` windows. */
export function layoutFor(windowCount: number, hasQuota: boolean, hasStats: boolean): Layout {
  const windowsAt = hasStats ? WINDOWS_BEHIND_STATS : WINDOWS_BARE;
  const quotaAt = Math.ceil((windowsAt + windowCount) / 2);
  return {
    windowsAt,
    windowCount,
    quotaAt: hasQuota ? quotaAt : -1,
    statsAt: hasStats ? STATS_AT : -1,
    stride: quotaAt + (hasQuota ? 2 : 0),
  };
}

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
export class Slab {
  readonly chunks: Chunk[] = [];
  /** Chunks that may have room; checked when used. */
  readonly #roomy: number[] = [];
  #live = 0;
  /** A row is given back, and may be another's from now on. */
  onRelease: (slot: number) => void = () => undefined;
  /** The layout's two numbers that every decision needs, kept at hand. */
  stride: number;
  statsAt: number;

  constructor(public layout: Layout) {
    this.stride = layout.stride;
    this.statsAt = layout.statsAt;
  }

  /** Rows in use. */
  get live(): number {
    return this.#live;
  }

  chunkOf(slot: number): Chunk {
    return this.chunks[slot >>> CHUNK_BITS];
  }

  /** First 8-byte word of the row within its chunk; the first 4-byte word is at twice that. */
  wordOf(slot: number): number {
    return (slot & CHUNK_MASK) * this.stride;
  }

  /** The number of the row's profile. */
  profileNumber(slot: number): number {
    return this.chunkOf(slot).halves[2 * this.wordOf(slot) + PROFILE] & PROFILE_MASK;
  }

  setProfileNumber(slot: number, number: number): void {
    const { halves } = this.chunkOf(slot);
    const at = 2 * this.wordOf(slot) + PROFILE;
    halves[at] = (halves[at] & ~PROFILE_MASK) | number;
  }

  hasFlag(slot: number, flag: number): boolean {
    return (this.chunkOf(slot).halves[2 * this.wordOf(slot) + PROFILE] & flag) !== 0;
  }

  setFlag(slot: number, flag: number, isSet: boolean): void {
    const { halves } = this.chunkOf(slot);
    const at = 2 * this.wordOf(slot) + PROFILE;
    halves[at] = isSet ? halves[at] | flag : halves[at] & ~flag;
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
    this.#live += 1;
    const word = row * chunk.stride;
    chunk.words.fill(0, word, word + chunk.stride);
    chunk.words[word + LAST_US] = Number.NEGATIVE_INFINITY;
    chunk.words[word + SEEN_US] = Number.NEGATIVE_INFINITY;
    return (index << CHUNK_BITS) | row;
  }

  /** Gives the row back; a chunk whose last row goes gives its memory back. */
  release(slot: number): void {
    this.onRelease(slot);
    const index = slot >>> CHUNK_BITS;
    const chunk = this.chunks[index];
    const row = slot & CHUNK_MASK;
    chunk.live -= 1;
    this.#live -= 1;
    if (!chunk.isRoomy) this.#roomy.push(index);
    chunk.isRoomy = true;
    if (chunk.live === 0) {
      this.chunks[index] = new Chunk(index === 0 ? FIRST_ROWS : 0, chunk.stride);
      return;
    }
    chunk.halves[2 * row * chunk.stride + PROFILE] = chunk.free;
    chunk.free = row;
  }

  /** Rewrites every row for a wider layout. */
  relayout(layout: Layout): void {
    const before = this.layout;
    this.layout = layout;
    this.stride = layout.stride;
    this.statsAt = layout.statsAt;
    this.chunks.forEach((chunk, index) => {
      const next = new Chunk(chunk.rows, layout.stride);
      for (let row = 0; row < chunk.used; row++) copyRow(chunk, before, next, layout, row);
      next.live = chunk.live;
      next.used = chunk.used;
      next.free = chunk.free;
      next.isRoomy = chunk.isRoomy;
      this.chunks[index] = next;
    });
  }

  #chunkWithRoom(): number {
    for (;;) {
      const index = this.#roomy.at(-1);
      if (index === undefined) {
        this.chunks.push(new Chunk(this.chunks.length === 0 ? FIRST_ROWS : CHUNK_ROWS, this.layout.stride));
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

/** Statistics are kept in both layouts or in neither. */
function copyRow(from: Chunk, before: Layout, to: Chunk, after: Layout, row: number): void {
  const source = row * before.stride;
  const target = row * after.stride;
  const windows = Math.min(before.windowCount, after.windowCount);
  to.halves.set(from.halves.subarray(2 * source, 2 * source + before.windowsAt + windows), 2 * target);
  if (before.quotaAt >= 0 && after.quotaAt >= 0) {
    to.words.set(from.words.subarray(source + before.quotaAt, source + before.quotaAt + 2), target + after.quotaAt);
  }
}
