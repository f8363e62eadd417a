import { parseUrl } from "../../policy/host.js";
import { showValue } from "../../policy/showValue.js";
import { octetsOf } from "./octets.js";
import { normalisePath } from "./percent.js";

const scheme = /^[a-z][a-z\d+.-]*:\/\//i;

/**
 * Gives path and query of a URL in the form in which they are compared with rules; the fragment is dropped, and an empty path is `/`.
 *
 * The URL is read as `fetch` reads it, so that `/a/../b` is about what is really sent, `/b`. A text that begins with `/` is a path,
 * and one without a scheme begins with a host. Text that no URL parser takes is compared as it is written.
 * Throws `TypeError` for anything but a text and a `URL`.
 */
export function pathOfUrl(url: string | URL): string {
  const href = hrefOf(url);
  const start = scheme.exec(href)?.[0].length ?? 0;
  const hash = href.indexOf("#", start);
  const rest = href.slice(start, hash === -1 ? href.length : hash);
  const pathStart = rest.search(/[/?]/);
  const path = pathStart === -1 ? "" : rest.slice(pathStart);
  const rooted = path.startsWith("/") ? path : `/${path}`;
  return normalisePath(/[^\0-\x7F]/.test(rooted) ? octetsOf(rooted) : rooted);
}

function hrefOf(url: string | URL): string {
  const given: unknown = typeof url === "string" ? url : url?.href;
  if (typeof given !== "string") throw new TypeError(`url must be a text or a URL; got ${showValue(url)}.`);
  const text = given.trim();
  if (text.startsWith("/")) return absoluteHref(`http://host${text}`);
  const direct = parseUrl(text);
  // Without a host it may still be one with a port, whose name passes for a scheme: localhost:8080/a
  if (direct !== undefined && direct.host !== "") return direct.href;
  return absoluteHref(scheme.test(text) ? text : `http://${text}`);
}

function absoluteHref(text: string): string {
  return parseUrl(text)?.href ?? text;
}
