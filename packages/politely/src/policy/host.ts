import { bad, good, type Reading, unwrap } from "./reading.js";
import { showValue } from "./showValue.js";

/** A host name in the one form it is compared in, and the port that was written after it. */
export interface HostName {
  /** Lower-case, ASCII, without a trailing dot; an IPv6 address in brackets. */
  readonly host: string;
  readonly port: number | undefined;
}

const maxHostLength = 253;
const maxLabelLength = 63;
const localAddress = /^(127(\.\d+){3}|0\.0\.0\.0|\[::(1|ffff:(7f[^:]{2}:[^:]+|0:0))?\])$/;

/** What no host name has, and how that is said. URL parsing would drop blanks and control characters without a word. */
const neverInHosts: readonly (readonly [RegExp, string])[] = [
  [/^$/, "must not be empty"],
  [/^.{2049}/s, "must be at most 2048 characters long"],
  [/:\/\//, "must be a host name without a scheme"],
  [/[\s\p{Cc}]/u, "must not have blanks or control characters in it"],
  [/[/?#\\]/, "must be a host name without a path (for a URL, write https:// in front)"],
  [/@/, "must be a host name without a user name"],
];

/**
 * A host at the beginning of a text that is already in its final form, for cutting it out without building a `URL`.
 *
 * Certain are only names of `a-z 0-9 . -` that end at the end of the text or at one of `/ ? # :`, have no empty part, no part in punycode
 * (which would have to be checked) and no last part that begins with a digit (which may be an IPv4 address).
 */
const plainHost = `(?:(?!xn--)[a-z0-9-]{1,${maxLabelLength}}\\.)*(?!xn--|\\d)[a-z0-9-]{1,${maxLabelLength}}(?=[/?#:]|$)`;
const plainHostHere = new RegExp(plainHost, "y");
const plainUrl = new RegExp(`^http(s?)://(${plainHost})(?::(\\d{1,5}))?(?=[/?#]|$)`);

/**
 * Brings a host name into the one form it is compared in.
 *
 * Upper case, international names, a trailing dot and the many ways to write an IP address all come out the same, as in a URL.
 * Throws `TypeError` naming what is wrong with anything that is not a host name, with or without a port.
 */
export function normaliseHost(text: string): HostName {
  return unwrap(readHost(text), "host");
}

/** Reads a host name; see `normaliseHost`. An IPv6 address may come without brackets when no port follows. */
export function readHost(text: unknown): Reading<HostName> {
  const problem = (rule: string): Reading<never> => bad(`${rule}; got ${showValue(text)}`, true);
  if (typeof text !== "string") return problem("must be a host name");
  const never = neverInHosts.find(([pattern]) => pattern.test(text));
  if (never !== undefined) return problem(never[1]);

  // Two colons and no brackets: an IPv6 address as some programs write it, whose last part is no port.
  const isBareAddress = /^(?!\[)(?!.*\]$).*:.*:/.test(text);
  const [, name = text, portText] = (!isBareAddress && /^(.*):([^:]*(?<!\]))$/.exec(text)) || [];
  const port = portText === undefined ? undefined : Number(portText);
  if (portText !== undefined && (!/^\d{1,5}$/.test(portText) || Number(portText) > 65_535)) {
    return problem("must have a port from 0 to 65535 after the colon");
  }
  const url = parseUrl(`http://${isBareAddress ? `[${name}]` : name}/`);
  if (url === undefined) return problem('must be a host name such as "example.com"');
  const host = readHostOfUrl(url.hostname);
  return host.ok ? good({ host: host.value, port }) : host;
}

/** Finishes a host name that a URL has already made lower-case and ASCII: drops one trailing dot, checks lengths and labels. */
export function readHostOfUrl(hostname: string): Reading<string> {
  if (hostname.startsWith("[")) return good(hostname);
  const host = hostname.replace(/\.$/, "");
  const labels = host.split(".");
  const problem = (rule: string, got = host): Reading<never> => bad(`must ${rule}; got ${showValue(got)}`, true);
  if (host.length > maxHostLength) return problem(`be at most ${maxHostLength} characters long`);
  if (!/^[a-z0-9._-]*$/.test(host)) return problem("be made of letters, digits, dots, hyphens and underscores");
  if (labels.includes("")) return problem("not have an empty part between its dots", hostname);
  return labels.some((label) => label.length > maxLabelLength)
    ? problem(`have at most ${maxLabelLength} characters between two dots`)
    : good(host);
}

/** Parses a URL; undefined when it is not one. */
export function parseUrl(text: string): URL | undefined {
  // `URL.canParse` would parse twice, and is missing in older browsers.
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** Finds where a host that is already in its final form ends, else -1. */
export function plainHostEnd(text: string, start: number): number {
  plainHostHere.lastIndex = start;
  const isPlain = plainHostHere.test(text) && plainHostHere.lastIndex - start <= maxHostLength;
  return isPlain ? plainHostHere.lastIndex : -1;
}

/** Cuts host and port out of a URL that is already in its final form; undefined when only a URL parser can tell. */
export function cutPlainHost(text: string): HostName | undefined {
  const match = plainUrl.exec(text);
  if (match === null) return undefined;
  const [, secure, host, portText = secure === "" ? "80" : "443"] = match;
  const port = Number(portText);
  return host.length <= maxHostLength && port <= 65_535 ? { host, port } : undefined;
}

/**
 * Tells whether a normalised host is this machine: localhost, its subdomains, 127.0.0.0/8, ::1, and the unspecified addresses 0.0.0.0 and ::,
 * to which nothing leaves it; IPv4 addresses also as IPv6 writes them.
 */
export function isLocalhost(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || localAddress.test(host);
}

/** Tells whether a normalised host is an IP address. */
export function isAddress(host: string): boolean {
  return host.startsWith("[") || /^\d+\.\d+\.\d+\.\d+$/.test(host);
}

/** Drops the port of a key, if it has one: `"example.com:8443"` gives `"example.com"`. */
export function withoutPort(key: string): string {
  const colon = key.lastIndexOf(":");
  return colon > 0 && /^\d{1,5}$/.test(key.slice(colon + 1)) ? key.slice(0, colon) : key;
}
