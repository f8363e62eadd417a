import { appendFileSync, createReadStream, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readLines } from "../list/lines.js";
import type { ListedUrl } from "../list/urlList.js";

const TOGETHER = 1_000;
/** Longer lists wait in a file. */
const MAX_IN_MEMORY = 20_000;

/** A list that was read to its end, so that nothing begins before all of it is known to be URLs. */
export class StagedList {
  #lines: string[] = [];
  #folder: string | undefined = undefined;
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
      if (list.#folder !== undefined) list.#spill();
      return list;
    } catch (error) {
      list.remove();
      throw error;
    }
  }

  /** The URLs, at most 1,000 at a time. */
  async *batches(): AsyncIterable<readonly string[]> {
    if (this.#folder === undefined) {
      for (let at = 0; at < this.#lines.length; at += TOGETHER) yield this.#lines.slice(at, at + TOGETHER);
      return;
    }
    let batch: string[] = [];
    for await (const lines of readLines(createReadStream(this.#path()))) {
      for (const line of lines) {
        batch.push(line);
        if (batch.length < TOGETHER) continue;
        yield batch;
        batch = [];
      }
    }
    if (batch.length > 0) yield batch;
  }

  /** Removes its file, if it has one. */
  remove(): void {
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
  }

  #path(): string {
    return join(this.#folder ?? "", "list.txt");
  }

  #spill(): void {
    this.#folder ??= mkdtempSync(join(tmpdir(), "politely-list-"));
    appendFileSync(this.#path(), this.#lines.map((line) => `${line}\n`).join(""));
    this.#lines = [];
  }
}
