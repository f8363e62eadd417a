import { StoreError } from "../../errors.js";
import type { CellWrite, ChangeCells } from "../cells.js";
import { CellIndex, type IndexedCell } from "./cellIndex.js";
import { Holes } from "./holes.js";
import { BLOCK_BYTES, MOST_BYTES, memoryBytesFor } from "./memory.js";
import { cellBytes, EMPTY_RECORD_BYTES, RecordBuffer, readRecord, readValue } from "./recordBuffer.js";
import { LONGEST_RECORD, type Passed, type Ring } from "./ring.js";

/** Share of the ring that cells may fill. The rest keeps the work of moving them small. */
const FILL_SHARE = 5 / 8;
/** Share of the ring, of that, which new cells leave to those that are there: what is known goes on, and a 429 is heard. */
const KNOWN_SHARE = 1 / 32;
/** Largest share of the ring that one change may take. */
const CHANGE_SHARE = 1 / 8;
/**
 * Share of the ring ahead of the head that only moves may use. It is more than the largest change, so that any cell can be moved, also
 * after some threads were ended while they did so.
 */
const RESERVE_SHARE = 3 / 16;
/** Cells are moved along with changes once the head is so near to them, as a share of the ring. */
const NEAR_SHARE = 3 / 8;
/** Bytes that are moved so for each byte written: enough to pass through the fullest ring before the reserve is needed. */
const MOVED_PER_BYTE = 4;
/** Share of the ring up to which a record grows by cells that are moved along. Small ones are moved again one by one. */
const MOVED_SHARE = 1 / 32;
/** Share of the room ahead that one record of nothing but moves takes. The less, the more threads may be ended while they move. */
const MOVE_SHARE = 1 / 8;
/** Records of moves that make way for one change, at most. */
const MOVES_MOST = 100;
/** A reader that is overtaken so often by the head tries again later. */
const OVERTAKEN_MOST = 30;

/** How far a thread has read: everything, everything before a record that is not published yet, or not yet all that there is. */
export type Progress = "level" | "pending" | "behind";

/** A cell that has a place in the record being put together. */
interface Placed {
  readonly key: string;
  readonly value: string | undefined;
  readonly offset: number;
  readonly bytes: number;
  readonly expiresUs: number;
}

/** How many blocks there are from the head on. */
interface Room {
  /** Up to the first cell that still counts. */
  readonly untilCell: number;
  /** The same, without the holes in between. */
  readonly usable: number;
  /** Up to the first hole; Infinity when there is none. */
  readonly untilHole: number;
  readonly holeLength: number;
}

/**
 * The cells of a ring, as this thread has read them.
 *
 * Each thread reads what others have appended and keeps an index of its own, so nothing in shared memory is changed in place. A change is
 * appended as one record, which succeeds only when all before it has been read: whatever other threads do meanwhile, two never build on
 * the same state. Before the head comes round to cells that still count they are moved: written again, as part of other records. A record never
 * takes blocks of such cells, also not of those that it moves or replaces, since it may never be published.
 */
export class SharedLog {
  private at: number;
  private readonly index = new CellIndex();
  private readonly holes: Holes;
  private readonly record = new RecordBuffer();
  /** The latest instant at which anything was written or read. */
  private latestUs = 0;
  private changeCount = 0;

  constructor(
    private readonly ring: Ring,
    private readonly nowUs: () => number,
  ) {
    this.holes = new Holes(ring);
    this.at = ring.first() ?? 0;
  }

  /** Position up to which everything has been read. */
  get position(): number {
    return this.at;
  }

  /** Reads what was appended since, `most` records of it. Throws `StoreError` when something else has written to the memory. */
  read(most: number): Progress {
    let overtaken = 0;
    for (let count = 0; count < most; count++) {
      const standing = this.ring.look(this.at);
      if (standing.kind === "end" || standing.kind === "pending") {
        this.forget();
        return standing.kind === "end" ? "level" : "pending";
      }
      if ("length" in standing && this.takeIn(standing)) {
        this.at += standing.length;
        continue;
      }
      overtaken += 1;
      if (overtaken > OVERTAKEN_MOST) break;
      this.restart();
    }
    this.forget();
    return "behind";
  }

  /** Gives up the record that is pending at `position`. */
  abandonPending(): void {
    this.ring.abandon(this.at);
  }

  /**
   * Carries out a change on what has been read. Undefined: another thread came first and nothing was changed; read, and try again.
   *
   * Throws what `change` throws, and `StoreError` when the memory is full. Then nothing was changed.
   */
  change<Answer>(keys: readonly string[], change: ChangeCells<Answer>): { readonly answer: Answer } | undefined {
    const found = keys.map((key) => this.index.get(key));
    for (const cell of found) {
      if (cell !== undefined) cell.value ??= readValue(this.ring, cell);
    }
    const nowUs = Math.max(this.nowUs(), this.latestUs);
    // Nobody has appended since, so the values hold at this instant.
    if (this.ring.headAfterReads() !== this.at) {
      for (const cell of found) if (cell !== undefined) cell.value = undefined;
      return undefined;
    }
    this.latestUs = nowUs;
    const values = found.map((cell) => (cell === undefined || cell.expiresUs <= nowUs ? undefined : cell.value));
    const { writes, answer } = change(values, nowUs);
    return writes.length === 0 || this.append(keys, writes, nowUs) ? { answer } : undefined;
  }

  /** Takes in what is at `position`. False when it was overwritten meanwhile. */
  private takeIn({ kind, length }: Passed): boolean {
    if (kind === "abandoned") this.holes.add(this.at, length, this.nowUs());
    if (kind !== "written") return true;
    const record = readRecord(this.ring, this.at * BLOCK_BYTES, length * BLOCK_BYTES);
    if (this.ring.headAfterReads() - this.at > this.ring.blockCount) return false;
    if (record === undefined) throw brokenError(this.at);
    for (const cell of record.cells) this.index.put(cell, this.at);
    this.latestUs = Math.max(this.latestUs, record.nowUs);
    return true;
  }

  /** Forgets what lies further back than the ring is long. */
  private forget(): void {
    this.index.removeBefore(this.at - this.ring.blockCount);
    this.holes.removeBefore(this.at - this.ring.blockCount);
  }

  /** Begins again with the oldest record there is. All cells that count are in it or after it. */
  private restart(): void {
    this.index.clear();
    this.holes.clear();
    this.at = this.ring.first() ?? this.at;
  }

  private append(keys: readonly string[], writes: readonly CellWrite[], nowUs: number): boolean {
    const ownBytes = this.checkRoom(keys, writes, nowUs);
    const own = blocksFor(ownBytes);
    const most = MOVES_MOST + 2 * this.holes.count;
    for (let moves = 0; moves < most; moves++) {
      const room = this.findRoom(nowUs);
      const free = room.usable - this.share(RESERVE_SHARE);
      if (own > free || own > room.untilHole) {
        if (!this.makeWay(room, own > free, nowUs)) return false;
        continue;
      }
      const placed = this.compose(keys, writes, nowUs);
      this.moveAlong(placed, nowUs, Math.min(free, room.untilHole, this.share(MOVED_SHARE)));
      return this.write(placed, blocksFor(this.record.length));
    }
    throw this.fullError(ownBytes);
  }

  /** Looks at what lies ahead of the head. */
  private findRoom(nowUs: number): Room {
    const { index, ring, at } = this;
    while (index.oldest !== undefined && index.oldest.expiresUs <= nowUs) index.remove(index.oldest);
    const untilCell = (index.oldest?.at ?? at) + ring.blockCount - at;
    const usable = untilCell - this.holes.blocksBefore(index.oldest?.at ?? at);
    const hole = this.holes.next();
    const untilHole = hole === undefined ? Number.POSITIVE_INFINITY : hole.at + ring.blockCount - at;
    return { untilCell, usable, untilHole, holeLength: hole?.length ?? 0 };
  }

  /** Appends a record without a change: one that passes a hole, goes up to a hole, or moves the oldest cells. */
  private makeWay({ untilCell, usable, untilHole, holeLength }: Room, isCellInWay: boolean, nowUs: number): boolean {
    if (untilHole === 0) return this.passHole(holeLength, nowUs);
    const placed: Placed[] = [];
    this.record.begin(nowUs);
    if (isCellInWay) this.moveOldest(placed, nowUs, usable, Math.min(untilCell, untilHole, LONGEST_RECORD));
    if (placed.length > 0) return this.write(placed, blocksFor(this.record.length));
    if (untilHole > Math.min(untilCell, LONGEST_RECORD)) throw this.fullError(this.index.oldest?.bytes ?? 0);
    return this.write(placed, untilHole);
  }

  /** A share of the ring, in blocks. */
  private share(share: number): number {
    return Math.floor(this.ring.blockCount * share);
  }

  /** Begins a record with the cells of a change. */
  private compose(keys: readonly string[], writes: readonly CellWrite[], nowUs: number): Placed[] {
    const { record } = this;
    record.begin(nowUs);
    return writes.map(({ index, value, ttlUs }): Placed => {
      const key = keys[index];
      const expiresUs = nowUs + ttlUs;
      const offset = record.add(key, value, expiresUs);
      return { key, value, offset, bytes: record.length - offset, expiresUs };
    });
  }

  /** Adds to a change the oldest cells that the head is near to: a few for its size, one at least, up to `most` blocks in all. */
  private moveAlong(placed: Placed[], nowUs: number, most: number): void {
    const { record, index, ring } = this;
    const near = this.at - ring.blockCount * (1 - NEAR_SHARE);
    const enough = (1 + MOVED_PER_BYTE) * record.length;
    const ownCount = placed.length;
    for (let cell = index.oldest; cell !== undefined && cell.at < near; ) {
      const { newer } = cell;
      const bytes = record.length + cell.bytes;
      if (cell.expiresUs <= nowUs) index.remove(cell);
      else if (cell.replacedBy !== this.changeCount) {
        if (blocksFor(bytes) > most || (bytes > enough && placed.length > ownCount)) return;
        placed.push(this.move(cell));
      }
      cell = newer;
    }
  }

  /** Adds the oldest cells to a record of nothing else: those of the oldest record, and more up to a share of the room; `most` blocks in all. */
  private moveOldest(placed: Placed[], nowUs: number, usable: number, most: number): void {
    const { record, index } = this;
    const enough = usable * MOVE_SHARE;
    const oldestAt = index.oldest?.at;
    for (let cell = index.oldest; cell !== undefined; ) {
      const { newer } = cell;
      const blocks = blocksFor(record.length + cell.bytes);
      if (cell.expiresUs <= nowUs) index.remove(cell);
      else {
        // The blocks of a record can be used again when its last cell is gone.
        if (blocks > most || (blocks > enough && cell.at !== oldestAt)) return;
        placed.push(this.move(cell));
      }
      cell = newer;
    }
  }

  private move(cell: IndexedCell): Placed {
    const { key, value, bytes, expiresUs } = cell;
    return { key, value, bytes, expiresUs, offset: this.record.addStored(this.ring, cell) };
  }

  /** Appends the record that was put together. */
  private write(placed: readonly Placed[], length: number): boolean {
    const { ring, at } = this;
    const bytes = this.record.finish();
    if (!ring.reserve(at, length)) return false;
    const before = ring.begin(at);
    if (before !== undefined) {
      ring.fill(at, bytes);
      if (ring.publish(at, length, before)) {
        for (const { key, value, offset, bytes: size, expiresUs } of placed) {
          this.index.put({ key, from: at * BLOCK_BYTES + offset, bytes: size, expiresUs }, at, value);
        }
        this.at += length;
        this.forget();
        return true;
      }
    }
    // This thread stood still for so long that others gave its record up. Nothing of it was seen.
    ring.free(at, length);
    return false;
  }

  /** Leaves the hole at the head as it is for another round. */
  private passHole(length: number, nowUs: number): boolean {
    if (!this.ring.reserve(this.at, length)) return false;
    this.ring.abandon(this.at);
    // The thread that it belonged to may have let go of it in the same moment: then it is still pending.
    if (!this.ring.isAbandoned(this.at)) return false;
    // Reading on would take in what others have appended since, and the change was worked out without it.
    this.holes.add(this.at, length, nowUs);
    this.at += length;
    this.forget();
    return true;
  }

  /** Marks the cells that are replaced, and throws when there is no room for the new ones. Gives the bytes of these. */
  private checkRoom(keys: readonly string[], writes: readonly CellWrite[], nowUs: number): number {
    const needed = writes.reduce((sum, { index, value }) => sum + cellBytes(keys[index], value), EMPTY_RECORD_BYTES);
    if (blocksFor(needed) > this.share(CHANGE_SHARE)) {
      throw new StoreError(
        `A change of ${needed} bytes is too large for this shared memory. ${this.advice(needed / CHANGE_SHARE)}`,
        { isLasting: true },
      );
    }
    const isNew = writes.some(({ index }) => this.index.get(keys[index]) === undefined);
    const share = isNew ? FILL_SHARE - KNOWN_SHARE : FILL_SHARE;
    const left = this.ring.byteCount * share - this.holes.blocksAt(nowUs) * BLOCK_BYTES;
    if (this.isFullWith(needed, this.markReplaced(keys, writes), left)) {
      this.index.removeExpired(nowUs);
      if (this.isFullWith(needed, this.markReplaced(keys, writes), left)) throw this.fullError(needed);
    }
    return needed;
  }

  private markReplaced(keys: readonly string[], writes: readonly CellWrite[]): number {
    this.changeCount += 1;
    let replacedBytes = 0;
    for (const { index } of writes) {
      const cell = this.index.get(keys[index]);
      if (cell === undefined || cell.replacedBy === this.changeCount) continue;
      cell.replacedBy = this.changeCount;
      replacedBytes += cell.bytes;
    }
    return replacedBytes;
  }

  private isFullWith(needed: number, replaced: number, left: number): boolean {
    // What takes no more than it took before is let in always: it may be what gives something back.
    return needed - EMPTY_RECORD_BYTES > replaced && this.index.bytes - replaced + needed > left;
  }

  private fullError(needed: number): StoreError {
    const { size, bytes } = this.index;
    const ended = this.holes.count === 0 ? "" : `, ${this.holes.count} threads were ended while they wrote`;
    return new StoreError(
      `The shared memory is full: ${size} cells of ${bytes} bytes still count${ended}, and a change of ${needed} bytes finds no room. ${this.advice(2 * (bytes + needed))}`,
      { isLasting: true },
    );
  }

  /** How large to make the memory so that its ring has `ringBytes`, rounded up to a power of two. */
  private advice(ringBytes: number): string {
    const bytes = 2 ** Math.ceil(Math.log2(memoryBytesFor(Math.ceil(ringBytes / BLOCK_BYTES))));
    return bytes > MOST_BYTES
      ? "That is more than threads can share: use Redis or SQLite, or fewer keys."
      : `Make it larger: threadMemory(${bytes}).`;
  }
}

function blocksFor(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES);
}

function brokenError(at: number): StoreError {
  return new StoreError(
    `The shared memory is damaged at block ${at}: something else writes to it. Give threadStore a memory of its own, made with threadMemory().`,
    { isLasting: true },
  );
}
