import { type PolicyInput, politely } from "politely";
import "politely/domains";
import type { ListedUrl } from "../list/urlList.js";
import { SeenTexts } from "./seenTexts.js";

/** How many requests a list asks of each key. */
export interface UrlCounts {
  /** In the order in which the list names them first. */
  readonly counts: ReadonlyMap<string, number>;
  /** URLs that were listed before, which are not counted again. */
  readonly duplicates: number;
}

/** So many URLs are remembered in order to find duplicates. What comes after them counts every time. */
const MOST_REMEMBERED = 16_000_000;

/**
 * Counts the URLs of a list by the key that the policy counts them under. `onCounted` hears how many there are, now and then.
 *
 * A URL that comes twice counts once, as `get` fetches it once; beyond 16 million different ones duplicates are counted.
 */
export async function countUrls(
  urls: AsyncIterable<ListedUrl>,
  policy: PolicyInput,
  onCounted?: (count: number) => void,
): Promise<UrlCounts> {
  const limiter = politely(policy, { keepStats: 0, maxKeys: 100_000_000 });
  const byOrigin = new Map<string, Counter>();
  const byKey = new Map<string, Counter>();
  const seen = new SeenTexts(MOST_REMEMBERED);
  let duplicates = 0;
  let listed = 0;
  for await (const { url } of urls) {
    listed += 1;
    if (listed % 16_384 === 0) onCounted?.(listed);
    if (!seen.add(url)) {
      duplicates += 1;
      continue;
    }
    // The key depends on scheme, host and port alone, and taking a URL apart costs more than looking these up.
    const origin = originOf(url);
    let counter = byOrigin.get(origin);
    if (counter === undefined) {
      const { key } = limiter.explain(url);
      counter = byKey.get(key) ?? { count: 0 };
      byKey.set(key, counter);
      byOrigin.set(origin, counter);
    }
    counter.count += 1;
  }
  return { counts: new Map(Array.from(byKey, ([key, counter]) => [key, counter.count])), duplicates };
}

interface Counter {
  count: number;
}

function originOf(url: string): string {
  const end = url.indexOf("/", url.indexOf("://") + 3);
  return end < 0 ? url : url.slice(0, end);
}
