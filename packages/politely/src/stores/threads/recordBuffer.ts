import { localBytes, type TextBytes, type TextEncoding } from "./memory.js";
import type { Ring } from "./ring.js";

// A record is a head of 16 bytes, the number of cells and the instant of the change, and then its cells. A cell is a head of 16 bytes,
// the sizes of key and value and the instant at which it expires, then the characters of both. Everything begins at a multiple of 8 bytes.

const RECORD_HEAD_BYTES = 16;
const CELL_HEAD_BYTES = 16;
const ALIGNMENT = 8;
const FIRST_BYTES = 4_096;
const NOW_AT = 8;
const VALUE_SIZE_AT = 4;
const EXPIRES_AT = 8;

/** Finds what one byte a character cannot hold. */
const WIDE = /[\u0100-\uffff]/;

/** One cell as it lies in the ring. */
export interface StoredCell {
  readonly key: string;
  /** Byte position. */
  readonly from: number;
  /** With its head, and up to the next one. */
  readonly bytes: number;
  readonly expiresUs: number;
}

/** How many bytes a record takes without cells. */
export const EMPTY_RECORD_BYTES = RECORD_HEAD_BYTES;

/** How many bytes a cell takes in a record. */
export function cellBytes(key: string, value: string): number {
  return CELL_HEAD_BYTES + aligned(textBytes(key) + textBytes(value));
}

/** A record that is put together in memory of this thread. */
export class RecordBuffer {
  private bytes = localBytes(FIRST_BYTES);
  private numbers = viewOf(this.bytes);
  private size = 0;
  private count = 0;

  /** Bytes so far. */
  get length(): number {
    return this.size;
  }

  /** Begins anew. */
  begin(nowUs: number): void {
    this.size = RECORD_HEAD_BYTES;
    this.count = 0;
    this.numbers.setFloat64(NOW_AT, nowUs, true);
  }

  /** Adds a cell, and says at which byte of the record. */
  add(key: string, value: string, expiresUs: number): number {
    const at = this.grow(cellBytes(key, value));
    this.numbers.setUint32(at, sizeOf(key), true);
    this.numbers.setUint32(at + VALUE_SIZE_AT, sizeOf(value), true);
    this.numbers.setFloat64(at + EXPIRES_AT, expiresUs, true);
    const keyAt = at + CELL_HEAD_BYTES;
    const valueAt = keyAt + this.bytes.write(key, keyAt, encodingOf(key));
    this.bytes.write(value, valueAt, encodingOf(value));
    return at;
  }

  /** Adds a cell of the ring as it is, and says at which byte of the record. */
  addStored(ring: Ring, cell: StoredCell): number {
    const at = this.grow(cell.bytes);
    ring.copy(cell.from, cell.bytes, this.bytes, at);
    return at;
  }

  /** The record. Valid until the next `begin`. */
  finish(): Uint8Array {
    this.numbers.setUint32(0, this.count, true);
    return this.bytes.subarray(0, this.size);
  }

  private grow(more: number): number {
    const at = this.size;
    this.size += more;
    this.count += 1;
    if (this.size > this.bytes.length) {
      const larger = localBytes(2 * this.size);
      larger.set(this.bytes.subarray(0, at));
      this.bytes = larger;
      this.numbers = viewOf(larger);
    }
    return at;
  }
}

/** What a record says. */
export interface ReadRecord {
  readonly nowUs: number;
  readonly cells: readonly StoredCell[];
}

/** Reads the record of `bytes` bytes at a byte position. Undefined when it makes no sense; then it is being overwritten. */
export function readRecord(ring: Ring, from: number, bytes: number): ReadRecord | undefined {
  const count = ring.uint32(from);
  const end = from + bytes;
  const cells: StoredCell[] = [];
  let at = from + RECORD_HEAD_BYTES;
  for (let index = 0; index < count; index++) {
    if (at + CELL_HEAD_BYTES > end) return undefined;
    const keySize = ring.uint32(at);
    const length = CELL_HEAD_BYTES + aligned(bytesOf(keySize) + bytesOf(ring.uint32(at + VALUE_SIZE_AT)));
    if (at + length > end) return undefined;
    const key = ring.text(at + CELL_HEAD_BYTES, bytesOf(keySize), encodingOfSize(keySize));
    cells.push({ key, from: at, bytes: length, expiresUs: ring.float64(at + EXPIRES_AT) });
    at += length;
  }
  return { nowUs: ring.float64(from + NOW_AT), cells };
}

/** Reads the value of a cell. Its characters make no sense if it is being overwritten. */
export function readValue(ring: Ring, { from, bytes }: StoredCell): string {
  const valueAt = from + CELL_HEAD_BYTES + bytesOf(ring.uint32(from));
  const size = ring.uint32(from + VALUE_SIZE_AT);
  const length = Math.min(bytesOf(size), Math.max(0, from + bytes - valueAt));
  return ring.text(valueAt, length, encodingOfSize(size));
}

// The size of a text is its bytes times two, plus one if each character takes two of them.

function sizeOf(text: string): number {
  return WIDE.test(text) ? text.length * 4 + 1 : text.length * 2;
}

function textBytes(text: string): number {
  return bytesOf(sizeOf(text));
}

function bytesOf(size: number): number {
  return Math.floor(size / 2);
}

function encodingOf(text: string): TextEncoding {
  return encodingOfSize(sizeOf(text));
}

function encodingOfSize(size: number): TextEncoding {
  return size % 2 === 1 ? "utf16le" : "latin1";
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

function viewOf(bytes: TextBytes): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
