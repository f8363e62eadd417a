import type { IndexFile } from "./indexFile.js";
import type { IndexLine, Outcome } from "./indexLine.js";
import type { Journal, KnownPage } from "./journal.js";
import type { FinishedUrl, QueueOutcome, UrlQueue } from "./queue/urlQueue.js";

/** Results are written together, this long after the first of them. */
const TOGETHER_MS = 50;
const MAX_TOGETHER = 500;

/** What a recorder writes to. */
export interface RecorderOptions {
  readonly index: IndexFile;
  readonly journal: Journal;
  readonly queue: UrlQueue;
  /** These lines are safe: they stand in the index and in the list. */
  readonly written: (lines: readonly IndexLine[]) => void;
  /** The disk may be full, and nothing else is written any more: makes room for what has ended. */
  readonly makeRoom: () => void;
  /** Writing failed, and nothing more should be begun. */
  readonly failed: (error: unknown) => void;
}

/**
 * Writes down what has ended: the index first, then the list, then how much of the index the list knows of.
 *
 * A process that is killed in between leaves lines in the index that the list knows nothing of; `reconcile` makes up for that.
 */
export class Recorder {
  #lines: IndexLine[] = [];
  #timer: NodeJS.Timeout | undefined = undefined;
  #writing: Promise<void> = Promise.resolve();
  /** The index takes nothing until the end, when no body is written that would take the room. */
  #isFull = false;
  /** The list takes nothing more. What the index says beyond it, `reconcile` tells it in the next run. */
  #isListBroken = false;

  constructor(readonly options: RecorderOptions) {}

  add(line: IndexLine): void {
    this.#lines.push(line);
    if (this.#lines.length >= MAX_TOGETHER) this.#write();
    else this.#timer ??= setTimeout(() => this.#write(), TOGETHER_MS);
  }

  /** Writes what is left, and resolves once that is done or has failed. Nothing else may be on its way to the disk. */
  async flush(): Promise<void> {
    this.#write();
    if (this.#isFull) {
      this.options.makeRoom();
      this.#isFull = false;
      this.#write();
    }
    await this.#writing;
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#lines;
    if (lines.length === 0 || this.#isFull) return;
    const { index, failed } = this.options;
    try {
      // At once: the list may be away for a minute, and whoever is killed meanwhile must not lose what was fetched.
      index.append(lines);
    } catch (error) {
      this.#isFull = true;
      failed(error);
      return;
    }
    this.#lines = [];
    const { bytes } = index;
    this.#writing = this.#writing.then(() => this.#tell(lines, bytes));
  }

  /** Tells the list. Lines go there in the order of the index. */
  async #tell(lines: readonly IndexLine[], bytes: number): Promise<void> {
    if (this.#isListBroken) return;
    const { journal, queue, written } = this.options;
    try {
      await queue.finish(lines.map(finishedOf));
      journal.commit(bytes, lines.flatMap(pageOf));
      written(lines);
    } catch (error) {
      this.#isListBroken = true;
      this.options.failed(error);
    }
  }
}

/**
 * Tells the list what the index says and the list does not know: a process was killed between the two, or one of them is lost. The last
 * line of a URL holds. Returns how many lines that were.
 */
export async function reconcile(options: Pick<RecorderOptions, "index" | "journal" | "queue">): Promise<number> {
  const { index, journal, queue } = options;
  const known = journal.indexBytes;
  if (known === index.bytes) return 0;
  const from = known < index.bytes ? known : 0;
  let count = 0;
  for (const lines of index.lines(from)) {
    count += lines.length;
    journal.commit(from, lines.flatMap(pageOf));
  }
  // From the end, since the list keeps what it hears first of a URL.
  for (const lines of index.lastLines(from)) await queue.finish(lines.map(finishedOf));
  journal.commit(index.bytes, []);
  return count;
}

const OUTCOMES: Readonly<Record<Outcome, QueueOutcome>> = {
  fetched: "fetched",
  unchanged: "fetched",
  refused: "refused",
  failed: "failed",
};

/** What the list is told of a line. */
export function finishedOf({ url, key, outcome }: IndexLine): FinishedUrl {
  return { url, key, outcome: OUTCOMES[outcome] };
}

/** What is worth knowing when the page is asked for again. */
function pageOf({ url, finalUrl, outcome, headers, file, sha256, bytes }: IndexLine): readonly KnownPage[] {
  const { etag = null, "last-modified": lastModified = null } = headers;
  if (outcome !== "fetched" || file === undefined || sha256 === undefined) return [];
  return [{ url, finalUrl, etag, lastModified, file, sha256, bytes }];
}
