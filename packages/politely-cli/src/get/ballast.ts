import { randomBytes } from "node:crypto";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";

/** What the index and the journal need for all that can be under way at once, with much to spare. */
const BYTES = 524_288;

/**
 * Room on the disk that is kept for the last moment: when bodies have filled the disk, it is given up, so that what was
 * fetched can still be written down.
 */
export class Ballast {
  /** Takes the room. Throws what the file system throws. */
  constructor(readonly path: string) {
    // Not zeros: some file systems keep no room for those.
    const bytes = randomBytes(BYTES);
    const file = openSync(path, "w");
    try {
      for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
    } finally {
      closeSync(file);
    }
  }

  /** Gives the room up. A second call does nothing. Never throws. */
  drop(): void {
    try {
      rmSync(this.path, { force: true });
    } catch {
      // A disk that takes nothing away either. Nothing more can be done.
    }
  }
}
