import type { Limiter } from "politely";

/** What a crawl works with. */
export interface CrawlParts {
  readonly polite: Limiter;
  /** Aborting it ends every wait and every request at once. */
  readonly signal: AbortSignal;
  /** Told how each page went. */
  readonly say: (line: string) => void;
}

const MAX_BYTES = 16 * 1024 * 1024;

/** Asks for all pages at once; the limiter starts each when its domain allows. Resolves to how many came. */
export async function crawl(urls: readonly URL[], { polite, signal, say }: CrawlParts): Promise<number> {
  const visit = async (url: URL): Promise<boolean> => {
    try {
      const response = await polite.fetch(url, { signal, politely: { timeout: "30s" } });
      const byteCount = await countBytes(response);
      say(`${response.status}  ${url.href}  ${byteCount} bytes`);
      return response.ok;
    } catch (error) {
      if (!signal.aborted) say(`failed  ${url.href}  ${whyOf(error)}`);
      return false;
    }
  };
  return (await Promise.all(urls.map(visit))).filter(Boolean).length;
}

/** Reads a page to its end. Put here what you do with it. */
async function countBytes(response: Response): Promise<number> {
  let byteCount = 0;
  for await (const chunk of response.body ?? []) {
    byteCount += chunk.byteLength;
    // Leaving the loop cancels the body.
    if (byteCount > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`);
  }
  return byteCount;
}

/** What went wrong; fetch tells its reason as the cause. */
function whyOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}
