import { bad, good, type Reading, wrongType } from "./reading.js";
import { showValue } from "./showValue.js";

/** A host name in the one form it is compared in, and the port that was written after it. */
export interface HostName {
  /** Lower-case, ASCII, without a trailing dot; an IPv6 address in brackets. */
  readonly host: string;
  readonly port: number | undefined;
}

const maxTextLength = 2_048;
const maxHostLength = 253;
const maxLabelLength = 63;
const localAddress = /^(127(\.\d+){3}|0\.0\.0\.0|\[::(1|ffff:(7f[^:]{2}:[^:]+|0:0))?\])$/;

/**
 * Brings a host name into the one form it is compared in.
 *
 * Upper case, international names, a trailing dot and the many ways to write an IP address all come out the same, as in a URL.
 * Throws `TypeError` naming what is wrong with anything that is not a host name, with or without a port.
 */
export function normaliseHost(text: string): HostName {
  const reading = readHost(text);
  if (reading.ok) return reading.value;
  throw new TypeError(`host ${reading.problem}`);
}

/** Reads a host name; see `normaliseHost`. An IPv6 address may come without brackets when no port follows. */
export function readHost(text: unknown): Reading<HostName> {
  if (typeof text !== "string") return wrongType(`must be a host name; got ${showValue(text)}`);
  const problem = problemOfText(text);
  if (problem !== undefined) return wrongType(`${problem}; got ${showValue(text)}`);

  const { name, portText } = splitPort(text);
  const port = portText === undefined ? undefined : Number(portText);
  if (portText !== undefined && (!/^\d{1,5}$/.test(portText) || Number(portText) > 65_535)) {
    return wrongType(`must have a port from 0 to 65535 after the colon; got ${showValue(text)}`);
  }
  const url = parseUrl(`http://${name}/`);
  if (url === undefined) return wrongType(`must be a host name such as "example.com"; got ${showValue(text)}`);
  const host = readHostOfUrl(url.hostname);
  return host.ok ? good({ host: host.value, port }) : host;
}

/** Finishes a host name that a URL has already made lower-case and ASCII: drops one trailing dot, checks lengths and labels. */
export function readHostOfUrl(hostname: string): Reading<string> {
  if (hostname.startsWith("[")) return good(hostname);
  const host = hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  if (host.length > maxHostLength) {
    return bad(`must be at most ${maxHostLength} characters long; got ${showValue(host)}`);
  }
  if (!/^[a-z0-9._-]*$/.test(host)) {
    return bad(`must be made of letters, digits, dots, hyphens and underscores; got ${showValue(host)}`);
  }
  const labels = host.split(".");
  if (labels.includes("")) return bad(`must not have an empty part between its dots; got ${showValue(hostname)}`);
  if (labels.some((label) => label.length > maxLabelLength)) {
    return bad(`must have at most ${maxLabelLength} characters between two dots; got ${showValue(host)}`);
  }
  return good(host);
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

/**
 * Finds where a host that is already in its final form ends, so that it can be cut out without building a `URL`; else -1.
 *
 * Certain are only names of `a-z 0-9 . -` that end at the end of the text or at one of `/ ? # :`, are not too long, have no empty part,
 * no part in punycode (which would have to be checked) and no last part that begins with a digit (which may be an IPv4 address).
 */
export function plainHostEnd(text: string, start: number): number {
  let labelStart = start;
  let index = start;
  for (; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if ((code >= 97 && code <= 122) || (code >= 48 && code <= 57) || code === 45) continue;
    if (code !== 46) {
      // slash, question mark, number sign, colon
      if (code === 47 || code === 63 || code === 35 || code === 58) break;
      return -1;
    }
    if (!isPlainLabel(text, labelStart, index)) return -1;
    labelStart = index + 1;
  }
  if (!isPlainLabel(text, labelStart, index) || index - start > maxHostLength) return -1;
  const first = text.charCodeAt(labelStart);
  return first >= 48 && first <= 57 ? -1 : index;
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

function isPlainLabel(text: string, start: number, end: number): boolean {
  return end > start && end - start <= maxLabelLength && !text.startsWith("xn--", start);
}

function problemOfText(text: string): string | undefined {
  if (text === "") return "must not be empty";
  if (text.length > maxTextLength) return `must be at most ${maxTextLength} characters long`;
  if (text.includes("://")) return "must be a host name without a scheme";
  // URL parsing would drop some of these without a word.
  if (/[\s\p{Cc}]/u.test(text)) return "must not have blanks or control characters in it";
  if (/[/?#\\]/.test(text)) return "must be a host name without a path (for a URL, write https:// in front)";
  if (text.includes("@")) return "must be a host name without a user name";
  return undefined;
}

function splitPort(text: string): { readonly name: string; readonly portText: string | undefined } {
  const colon = text.lastIndexOf(":");
  if (colon === -1 || text.endsWith("]")) return { name: text, portText: undefined };
  // Two colons and no brackets: an IPv6 address as some programs write it, whose last part is no port.
  if (text.indexOf(":") !== colon && !text.startsWith("[")) return { name: `[${text}]`, portText: undefined };
  return { name: text.slice(0, colon), portText: text.slice(colon + 1) };
}
