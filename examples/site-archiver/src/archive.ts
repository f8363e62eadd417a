import type { Fetcher } from "./fetcher.js";
import type { Progress } from "./progress.js";
import type { Storage } from "./storage.js";

/** What an archive run works with. */
export interface ArchiveParts {
  readonly fetcher: Fetcher;
  readonly storage: Storage;
  readonly progress: Progress;
  /** Aborting it ends the run before the next page. */
  readonly signal: AbortSignal;
}

/** Gets and saves every page, one after the other, and resolves to how many were saved. A page that fails is told of and left out. */
export async function archive(paths: readonly string[], parts: ArchiveParts): Promise<number> {
  const { fetcher, storage, progress, signal } = parts;
  let savedCount = 0;
  for (const path of paths) {
    progress.begin(path, fetcher.remainingMs(path));
    try {
      const content = await fetcher.fetch(path, signal);
      await storage.save(path, content);
      savedCount += 1;
      progress.end(path, `saved, ${content.byteLength} bytes`);
    } catch (error) {
      progress.end(path, signal.aborted ? "stopped" : `failed: ${whyOf(error)}`);
      if (signal.aborted) break;
    }
  }
  return savedCount;
}

/** What went wrong; fetch tells its reason as the cause. */
function whyOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}
