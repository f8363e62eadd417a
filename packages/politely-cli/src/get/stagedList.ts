import { closeSync, createReadStream, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readLines } from "../list/lines.js";
import type { ListedUrl } from "../list/urlList.js";

const TOGETHER = 1_000;
/** Longer lists wait in a file. */
const MAX_IN_MEMORY = 20_000;

/**
 * A list that was read to its end, so that nothing begins before all of it is known to be URLs.
 *
 * A long one waits in a file that has no name any more: whatever ends the process, nothing of it is left.
 */
export class StagedList {
  #lines: string[] = [];
  #file: number | undefined = undefined;
  /** Where its file was made. A system that removes no open file keeps it until the end. */
  #folder = "";
  count = 0;

  /** Reads the whole list. Throws what it throws. */
  static async read(urls: AsyncIterable<ListedUrl>): Promise<StagedList> {
    const list = new StagedList();
    try {
      for await (const { url } of urls) {
        list.count += 1;
        list.#lines.push(url);
        if (list.#lines.length >= MAX_IN_MEMORY) list.#spill();
      }
      if (list.#file !== undefined) list.#spill();
      return list;
    } catch (error) {
      list.remove();
      throw error;
    }
  }

  /** The URLs, at most 1,000 at a time. */
  async *batches(): AsyncIterable<readonly string[]> {
    if (this.#file === undefined) {
      for (let at = 0; at < this.#lines.length; at += TOGETHER) yield this.#lines.slice(at, at + TOGETHER);
      return;
    }
    let batch: string[] = [];
    // From its beginning each time, wherever others are in it.
    for await (const lines of readLines(createReadStream("", { fd: this.#file, autoClose: false, start: 0 }))) {
      for (const line of lines) {
        batch.push(line);
        if (batch.length < TOGETHER) continue;
        yield batch;
        batch = [];
      }
    }
    if (batch.length > 0) yield batch;
  }

  /** Gives its file up, if it has one. It has no URLs then. */
  remove(): void {
    if (this.#file === undefined) return;
    closeSync(this.#file);
    this.#file = undefined;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #spill(): void {
    this.#file ??= this.#open();
    const text = Buffer.from(this.#lines.map((line) => `${line}\n`).join(""));
    for (let written = 0; written < text.length; ) written += writeSync(this.#file, text, written);
    this.#lines = [];
  }

  #open(): number {
    this.#folder = mkdtempSync(join(tmpdir(), "politely-list-"));
    const file = openSync(join(this.#folder, "list.txt"), "wx+");
    try {
      rmSync(this.#folder, { recursive: true, force: true });
    } catch {
      // It goes with `remove`.
    }
    return file;
  }
}
