import { getDomain, getPublicSuffix } from "tldts";
import { isAddress, parseUrl, plainHostEnd, readHost } from "../../policy/host.js";
import { showValue } from "../../policy/showValue.js";

// The host is in its final form by then, so that tldts has nothing to cut out or to judge.
const lookup = { allowPrivateDomains: true, detectIp: false, extractHostname: false, validateHostname: false };

/**
 * Gives the registrable domain of a host, what somebody can register and own: `"example.co.uk"` for `"www.example.co.uk"`.
 *
 * By the Public Suffix List, with its private part: `"a.github.io"` is a domain of its own. Upper case, international names and a trailing
 * dot are normalised, and the answer is ASCII in lower case. A port is ignored, and a URL is asked about its host. Null for an IP address,
 * for a public suffix itself, for a name of one label such as `"localhost"`, and for text that is no host name.
 * Throws `TypeError` for anything but a text.
 */
export function registrableDomain(host: string): string | null {
  if (typeof host !== "string") throw new TypeError(`host must be a text; got ${showValue(host)}.`);
  const name = normalise(host);
  return name === undefined ? null : domainOf(name);
}

/**
 * Groups hosts by their registrable domain, for the `groupBy` of a policy: all subdomains of one owner share one key.
 *
 * A host without such a domain, an IP address or `localhost`, is a key of its own.
 */
export function byDomain(url: URL): string {
  const name = normalise(url.hostname) ?? url.hostname;
  return domainOf(name) ?? name;
}

function domainOf(name: string): string | null {
  return isAddress(name) || isInnerWildcard(name) ? null : getDomain(name, lookup);
}

/**
 * Whether a name is a public suffix by a wildcard, and has a wildcard of its own: `mtls.run.app`, by `*.run.app`, because of
 * `*.mtls.run.app`. tldts does not see the outer one then.
 */
function isInnerWildcard(name: string): boolean {
  return hasWildcard(name) && hasWildcard(name.slice(name.indexOf(".") + 1));
}

function hasWildcard(name: string): boolean {
  // A label that no rule names.
  const below = `a--a.${name}`;
  return getPublicSuffix(below, lookup) === below;
}

function normalise(host: string): string | undefined {
  if (plainHostEnd(host, 0) === host.length) return host;
  const reading = readHost(host.includes("://") ? (parseUrl(host)?.host ?? "") : host);
  return reading.ok ? reading.value.host : undefined;
}
