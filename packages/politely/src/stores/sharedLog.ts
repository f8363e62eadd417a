import { StoreError } from "../errors.js";
import type { CellWrite, ChangeCells } from "./cells.js";

// The memory is a head of 64 bytes and a log in a ring. The log is a sequence of cells: each has a key, its new value, and when that expires.
// Cells are appended, round and round, and never changed; each thread reads those of the others, and keeps the latest ones in a map of its
// own. A position is the number of bytes ever appended before it, so positions only grow. Before the end of the log comes round to a cell
// that still counts, the cell is appended again.
//
// One word of the head, the state, holds both the end of the log and the number of the turn that is on. A thread that has taken its turn
// reads what is new, decides, and appends all its cells in three steps:
// 1. It marks the state: it is copying now. This fails if its turn was taken away.
// 2. It copies the cells to the end of the log, where nothing lies that still counts.
// 3. It moves the end past them. This fails if its turn was taken away. Nobody reads the cells before.
//
// So a thread may end or stand still anywhere: its turn is taken away, and what it has not appended has not happened. While it copies
// it is given more time, since its bytes could fall on those of the next thread.
//
// A memory of zeros is an empty one. So there is nothing to set up, and no race about who does it.

const HEAD_BYTES = 64;
/** Everything in the ring begins at a multiple of this. */
const BLOCK_BYTES = 8;
/** Of a cell: bytes of its key and bytes of its value (4 bytes each), its position and its expiry (8 each). Then come key and value in UTF-8. */
const CELL_HEAD_BYTES = 24;

/** "pol" and the version of the layout, in the first 4 bytes of the head. */
const MAGIC = 0x706f_6c00;
const VERSION = 2;
// What the words of 8 bytes of the head are.
const TURNS = 1;
const STATE = 2;
const TAIL = 3;

/** The lower bits of the state: a number for each turn, 0 when it is nobody's. The others are the end of the log, in blocks. */
export const TURN_MASK = 0xffffn;
const TURN_BITS = 16n;
/** The lowest bit: whoever has the turn copies. */
export const COPYING = 1n;

/** What one memory has at most. */
export const MOST_BYTES = 256 * 1_024 * 1_024;
/** Share of the ring that cells may fill. The rest keeps the work of moving them small. */
const FILL_SHARE = 5 / 8;
/** Share of the ring, of that, which new cells leave to those that are there: what is known goes on, and a 429 is heard. */
const KNOWN_SHARE = 1 / 32;
/** Largest share of the ring that one change may take. As much is always free, so that any cell can be moved. */
const CHANGE_SHARE = 1 / 8;
/** So many cells are read, or moved, in one turn at most: less than a millisecond. */
const READ_AT_ONCE = 500;
const MOVED_AT_ONCE = 64;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** A cell as this thread has read or written it. */
interface Cell {
  readonly key: string;
  readonly value: string;
  readonly expiresUs: number;
  /** With its head. */
  readonly bytes: number;
  /** Its position. */
  readonly at: number;
}

/** The cells in a shared memory, as this thread knows them, and turns to change them. */
export class SharedLog {
  private readonly heads: BigUint64Array;
  private readonly ring: Uint8Array;
  /** The state as this thread has set it last. */
  private state = 0n;
  /** Up to where this thread has read. Before the tail: it has to read everything. */
  private at = -1;
  /** The position before which no cell counts. What lies there may be overwritten. */
  private tail = 0;
  private readonly cells = new Map<string, Cell>();
  private cellBytes = 0;
  /** Bytes of this thread, in which cells are put together and taken apart. */
  private scratch = new Uint8Array(4_096);

  /** Looks at a memory as one of ours, and makes it one if it is all zeros. Throws `StoreError` when it holds something else. */
  constructor(
    buffer: SharedArrayBuffer,
    private readonly nowUs: () => number,
  ) {
    claim(new Int32Array(buffer));
    const ringBytes = Math.floor((buffer.byteLength - HEAD_BYTES) / BLOCK_BYTES) * BLOCK_BYTES;
    this.heads = new BigUint64Array(buffer, 0, HEAD_BYTES / 8);
    this.ring = new Uint8Array(buffer, HEAD_BYTES, ringBytes);
  }

  /** How things stand. The same number later means that nothing was appended since, and that the same turn is still on. */
  look(): bigint {
    return Atomics.load(this.heads, STATE);
  }

  /** Takes the turn if things still stand as in `state`, also when that is the turn of another thread. */
  take(state: bigint): boolean {
    const turn = Atomics.add(this.heads, TURNS, 2n) & TURN_MASK & ~COPYING;
    this.state = (state & ~TURN_MASK) | (turn || 2n);
    return this.exchange(state, this.state);
  }

  /**
   * Carries out a change, if this thread has the turn, and ends the turn. False: nothing was changed, since the turn was taken away, or there
   * is more to read or to move first. It takes another turn.
   *
   * Rejects with what `change` throws, and with `StoreError` when the memory is full or damaged. Then nothing was changed.
   */
  carryOut<Answer>(
    keys: readonly string[],
    change: ChangeCells<Answer>,
    resolve: (answer: Answer) => void,
    reject: (error: unknown) => void,
  ): boolean {
    try {
      if (this.read()) {
        const nowUs = this.nowUs();
        const found = keys.map((key) => this.cells.get(key));
        const values = found.map((cell) => (cell !== undefined && cell.expiresUs > nowUs ? cell.value : undefined));
        const { writes, answer } = change(values, nowUs);
        if (writes.length === 0 ? this.end() : this.write(keys, writes, nowUs)) {
          resolve(answer);
          return true;
        }
      }
    } catch (error) {
      if (this.end()) {
        reject(error);
        return true;
      }
    }
    this.end();
    return false;
  }

  /** Ends the turn. False when it was taken away. */
  private end(): boolean {
    const isEnded = this.exchange(this.state, this.state & ~TURN_MASK);
    // Others may have overwritten what it was reading.
    if (!isEnded) this.at = -1;
    return isEnded;
  }

  private exchange(before: bigint, after: bigint): boolean {
    return Atomics.compareExchange(this.heads, STATE, before, after) === before;
  }

  /** Reads what is new. False when there is more. */
  private read(): boolean {
    const end = Number(this.state >> TURN_BITS) * BLOCK_BYTES;
    this.tail = Number(Atomics.load(this.heads, TAIL)) * BLOCK_BYTES;
    if (this.tail > end || this.at > end || end - this.tail > this.ring.length) throw damaged(end);
    if (this.at < this.tail) {
      this.cells.clear();
      this.cellBytes = 0;
      this.at = this.tail;
    }
    for (let count = 0; this.at < end && count < READ_AT_ONCE; count++) {
      const { at } = this;
      const { key, value, expiresUs, bytes } = this.scan(at, end);
      this.put({ key, value: decoder.decode(value), expiresUs, bytes, at });
      this.at += bytes;
    }
    // So many bytes cannot all count.
    if (this.cellBytes > this.ring.length) this.dropExpired(this.nowUs());
    return this.at === end;
  }

  /** Reads the cell at a position. Its value is valid until the next use of the scratch bytes. */
  private scan(at: number, end: number) {
    const { ring } = this;
    const start = at % ring.length;
    const numbers = new DataView(ring.buffer, HEAD_BYTES);
    const valueAt = CELL_HEAD_BYTES + numbers.getUint32(start, true);
    const until = valueAt + numbers.getUint32(start + 4, true);
    const bytes = aligned(until);
    if (bytes > end - at || numbers.getFloat64((start + 8) % ring.length, true) !== at) throw damaged(at);
    const scratch = this.scratchOf(bytes);
    const split = Math.min(bytes, ring.length - start);
    scratch.set(ring.subarray(start, start + split));
    scratch.set(ring.subarray(0, bytes - split), split);
    const expiresUs = numbers.getFloat64((start + 16) % ring.length, true);
    const key = decoder.decode(scratch.subarray(CELL_HEAD_BYTES, valueAt));
    return { key, value: scratch.subarray(valueAt, until), expiresUs, bytes };
  }

  /** Appends new values if there is room for them, and makes room otherwise. False when it did, or when the turn was taken away. */
  private write(keys: readonly string[], writes: readonly CellWrite[], nowUs: number): boolean {
    const cells = this.compose(
      writes.map(({ index, value, ttlUs }) => ({ key: keys[index], value, expiresUs: nowUs + ttlUs })),
    );
    this.checkRoom(cells, nowUs);
    const needed = lengthOf(cells) + CHANGE_SHARE * this.ring.length;
    if (this.at + needed <= this.tail + this.ring.length) return this.append(cells, 0n);
    this.makeRoom(nowUs);
    return false;
  }

  /** Throws when there is no room for new values. */
  private checkRoom(cells: readonly Cell[], nowUs: number, isSwept = false): void {
    const length = lengthOf(cells);
    if (length > this.ring.length * CHANGE_SHARE)
      throw tooSmall(`A change of ${length} bytes is too large for this shared memory.`, length / CHANGE_SHARE);
    const known = cells.map(({ key }) => this.cells.get(key));
    const replaced = known.reduce((sum, cell) => sum + (cell?.bytes ?? 0), 0);
    const share = known.includes(undefined) ? FILL_SHARE - KNOWN_SHARE : FILL_SHARE;
    // What takes no more than before is always let in: it may be what gives something back.
    if (length <= replaced || this.cellBytes - replaced + length <= this.ring.length * share) return;
    if (isSwept) {
      const count = `${this.cells.size} cells of ${this.cellBytes} bytes still count`;
      const words = `The shared memory is full: ${count}, and a change of ${length} bytes finds no room.`;
      throw tooSmall(words, 2 * (this.cellBytes + length));
    }
    this.dropExpired(nowUs);
    this.checkRoom(cells, nowUs, true);
  }

  private dropExpired(nowUs: number): void {
    for (const cell of this.cells.values()) if (cell.expiresUs <= nowUs) this.remove(cell);
  }

  /** Moves the tail on by some cells, and appends again those that count. */
  private makeRoom(nowUs: number): void {
    for (let count = 0; this.tail < this.at && count < MOVED_AT_ONCE; count++) {
      const { tail } = this;
      const { key, bytes } = this.scan(tail, this.at);
      const cell = this.cells.get(key);
      const isCounting = cell?.at === tail && cell.expiresUs > nowUs;
      if (isCounting && !this.append(this.compose([cell]), this.state)) return;
      this.tail += bytes;
      // This does no harm without the turn: the tail only grows.
      Atomics.compareExchange(this.heads, TAIL, BigInt(tail / BLOCK_BYTES), BigInt(this.tail / BLOCK_BYTES));
    }
  }

  /** Puts cells together as the next ones of the log. Valid until the next use of the scratch bytes. */
  private compose(cells: readonly Omit<Cell, "bytes" | "at">[]): Cell[] {
    const most = cells.reduce((sum, { key, value }) => sum + CELL_HEAD_BYTES + 3 * (key.length + value.length + 3), 0);
    const scratch = this.scratchOf(most);
    const numbers = new DataView(scratch.buffer);
    let from = 0;
    return cells.map(({ key, value, expiresUs }) => {
      const at = this.at + from;
      const keyAt = from + CELL_HEAD_BYTES;
      const keyBytes = encoder.encodeInto(key, scratch.subarray(keyAt)).written;
      const valueBytes = encoder.encodeInto(value, scratch.subarray(keyAt + keyBytes)).written;
      numbers.setUint32(from, keyBytes, true);
      numbers.setUint32(from + 4, valueBytes, true);
      numbers.setFloat64(from + 8, at, true);
      numbers.setFloat64(from + 16, expiresUs, true);
      const bytes = aligned(CELL_HEAD_BYTES + keyBytes + valueBytes);
      from += bytes;
      return { key, value, expiresUs, bytes, at };
    });
  }

  private scratchOf(bytes: number): Uint8Array {
    if (bytes > this.scratch.length) this.scratch = new Uint8Array(2 * bytes);
    return this.scratch;
  }

  /** Appends the cells that were put together; then the turn is as in `turn`. False when it was taken away: then nobody ever reads them. */
  private append(cells: readonly Cell[], turn: bigint): boolean {
    const { at, ring, scratch, state } = this;
    const end = at + lengthOf(cells);
    const start = at % ring.length;
    const split = Math.min(end - at, ring.length - start);
    const [first, rest] = [scratch.subarray(0, split), scratch.subarray(split, end - at)];
    const after = (BigInt(end / BLOCK_BYTES) << TURN_BITS) | (turn & TURN_MASK);
    if (!this.exchange(state, state | COPYING)) return false;
    ring.set(first, start);
    ring.set(rest, 0);
    if (!this.exchange(state | COPYING, after)) return false;
    this.state = after;
    this.at = end;
    for (const cell of cells) this.put(cell);
    return true;
  }

  private put(cell: Cell): void {
    const before = this.cells.get(cell.key);
    if (before !== undefined) this.remove(before);
    this.cells.set(cell.key, cell);
    this.cellBytes += cell.bytes;
  }

  private remove(cell: Cell): void {
    this.cells.delete(cell.key);
    this.cellBytes -= cell.bytes;
  }
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
}

function lengthOf(cells: readonly Cell[]): number {
  return cells.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Writes our mark into a memory of zeros. */
function claim(words: Int32Array): void {
  // Another thread may claim it, and begin to write, while this one looks.
  if (words.every((word) => word === 0)) Atomics.compareExchange(words, 0, 0, MAGIC + VERSION);
  const version = Atomics.load(words, 0) - MAGIC;
  if (version === VERSION) return;
  throw lasting(
    version > 0 && version < 256
      ? `The shared memory is laid out in version ${version}, and this is version ${VERSION}. Use one version of politely in all threads.`
      : "The shared memory holds something else. Give threadStore a memory of its own: threadMemory() makes one.",
  );
}

function damaged(at: number): StoreError {
  const words = `The shared memory is damaged at block ${at / BLOCK_BYTES}: something else writes to it.`;
  return lasting(`${words} Give threadStore a memory of its own, made with threadMemory().`);
}

/** Says how large to make the memory, a power of two, so that its ring has so many bytes. */
function tooSmall(words: string, ringBytes: number): StoreError {
  const bytes = 2 ** Math.ceil(Math.log2(HEAD_BYTES + ringBytes));
  if (bytes <= MOST_BYTES) return lasting(`${words} Make it larger: threadMemory(${bytes}).`);
  return lasting(`${words} That is more than threads can share: use Redis or SQLite, or fewer keys.`);
}

function lasting(words: string): StoreError {
  return new StoreError(words, { isLasting: true });
}
