import { type Hop, isRedirect, nextHop, refuseCredentials } from "../redirect.js";
import type { AxiosConfig, AxiosResponse, Credentials, RedirectOptions } from "./client.js";

/** Where an answer leads. */
export interface Lead {
  readonly location: string;
  /** Whose rules hold: those axios follows redirects by in Node, or those of the fetch standard. */
  readonly rules: "node" | "fetch";
}

/** The lead of an answer that came through Node's transport: there axios follows every 3xx that has a location, also a 304. */
export function nodeLead(status: number, location: string | undefined): Lead | undefined {
  if (status < 300 || status >= 400 || location === undefined || location === "") return undefined;
  return { location, rules: "node" };
}

/** The lead of an answer that came another way. */
export function fetchLead(status: number, location: string | undefined): Lead | undefined {
  return isRedirect(status) && location !== undefined ? { location, rules: "fetch" } : undefined;
}

/**
 * The request that follows a redirect. Credentials, and what `sensitiveHeaders` names, stay with their origin.
 *
 * Throws what the caller's `beforeRedirect` throws, and when the location is no URL, or the body is a stream that is
 * already sent.
 */
export function nextConfig(config: AxiosConfig, url: string, response: AxiosResponse, lead: Lead): AxiosConfig {
  const hop = hopOf(config, url);
  const next = nextHop(hop, response.status, lead.location);
  if (lead.rules === "fetch") refuseCredentials(next, url);
  if (next.hasBody && isStream(config.data)) {
    throw new TypeError(`${url} redirects a request whose body is a stream, which cannot be sent twice.`);
  }
  const isElsewhere = new URL(url).origin !== new URL(next.url).origin;
  const headers = config.headers.concat();
  // The standard names the headers of a body; in Node axios drops all that look like one.
  const isBare = lead.rules === "node" && next.method !== hop.method;
  const isDropped = (name: string): boolean => !next.headers.has(name) || (isBare && name.startsWith("content-"));
  const dropped = [...hop.headers.keys()].filter(isDropped);
  for (const name of isElsewhere ? [...dropped, ...(config.sensitiveHeaders ?? [])] : dropped) headers.delete(name);
  const followed: AxiosConfig = {
    ...config,
    url: next.url,
    baseURL: undefined,
    params: undefined,
    method: next.method.toLowerCase(),
    headers,
    data: next.hasBody ? config.data : undefined,
    auth: isElsewhere ? undefined : (config.auth ?? credentialsOf(url)),
  };
  return config.beforeRedirect === undefined ? followed : { ...followed, ...asked(followed, hop, response) };
}

/** Whether a body can be sent only once. */
export function isStream(data: unknown): boolean {
  return typeof data === "object" && data !== null && ("pipe" in data || "getReader" in data);
}

/** The request as far as a redirect changes it. Of its headers only the names matter. */
function hopOf({ method = "get", headers, data }: AxiosConfig, url: string): Hop {
  const names = Object.keys(headers.toJSON()).map((name): [string, string] => [name, ""]);
  const hasBody = data !== undefined && data !== null;
  return { url, method: method.toUpperCase(), headers: new Headers(names), hasBody };
}

/** What the caller's `beforeRedirect` makes of the next request: it may change headers and place, or throw. */
function asked(config: AxiosConfig, hop: Hop, response: AxiosResponse): Pick<AxiosConfig, "url" | "headers"> {
  const { href, protocol, hostname, port, pathname, search } = new URL(config.url ?? "");
  const before = config.headers.toJSON();
  const path = `${pathname}${search}`;
  const method = (config.method ?? "get").toUpperCase();
  const options: RedirectOptions = { href, protocol, hostname, port, path, method, headers: { ...before } };
  const place = placeOf(options);
  const answer = { headers: response.headers, statusCode: response.status };
  config.beforeRedirect?.(options, answer, { url: hop.url, method: hop.method, headers: before });
  config.headers.clear();
  config.headers.set(options.headers);
  return { url: placeOf(options) === place ? href : placeOf(options), headers: config.headers };
}

function placeOf({ protocol, hostname, port, path }: RedirectOptions): string {
  return `${protocol}//${hostname}${port === "" ? "" : `:${port}`}${path}`;
}

/** What a URL says about who asks. Axios sends it along, and a location of the same origin usually leaves it out. */
function credentialsOf(url: string): Credentials | undefined {
  const { username, password } = new URL(url);
  if (username === "" && password === "") return undefined;
  return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
}
