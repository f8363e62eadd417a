/** What one run found. */
export interface CollectedDay {
  /** `"2026-02-06"`. */
  readonly day: string;
  /** How many list pages there were. */
  readonly pageCount: number;
  /** The names of the documents on them, in their order, each once. */
  readonly documents: readonly string[];
  /** False when `maxPages` ended it, so that there may be more. */
  readonly isComplete: boolean;
}

/** What is to be collected, and how. */
export interface CollectOptions {
  readonly siteUrl: URL;
  readonly day: string;
  readonly maxPages: number;
  /** Looked at before each page: aborted, no further one is asked for. */
  readonly signal: AbortSignal;
  /** Asks for a page, politely. */
  readonly fetch: (url: URL) => Promise<Response>;
}

const maxPageBytes = 2_000_000;

/**
 * Reads the list pages of a day, one after the other, until there is none.
 *
 * Rejects when a page cannot be had, is larger than 2 MB, or `signal` aborts: half a day is not kept.
 */
export async function collectDay({ siteUrl, day, maxPages, signal, fetch }: CollectOptions): Promise<CollectedDay> {
  const documents = new Set<string>();
  for (let page = 1; page <= maxPages; page++) {
    // The signal of a lease judges by the clock when it is looked at, so a function that was frozen for long stops here.
    signal.throwIfAborted();
    const url = pageUrl(siteUrl, day, page);
    const response = await fetch(url);
    if (response.status === 404) {
      await response.body?.cancel();
      return { day, pageCount: page - 1, documents: [...documents], isComplete: true };
    }
    if (!response.ok) {
      await response.body?.cancel();
      throw new Error(`${url.href} answered ${response.status}. Nothing of ${day} is kept; the next run tries again.`);
    }
    for (const name of documentsOn(await readPage(response))) documents.add(name);
  }
  return { day, pageCount: maxPages, documents: [...documents], isComplete: false };
}

/** The address of a list page, counted from 1. */
export function pageUrl(siteUrl: URL, day: string, page: number): URL {
  const file = `I_list_${String(page).padStart(3, "0")}_${day.replaceAll("-", "")}.html`;
  return new URL(`/inbs/${file}`, siteUrl);
}

/** The day in Tokyo, `"2026-02-06"`, at an instant. */
export function tokyoDay(epochMs: number): string {
  // Sweden writes dates as ISO 8601 does.
  return new Intl.DateTimeFormat("sv-SE", { timeZone: "Asia/Tokyo" }).format(epochMs);
}

function documentsOn(html: string): string[] {
  return Array.from(html.matchAll(/href="([\w-]{1,80}\.pdf)"/g), ([, name]) => name);
}

async function readPage(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let byteCount = 0;
  for await (const chunk of response.body ?? []) {
    const bytes = chunk as Uint8Array;
    byteCount += bytes.byteLength;
    if (byteCount > maxPageBytes)
      throw new Error(`${response.url} is larger than ${maxPageBytes} bytes: no list page.`);
    text += decoder.decode(bytes, { stream: true });
  }
  return text + decoder.decode();
}
