import { BLOCK_BYTES, HEAD, localBytes, type Memory, type TextBytes, type TextEncoding } from "./memory.js";

// Records are appended one after the other, round and round. A place in the ring is a position: how many blocks were ever appended
// before it. Positions only grow, so that a thread which slept for a long time never takes a new record for an old one.
//
// A record is appended in three steps: reserve moves the head, fill writes the bytes, publish sets the tag of its first block. Reserving fails
// unless everything before has been seen, so there is at most one record that is reserved and not published. A thread may end or stand
// still between any two steps; others then set the tag themselves, to "abandoned", and its own publish fails.

/** A record that has been decided about: published, or given up. A free one was given up, and its thread knows. */
export interface Passed {
  readonly kind: "written" | "abandoned" | "free";
  /** In blocks. */
  readonly length: number;
}

/** What is at a position. */
export type Standing = Passed | { readonly kind: "pending" | "end" | "lapped" };

// A tag is the position (42 bits), the length in blocks (20 bits) and a status (2 bits).
const POSITIONS = 2 ** 42;
const POSITION_SHIFT = 22n;
const LOW_MASK = (1n << POSITION_SHIFT) - 1n;
const WRITTEN = 1;
const ABANDONED = 2;
const FREE = 3;
const KINDS = { [WRITTEN]: "written", [ABANDONED]: "abandoned", [FREE]: "free" } as const;

/** Blocks of one record, at most. */
export const LONGEST_RECORD = 2 ** 20 - 1;

const PENDING: Standing = { kind: "pending" };
const END: Standing = { kind: "end" };
const LAPPED: Standing = { kind: "lapped" };

/** The memory as a ring of records. Every method is one step of a few instructions; what is between them is anyone's guess. */
export class Ring {
  readonly blockCount: number;
  readonly byteCount: number;
  /** Not shared: what counts is that changing it is a step which nothing passes. */
  private readonly fence = new Int32Array(1);

  constructor(private readonly memory: Memory) {
    this.blockCount = memory.blockCount;
    this.byteCount = memory.blockCount * BLOCK_BYTES;
  }

  /** Where the next record will begin. */
  head(): number {
    return Number(Atomics.load(this.memory.heads, HEAD));
  }

  /** The head, as it is after all that was read before. Without it some processors read bytes later than a head that comes after them. */
  headAfterReads(): number {
    Atomics.add(this.fence, 0, 0);
    return this.head();
  }

  /** What is at `at`, which must be a position where a record begins. `lapped`: it has been overwritten. */
  look(at: number): Standing {
    // The tag comes first. If the head is read first, a round of the ring may go by between the two.
    const tag = Atomics.load(this.memory.tags, at % this.blockCount);
    if (isAt(tag, at)) return readTag(tag);
    const head = this.head();
    if (head === at) return END;
    return head - at > this.blockCount ? LAPPED : PENDING;
  }

  /** The first position whose record has not been overwritten, or undefined when there is none. */
  first(): number | undefined {
    const head = this.head();
    if (head <= this.blockCount) return 0;
    for (let at = head - this.blockCount; at < head; at++) {
      if (isAt(Atomics.load(this.memory.tags, at % this.blockCount), at)) return at;
    }
    return undefined;
  }

  /** Takes `length` blocks at the head. False when the head is no longer at `at`. */
  reserve(at: number, length: number): boolean {
    const expected = BigInt(at);
    return Atomics.compareExchange(this.memory.heads, HEAD, expected, BigInt(at + length)) === expected;
  }

  /** The tag that `publish` replaces; undefined when others have abandoned the record, and nothing may be written to it. */
  begin(at: number): bigint | undefined {
    const tag = Atomics.load(this.memory.tags, at % this.blockCount);
    return isAt(tag, at) || this.head() - at > this.blockCount ? undefined : tag;
  }

  /** Writes the bytes of a reserved record. */
  fill(at: number, bytes: Uint8Array): void {
    const offset = (at % this.blockCount) * BLOCK_BYTES;
    const untilEnd = this.byteCount - offset;
    if (bytes.length <= untilEnd) {
      this.memory.bytes.set(bytes, offset);
      return;
    }
    this.memory.bytes.set(bytes.subarray(0, untilEnd), offset);
    this.memory.bytes.set(bytes.subarray(untilEnd), 0);
  }

  /** Shows the record to everyone, in one step. False when others have abandoned it: then nobody ever sees it. */
  publish(at: number, length: number, before: bigint): boolean {
    const index = at % this.blockCount;
    return Atomics.compareExchange(this.memory.tags, index, before, tagOf(at, length, WRITTEN)) === before;
  }

  /** Gives up the record that is pending at `at`, whoever reserved it. Does nothing when there is none. */
  abandon(at: number): void {
    const index = at % this.blockCount;
    const before = Atomics.load(this.memory.tags, index);
    const head = this.head();
    if (isAt(before, at) || head === at || head - at > this.blockCount) return;
    // If the tag is still the same, nothing was appended after the record, so the head is its end.
    Atomics.compareExchange(this.memory.tags, index, before, tagOf(at, head - at, ABANDONED));
  }

  /** Says that an abandoned record will not be written to any more. For the one that reserved it. */
  free(at: number, length: number): void {
    const index = at % this.blockCount;
    Atomics.compareExchange(this.memory.tags, index, tagOf(at, length, ABANDONED), tagOf(at, length, FREE));
  }

  /** Whether the record that begins at `at` is still abandoned and not free. */
  isAbandoned(at: number): boolean {
    return this.look(at).kind === "abandoned";
  }

  /** Reads a number at a byte position that is a multiple of 4. */
  uint32(from: number): number {
    return this.memory.numbers.getUint32(from % this.byteCount, true);
  }

  /** Reads a number at a byte position that is a multiple of 8. */
  float64(from: number): number {
    return this.memory.numbers.getFloat64(from % this.byteCount, true);
  }

  /** Reads a text. Never throws, whatever the bytes are. */
  text(from: number, length: number, encoding: TextEncoding): string {
    const offset = from % this.byteCount;
    if (offset + length <= this.byteCount) return this.memory.bytes.toString(encoding, offset, offset + length);
    const copy = localBytes(length);
    this.copy(from, length, copy, 0);
    return copy.toString(encoding, 0, length);
  }

  /** Copies bytes out of the ring. */
  copy(from: number, length: number, target: TextBytes, targetAt: number): void {
    const offset = from % this.byteCount;
    const untilEnd = Math.min(length, this.byteCount - offset);
    target.set(this.memory.bytes.subarray(offset, offset + untilEnd), targetAt);
    if (untilEnd < length) target.set(this.memory.bytes.subarray(0, length - untilEnd), targetAt + untilEnd);
  }
}

function tagOf(at: number, length: number, status: number): bigint {
  return (BigInt(at % POSITIONS) << POSITION_SHIFT) | BigInt(length * 4 + status);
}

function isAt(tag: bigint, at: number): boolean {
  return tag !== 0n && Number(tag >> POSITION_SHIFT) === at % POSITIONS;
}

function readTag(tag: bigint): Standing {
  const low = Number(tag & LOW_MASK);
  return { kind: KINDS[(low % 4) as keyof typeof KINDS], length: Math.trunc(low / 4) };
}
