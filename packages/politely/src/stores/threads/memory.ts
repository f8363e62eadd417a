import { StoreError } from "../../errors.js";

// How the shared memory is laid out: 64 bytes of header, then one tag of 8 bytes for each block, then the blocks. A memory that
// is all zeros is an empty one, so that there is nothing to set up and no race about who does it.

/** Records begin at blocks of so many bytes. */
export const BLOCK_BYTES = 64;

const HEADER_BYTES = 64;
const TAG_BYTES = 8;
/** Tags of this many blocks fill whole blocks, so that the blocks are aligned. */
const BLOCKS_STEP = BLOCK_BYTES / TAG_BYTES;

/** "pol" and the version of the layout. */
const MAGIC = 0x706f_6c01;
const VERSION_MASK = 0xff;
const MAGIC_WORD = 0;

/** What one memory has at least and at most, and unless told otherwise. */
export const LEAST_BYTES = 64 * 1_024;
export const MOST_BYTES = 256 * 1_024 * 1_024;
export const USUAL_BYTES = 4 * 1_024 * 1_024;

/** The part of Node's `Buffer` that is called. Its conversions are ten times as fast as loops over characters. */
export interface TextBytes extends Uint8Array {
  write(text: string, at: number, encoding: TextEncoding): number;
  toString(encoding?: TextEncoding, from?: number, to?: number): string;
}

/** One byte for each character up to U+00FF, or two for each half of any. Both give back exactly what went in. */
export type TextEncoding = "latin1" | "utf16le";

/** The views of one shared memory. */
export interface Memory {
  /** 4-byte words of the header: the turn, and the number of turns taken. */
  readonly words: Int32Array;
  /** 8-byte words of the header: how many blocks were ever appended. */
  readonly heads: BigUint64Array;
  /** What each block is the start of. See ring.ts. */
  readonly tags: BigUint64Array;
  readonly bytes: TextBytes;
  readonly numbers: DataView;
  readonly blockCount: number;
}

/** Where things are in `words` and `heads`. */
export const TURN_WORD = 2;
export const TICKETS_WORD = 3;
export const HEAD = 4;

/** Makes zeroed bytes of this thread alone. */
export function localBytes(length: number): TextBytes {
  return bufferClass().alloc(length);
}

/**
 * Looks at a memory as one of ours, and makes it one if it is all zeros.
 *
 * Throws `TypeError` for what is no `SharedArrayBuffer` of fixed length, `RangeError` for a wrong size, and `StoreError` when
 * it holds something else.
 */
export function openMemory(buffer: SharedArrayBuffer): Memory {
  checkBuffer(buffer);
  claim(new Int32Array(buffer));
  const blockCount = blocksIn(buffer.byteLength);
  const blocksAt = HEADER_BYTES + blockCount * TAG_BYTES;
  return {
    words: new Int32Array(buffer, 0, HEADER_BYTES / Int32Array.BYTES_PER_ELEMENT),
    heads: new BigUint64Array(buffer, 0, HEADER_BYTES / BigUint64Array.BYTES_PER_ELEMENT),
    tags: new BigUint64Array(buffer, HEADER_BYTES, blockCount),
    bytes: bufferClass().from(buffer, blocksAt, blockCount * BLOCK_BYTES),
    numbers: new DataView(buffer, blocksAt, blockCount * BLOCK_BYTES),
    blockCount,
  };
}

/** How many bytes a memory needs to have `blockCount` blocks. */
export function memoryBytesFor(blockCount: number): number {
  return HEADER_BYTES + Math.ceil(blockCount / BLOCKS_STEP) * BLOCKS_STEP * (TAG_BYTES + BLOCK_BYTES);
}

/** Throws `RangeError` for a size that no memory may have. */
export function checkSize(bytes: number): void {
  if (!(Number.isInteger(bytes) && bytes >= LEAST_BYTES && bytes <= MOST_BYTES)) {
    throw new RangeError(`A shared memory has ${LEAST_BYTES} to ${MOST_BYTES} bytes; got ${bytes}`);
  }
}

function blocksIn(bytes: number): number {
  return Math.floor((bytes - HEADER_BYTES) / (TAG_BYTES + BLOCK_BYTES) / BLOCKS_STEP) * BLOCKS_STEP;
}

function checkBuffer(buffer: SharedArrayBuffer): void {
  const kind = Object.prototype.toString.call(buffer).slice("[object ".length, -1);
  if (kind !== "SharedArrayBuffer") {
    throw new TypeError(
      `threadStore needs the SharedArrayBuffer that threadMemory() makes; got ${kind}. An ArrayBuffer is copied on its way to a worker.`,
    );
  }
  if ((buffer as { readonly growable?: boolean }).growable === true) {
    throw new TypeError(
      "threadStore needs a SharedArrayBuffer of fixed length; got a growable one. Use threadMemory().",
    );
  }
  checkSize(buffer.byteLength);
}

/** Writes our mark into a memory of zeros. */
function claim(words: Int32Array): void {
  let found = Atomics.load(words, MAGIC_WORD);
  if (found === 0) {
    const isEmpty = isAllZero(words);
    // Another thread may have claimed it and begun to write meanwhile.
    found = isEmpty ? Atomics.compareExchange(words, MAGIC_WORD, 0, MAGIC) || MAGIC : Atomics.load(words, MAGIC_WORD);
  }
  if (found === MAGIC) return;
  if ((found & ~VERSION_MASK) === (MAGIC & ~VERSION_MASK)) {
    throw new StoreError(
      `The shared memory is laid out in version ${found & VERSION_MASK}, and this is version ${MAGIC & VERSION_MASK}. Use one version of politely in all threads.`,
      { isLasting: true },
    );
  }
  throw new StoreError(
    "The shared memory holds something else. Give threadStore a memory of its own: threadMemory() makes one.",
    { isLasting: true },
  );
}

function isAllZero(words: Int32Array): boolean {
  for (let index = 0; index < words.length; index++) {
    if (words[index] !== 0) return false;
  }
  return true;
}

interface BufferClass {
  alloc(length: number): TextBytes;
  from(buffer: SharedArrayBuffer, from: number, length: number): TextBytes;
}

function bufferClass(): BufferClass {
  const { process } = globalThis as unknown as {
    readonly process?: { getBuiltinModule?(name: "node:buffer"): { readonly Buffer: BufferClass } | undefined };
  };
  const found = process?.getBuiltinModule?.("node:buffer")?.Buffer;
  if (found === undefined) throw new TypeError("threadStore needs Node 20.19 or later, Bun or Deno.");
  return found;
}
