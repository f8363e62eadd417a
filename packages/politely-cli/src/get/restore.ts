import { WorkError } from "../errors.js";
import type { IndexFile } from "./indexFile.js";
import type { Keys } from "./keys.js";
import type { UrlQueue } from "./queue/urlQueue.js";
import { finishedOf } from "./recorder.js";
import type { StagedList } from "./stagedList.js";

/** What a run knows of a shared list by itself. */
export interface ListMemory {
  /** What this run put on the list; may be empty for one that only helps. */
  readonly list: StagedList;
  readonly keys: Keys;
  /** The first Ctrl-C. */
  readonly interrupted: AbortSignal;
  readonly index: IndexFile;
  /** How long the index was when the run began. */
  readonly fromBytes: number;
  /** How many URLs the list had then. */
  readonly total: number;
  /** Lines from before this run say nothing of its round. */
  readonly isRefresh: boolean;
}

/** Puts URLs on the list, under the keys of the policy. Ends early, with `WorkError`, once `interrupted` is aborted. */
export async function addAll(
  queue: UrlQueue,
  { list, keys, interrupted }: Pick<ListMemory, "list" | "keys" | "interrupted">,
): Promise<void> {
  for await (const urls of list.batches()) {
    if (interrupted.aborted) {
      throw new WorkError("stopped while the list was read in; run the same command again to go on.");
    }
    await queue.add(urls.map((url) => ({ url, key: keys.keyOf(url) })));
  }
}

/**
 * Tells a store what it may have forgotten while it was away: that this worker lives, the list if that has become shorter, and what this run has
 * finished. What the store knows already stays as it is.
 *
 * Throws when the list stays shorter than it was, until somebody who has all of it puts it there.
 */
export async function restoreList(queue: UrlQueue, memory: ListMemory): Promise<void> {
  const { index, fromBytes, total, isRefresh } = memory;
  await queue.renew({ takesOver: false });
  if ((await queue.counts()).total < total) {
    await addAll(queue, memory);
    const { total: found } = await queue.counts();
    if (found < total) {
      throw new Error(
        `the list had ${total} URLs, and its store knows ${found} of them; somebody has to add the others again`,
      );
    }
    if (!isRefresh) await finishAgain(queue, memory, 0, fromBytes);
  }
  await finishAgain(queue, memory, fromBytes, index.bytes);
}

async function finishAgain(queue: UrlQueue, memory: ListMemory, offset: number, until: number): Promise<void> {
  // What failed before this run began was put on the list again by it.
  const isOver = offset < memory.fromBytes ? (outcome: string) => outcome !== "failed" : () => true;
  for (const lines of memory.index.lines(offset, until)) {
    await queue.finish(lines.filter(({ outcome }) => isOver(outcome)).map(finishedOf));
  }
}
