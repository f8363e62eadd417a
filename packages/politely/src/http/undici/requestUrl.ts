import type { DispatchOptions } from "./dispatchTypes.js";

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
