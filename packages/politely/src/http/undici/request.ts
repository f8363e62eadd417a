import type { DispatchOptions, RequestHeaders } from "./dispatchTypes.js";

const NAME = "user-agent";
/** What `fetch` of Node and of undici send when the program says nothing. */
const DEFAULTS: readonly unknown[] = ["node", "undici"];

/**
 * The address a request is for, as text; undefined when the request names no site and there is no `fallback`.
 *
 * A path that is a whole URL, as a proxy gets it, is the address. A CONNECT is for its origin. What is malformed is passed on,
 * for the limiter and undici to say so.
 */
export function requestUrl(
  { origin, path, method, query }: DispatchOptions,
  fallback: string | undefined,
): string | undefined {
  if (typeof path === "string" && /^https?:\/\//i.test(path)) return path;
  const site = origin === undefined || origin === null || origin === "" ? fallback : originText(origin);
  if (site === undefined) return undefined;
  if (method === "CONNECT" || typeof path !== "string" || !path.startsWith("/")) return `${site}/`;
  return query === undefined || query === null ? `${site}${path}` : `${site}${path}?${queryText(query)}`;
}

function originText(origin: string | URL): string {
  const text = typeof origin === "string" ? origin : origin.origin;
  return text.endsWith("/") ? text.slice(0, -1) : text;
}

function queryText(query: object): string {
  const pairs = Object.entries(query).flatMap(([name, value]: [string, unknown]) =>
    (Array.isArray(value) ? value : [value]).map((each) => [name, String(each)]),
  );
  return new URLSearchParams(pairs).toString();
}

/** The User-Agent that the program has set; undefined when there is none but the one `fetch` adds by itself. */
export function userAgentOf(headers: RequestHeaders): string | undefined {
  const value = pairsOf(headers).find(([name]) => isUserAgent(name))?.[1];
  return typeof value === "string" && !DEFAULTS.includes(value) ? value : undefined;
}

/** The same headers with `agent` as User-Agent, in the same form; the very same when the program has set its own. */
export function withUserAgent(headers: RequestHeaders, agent: string | undefined): RequestHeaders {
  if (agent === undefined || userAgentOf(headers) !== undefined) return headers;
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

/** The part of a Node stream that is called here. */
interface Emitter {
  on(event: "error", listener: (error: unknown) => void): unknown;
  off(event: "error", listener: (error: unknown) => void): unknown;
}

/**
 * Calls `onError` when the body of a waiting request fails. The returned function ends that.
 *
 * undici listens to a stream from the moment it has it. Until then an error that has no listener would end the process.
 * Bodies that are no Node stream do nothing before they are read.
 */
export function watchBody(body: unknown, onError: (error: unknown) => void): () => void {
  if (!isEmitter(body)) return () => undefined;
  body.on("error", onError);
  return () => body.off("error", onError);
}

function isEmitter(value: unknown): value is Emitter {
  if (typeof value !== "object" || value === null || !("on" in value) || !("off" in value)) return false;
  return typeof value.on === "function" && typeof value.off === "function";
}
