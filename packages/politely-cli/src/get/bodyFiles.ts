import { rmSync } from "node:fs";
import { rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BodyThreads } from "./bodyThreads.js";
import { filePath } from "./filePath.js";
import { LargeFile } from "./largeFile.js";
import { makeFolder } from "./makeFolder.js";

/** A body on disk. */
export interface SavedBody {
  /** Relative to the folder, with `/`. */
  readonly file: string;
  readonly bytes: number;
  /** In hexadecimal. */
  readonly sha256: string;
}

/** Writes bodies into a folder. A file is there whole or not at all: it is written under another name first. */
export class BodyFiles {
  readonly #temporary: string;
  readonly #threads: BodyThreads;
  #count = 0;

  /** Creates the folder for unfinished files, and removes what a killed process left there. Throws what the file system throws. */
  constructor(readonly folder: string) {
    this.#temporary = join(folder, ".unfinished");
    rmSync(this.#temporary, { recursive: true, force: true });
    makeFolder(this.#temporary);
    // Last: a thread keeps the process alive, and nobody would end it when one of these throws.
    this.#threads = new BodyThreads();
  }

  /** Saves a body that is in memory. Rejects with what the file system says. */
  async saveSmall(url: string, pieces: readonly Uint8Array[], bytes: number): Promise<SavedBody> {
    const file = filePath(url);
    const sha256 = await this.#threads.write(join(this.folder, file), pieces, bytes);
    return { file, bytes, sha256 };
  }

  /** Opens a file for a body that is too large for that. */
  openLarge(): Promise<LargeFile> {
    this.#count += 1;
    return LargeFile.open(join(this.#temporary, String(this.#count)));
  }

  /** Gives a large body that is complete its name. */
  async saveLarge(url: string, large: LargeFile): Promise<SavedBody> {
    const sha256 = await large.close();
    const file = filePath(url);
    const path = join(this.folder, file);
    makeFolder(dirname(path));
    await rename(large.path, path);
    return { file, bytes: large.bytes, sha256 };
  }

  /** Removes the folder for unfinished files. */
  async close(): Promise<void> {
    await this.#threads.close();
    rmSync(this.#temporary, { recursive: true, force: true });
  }
}
