import type { RequestHeaders } from "./dispatchTypes.js";

const NAME = "user-agent";
/** What `fetch` of Node and of undici send when the program says nothing. */
const DEFAULTS: readonly unknown[] = ["node", "undici"];

/** The User-Agent that the program has set; undefined when there is none but the one `fetch` adds by itself. */
export function userAgentOf(headers: RequestHeaders): string | undefined {
  const value = pairsOf(headers).find(([name]) => isUserAgent(name))?.[1];
  return typeof value === "string" && !DEFAULTS.includes(value) ? value : undefined;
}

/** The same headers with `agent` as User-Agent, in the same form; the very same when the program has set its own. */
export function withUserAgent(headers: RequestHeaders, agent: string): RequestHeaders {
  if (userAgentOf(headers) !== undefined) return headers;
  const others = pairsOf(headers).filter(([name]) => !isUserAgent(name));
  const isRecord = headers === undefined || headers === null || !(Symbol.iterator in headers);
  const pairs: readonly (readonly [unknown, unknown])[] = [...others, [NAME, agent]];
  return isRecord ? Object.fromEntries(pairs as Iterable<readonly [string, unknown]>) : pairs.flat();
}

function isUserAgent(name: unknown): boolean {
  return typeof name === "string" && name.length === NAME.length && name.toLowerCase() === NAME;
}

function pairsOf(headers: RequestHeaders): readonly (readonly [unknown, unknown])[] {
  if (headers === undefined || headers === null) return [];
  if (!(Symbol.iterator in headers)) return Object.entries(headers);
  const list: readonly unknown[] = [...(headers as Iterable<unknown>)];
  if (Array.isArray(list[0])) return list as readonly (readonly [unknown, unknown])[];
  return Array.from({ length: Math.floor(list.length / 2) }, (_, index) => [list[2 * index], list[2 * index + 1]]);
}
