import { REDIRECT_CODE } from "./failure.js";

/** A request as far as a redirect changes it. */
export interface Hop {
  /** Without a user name and password, those of a first request aside. */
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  /** Whether there is a body to send. */
  readonly hasBody: boolean;
  /** Whether the way here has left an origin. */
  readonly hasCrossed?: boolean;
  /** Whether the location has a user name or password. They are sent nowhere. */
  readonly hasCredentials?: boolean;
}

/** How many redirects are followed, as the fetch standard has it. */
export const MAX_REDIRECTS = 20;

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
const BODY_HEADERS = ["content-encoding", "content-language", "content-location", "content-type", "content-length"];
/** What proves who is asking must not reach another origin. */
const CREDENTIAL_HEADERS = ["authorization", "proxy-authorization", "cookie", "host"];

/** Whether a status sends the client elsewhere, given a Location. */
export function isRedirect(status: number): boolean {
  return REDIRECTS.includes(status);
}

/**
 * The request that follows a redirect, by the rules of the fetch standard: 303, and 301 or 302 to a POST, become GET without
 * a body; credentials stay with their origin; a fragment is kept unless the location has its own. The bytes of a location are
 * read as UTF-8.
 *
 * Throws `TypeError` when the location is no URL or not one of http or https.
 */
export function nextHop(hop: Hop, status: number, location: string): Hop {
  const from = new URL(hop.url);
  const to = locationOf(location, from);
  if (to.hash === "") to.hash = from.hash;
  const hasCredentials = to.username !== "" || to.password !== "";
  to.username = "";
  to.password = "";
  const isRewritten =
    ((status === 301 || status === 302) && hop.method === "POST") ||
    (status === 303 && hop.method !== "GET" && hop.method !== "HEAD");
  const headers = new Headers(hop.headers);
  if (isRewritten) for (const name of BODY_HEADERS) headers.delete(name);
  const isCrossing = from.origin !== to.origin;
  if (isCrossing) for (const name of CREDENTIAL_HEADERS) headers.delete(name);
  return {
    url: to.href,
    method: isRewritten ? "GET" : hop.method,
    headers,
    hasBody: hop.hasBody && !isRewritten,
    hasCrossed: isCrossing || hop.hasCrossed === true,
    hasCredentials,
  };
}

/** Throws `TypeError` for a hop whose location has a user name or password: the standard follows none. `from` is where it was told. */
export function refuseCredentials({ hasCredentials }: Hop, from: string): void {
  if (hasCredentials !== true) return;
  throw networkError(`${from} redirects to a URL with a user name or password, which fetch does not follow`);
}

function locationOf(location: string, from: URL): URL {
  let url: URL;
  try {
    url = new URL(asUtf8(location), from);
  } catch (cause) {
    throw networkError(`${from.host} redirects to "${shownLocation(location)}", which is no URL`, cause);
  }
  if (url.protocol === "http:" || url.protocol === "https:") return url;
  throw networkError(`${from.host} redirects to ${url.protocol} instead of http or https`);
}

/** A location for people: at most 200 characters of it, and no password. */
export function shownLocation(location: string): string {
  return location.slice(0, 200).replace(/^([^/?#]*[/\\]{2})[^/\\?#]*@/, "$1");
}

/** Headers arrive with one character for each byte. A location with characters beyond bytes did not come over the wire. */
function asUtf8(location: string): string {
  let isPlain = true;
  for (let index = 0; index < location.length; index++) {
    const code = location.charCodeAt(index);
    if (code > 0xff) return location;
    if (code > 0x7e) isPlain = false;
  }
  if (isPlain) return location;
  const bytes = Uint8Array.from(location, (character) => character.charCodeAt(0));
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

/**
 * A redirect that cannot be followed, in the form in which `fetch` reports a failure.
 *
 * Its cause has the code `POLITELY_REDIRECT`, by which it is known not to be the network's fault.
 */
export function networkError(message: string, cause?: unknown): TypeError {
  const why = new Error(message, cause === undefined ? undefined : { cause });
  return new TypeError("fetch failed", { cause: Object.assign(why, { code: REDIRECT_CODE }) });
}
