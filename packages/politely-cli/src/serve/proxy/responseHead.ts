import type { IncomingMessage } from "node:http";
import { endToEnd, type HeaderLines, listOf, valuesOf } from "./headerLines.js";
import { ProxyProblem } from "./proxyProblem.js";
import { gatewayPath, type ProxyTarget } from "./target.js";

/** What the head of an answer is made from. */
export interface ResponseHeadOptions {
  readonly target: ProxyTarget;
  /** The request brought Authorization or cookies along. */
  readonly hasCredentials: boolean;
  readonly waitedMs: number;
  readonly pseudonym: string;
}

/** These speak of the whole origin, which all sites of the gateway share. */
const OF_THE_ORIGIN: ReadonlySet<string> = new Set(["alt-svc", "strict-transport-security", "clear-site-data"]);
/** Attributes of a cookie that the gateway sets itself, and `Secure` with what a client takes only beside it. */
const NOT_OF_THE_GATEWAY: ReadonlySet<string> = new Set(["path", "domain", "secure", "partitioned"]);
const NONE: ReadonlySet<string> = new Set();

/** Makes the headers that an answer is passed on with. Throws a 502 when its length can be read in two ways. */
export function responseHead(answer: IncomingMessage, options: ResponseHeadOptions): HeaderLines {
  const { rawHeaders } = answer;
  const encodings = listOf(rawHeaders, "transfer-encoding");
  const lengths = valuesOf(rawHeaders, "content-length");
  if (lengths.length > 1 || (encodings.length > 0 && (lengths.length > 0 || encodings.join() !== "chunked"))) {
    throw new ProxyProblem(502, "The site's answer says in two ways how long it is, or is encoded in an unknown way.", {
      proxyError: "http_protocol_error",
    });
  }
  const isGateway = options.target.form === "gateway";
  const kept = endToEnd(rawHeaders, isGateway ? OF_THE_ORIGIN : NONE);
  const lines = isGateway
    ? kept.map((value, index) => (index % 2 === 0 ? value : translated(kept[index - 1], value, options)))
    : kept;
  // Connection must not take the length away: the client would take a cut body for a whole one.
  if (lengths.length === 1 && valuesOf(lines, "content-length").length === 0) lines.push("Content-Length", lengths[0]);
  // A page that comes through the gateway has the gateway's origin: in a browser, it must be able to do nothing with it.
  if (isGateway) lines.push("Content-Security-Policy", "sandbox");
  lines.push("Via", `${answer.httpVersion} ${options.pseudonym}`);
  lines.push("Politely-Waited-Ms", String(Math.round(options.waitedMs)));
  return lines;
}

function translated(name: string, value: string, { target, hasCredentials }: ResponseHeadOptions): string {
  switch (name.toLowerCase()) {
    case "location":
    case "content-location":
      return location(value, target, hasCredentials);
    case "refresh":
      return refresh(value, target, hasCredentials);
    case "set-cookie":
      return cookie(value, target);
    default:
      return value;
  }
}

/** In gateway form, whatever form it had. What leads to another origin takes no credentials along: to the client it is the same host. */
function location(value: string, target: ProxyTarget, hasCredentials: boolean): string {
  const base = `${target.origin}${target.path}`;
  if (!URL.canParse(escaped(value), base)) return value;
  const url = new URL(escaped(value), base);
  if (url.protocol !== "http:" && url.protocol !== "https:") return value;
  // The gateway refuses user info, and a redirect has no business to set it.
  url.username = "";
  url.password = "";
  return gatewayPath(url, target.isAnonymous || (hasCredentials && url.origin !== target.origin));
}

/** With the bytes that are not ASCII escaped one by one: Node reads them as characters, and a URL would encode these anew. */
function escaped(value: string): string {
  return value.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** A redirect after some seconds: `5; url=/next`, in quotes or not. Whatever is written behind the seconds is taken for the URL, as browsers do. */
function refresh(value: string, target: ProxyTarget, hasCredentials: boolean): string {
  const [seconds] = value.split(/[^\d.]/, 1);
  const written = value
    .slice(seconds.length)
    .replace(/^[\s;,]+/, "")
    .replace(/^url\s*=\s*/i, "");
  const quote = written.charAt(0);
  const url = quote === '"' || quote === "'" ? written.slice(1).split(quote, 1)[0] : written;
  return url === "" ? value : `${seconds}; url=${location(url, target, hasCredentials)}`;
}

/** A cookie of one site, kept under that site's path: the client must not show it to another. */
function cookie(value: string, target: ProxyTarget): string {
  const [pair, ...attributes] = value.split(";");
  const named = (attribute: string): string => attribute.split("=", 1)[0].trim().toLowerCase();
  const given =
    attributes
      .findLast((attribute) => named(attribute) === "path")
      ?.split("=")
      .slice(1)
      .join("=")
      .trim() ?? "";
  // A semicolon would end the attribute.
  const [pathOnly] = target.path.split(/[?;]/, 1);
  const path = given.startsWith("/") ? given : pathOnly.slice(0, Math.max(1, pathOnly.lastIndexOf("/")));
  const isKept = (attribute: string): boolean =>
    !NOT_OF_THE_GATEWAY.has(named(attribute)) && !/^\s*samesite\s*=\s*none\s*$/i.test(attribute);
  const others = attributes.filter(isKept);
  return [pair, ...others, ` Path=${target.isAnonymous ? "/-" : ""}/${target.origin}${path}`].join(";");
}
