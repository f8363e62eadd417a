import type { IncomingMessage } from "node:http";
import { endToEnd, type HeaderLines, listOf, valuesOf } from "./headerLines.js";
import { ProxyProblem } from "./proxyProblem.js";
import type { ProxyTarget } from "./target.js";

/** What a request is sent on with. */
export interface RequestHead {
  readonly lines: HeaderLines;
  readonly hasBody: boolean;
}

/** What the head of a request is made from. */
export interface RequestHeadOptions {
  readonly maxBodyBytes: number;
  /** How this proxy names itself in `Via`. */
  readonly pseudonym: string;
  /** Whether an `Authorization` is for the proxy itself, and stays here. */
  readonly isOurs: (authorization: string) => boolean;
}

/** Sent without a word on the length when there is no body; for others a site may wait for one. */
const BODILESS: ReadonlySet<string | undefined> = new Set(["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"]);
/** What `Max-Forwards` is about: RFC 9110, section 7.6.2. */
const COUNTED: ReadonlySet<string | undefined> = new Set(["OPTIONS", "TRACE"]);

/**
 * Checks what could be read in two ways, and makes the headers to send on. Throws a problem: 400 for two hosts or none, 405 for a TRACE or OPTIONS that is to go no
 * further, 417 for an expectation but 100-continue, 501 for an upgrade or an encoding that is not "chunked", 413 for a body that is known to be too large, 508 for a request that has been here.
 */
export function requestHead(request: IncomingMessage, target: ProxyTarget, options: RequestHeadOptions): RequestHead {
  const { rawHeaders, method } = request;
  checkHead(request, options);
  const dropped = new Set(["host", "content-length", "expect"]);
  if (target.isAnonymous) dropped.add("authorization").add("cookie");
  const own = target.form === "gateway" ? gatewayOrigin(request) : undefined;

  const [length] = valuesOf(rawHeaders, "content-length");
  const isChunked = valuesOf(rawHeaders, "transfer-encoding").length > 0;
  const lines = ["Host", target.origin.slice(target.origin.indexOf("//") + 2)];
  const kept = endToEnd(rawHeaders, dropped);
  for (let index = 0; index < kept.length; index += 2) {
    const value = translated(kept[index], kept[index + 1], { method, target, own, isOurs: options.isOurs });
    if (value !== undefined) lines.push(kept[index], value);
  }
  // The framing is ours, whatever Connection says of these two.
  if (isChunked) lines.push("Transfer-Encoding", "chunked");
  else if (length !== undefined) lines.push("Content-Length", length.trim());
  else if (!BODILESS.has(method)) lines.push("Content-Length", "0");
  lines.push("Via", `${request.httpVersion} ${options.pseudonym}`);
  return { lines, hasBody: isChunked || (length !== undefined && Number(length) > 0) };
}

/** The origin under which a client reached the gateway: what pages that came through it would name. */
export function gatewayOrigin(request: IncomingMessage): string {
  return `http://${(request.headers.host ?? "").toLowerCase()}`;
}

function checkHead(request: IncomingMessage, { maxBodyBytes, pseudonym }: RequestHeadOptions): void {
  const { rawHeaders } = request;
  const hosts = valuesOf(rawHeaders, "host").length;
  if (hosts > 1) throw malformed("The request has more than one Host header");
  if (hosts === 0 && request.httpVersion !== "1.0") throw malformed("The request has no Host header");
  const encodings = listOf(rawHeaders, "transfer-encoding");
  const lengths = valuesOf(rawHeaders, "content-length");
  // Node's parser refuses these two already; what frames a body is worth a second look.
  if (lengths.length > 1 || (lengths.length > 0 && encodings.length > 0)) {
    throw malformed("The request says in two ways how long its body is");
  }
  if (encodings.length > 0 && (encodings.length > 1 || encodings[0] !== "chunked")) {
    throw new ProxyProblem(501, 'The only Transfer-Encoding that is passed on is "chunked".');
  }
  const upgrade = listOf(rawHeaders, "upgrade");
  // Clients offer h2c beside an ordinary request; leaving it unanswered is the usual no.
  if (upgrade.some((protocol) => protocol !== "h2c")) {
    throw new ProxyProblem(
      501,
      `The proxy does not pass on an upgrade to ${JSON.stringify(upgrade[0].slice(0, 40))}. Open a tunnel with CONNECT, or connect directly.`,
      { proxyError: "http_upgrade_failed" },
    );
  }
  if (listOf(rawHeaders, "expect").some((expected) => expected !== "100-continue")) {
    throw new ProxyProblem(417, "The only expectation that is met is 100-continue.");
  }
  if (COUNTED.has(request.method) && valuesOf(rawHeaders, "max-forwards").some((left) => /^0+$/.test(left))) {
    const detail = `With Max-Forwards: 0 the ${request.method} ends at this proxy, which answers none itself.`;
    throw new ProxyProblem(405, detail, { headers: { Allow: "GET, HEAD, POST, PUT, PATCH, DELETE" } });
  }
  if (lengths.length > 0 && Number(lengths[0]) > maxBodyBytes) throw tooLarge(maxBodyBytes);
  if (listOf(rawHeaders, "via").some((via) => via.split(/\s+/)[1] === pseudonym)) {
    throw new ProxyProblem(508, "The request has passed this proxy before: the target leads back to it.", {
      proxyError: "proxy_loop_detected",
    });
  }
}

/** The body is longer than the proxy passes on. */
export function tooLarge(maxBodyBytes: number): ProxyProblem {
  return new ProxyProblem(
    413,
    `The proxy passes on bodies of at most ${maxBodyBytes} bytes. Send it directly, paced by POST /v1/acquire or through a tunnel.`,
    { proxyError: "http_request_denied" },
  );
}

interface Translation extends Pick<RequestHeadOptions, "isOurs"> {
  readonly method: string | undefined;
  readonly target: ProxyTarget;
  /** The gateway's origin; undefined where the request came as a proxy's. */
  readonly own: string | undefined;
}

/** A header's value as the site gets it: what names the gateway names the site instead. Undefined when it does not get it. */
function translated(name: string, value: string, { method, target, own, isOurs }: Translation): string | undefined {
  switch (name.toLowerCase()) {
    case "authorization":
      return isOurs(value) ? undefined : value;
    case "origin":
      return value.toLowerCase() === own ? target.origin : value;
    case "referer":
      return referer(value, own);
    case "max-forwards":
      return COUNTED.has(method) && /^\d{1,9}$/.test(value) ? String(Number(value) - 1) : value;
    default:
      return value;
  }
}

/** Without user info, which may be the token. A page of the gateway that stands for no site is not mentioned. */
function referer(value: string, own: string | undefined): string | undefined {
  const outer = withoutUser(value);
  if (own === undefined || !outer.toLowerCase().startsWith(`${own}/`)) return outer;
  const inner = outer.slice(own.length + 1).replace(/^-\//, "");
  return /^https?:\/\//i.test(inner) ? withoutUser(inner) : undefined;
}

function withoutUser(url: string): string {
  return url.replace(/^((?:[a-z][a-z0-9+.-]*:)?\/\/)[^/?#]*@/i, "$1");
}

function malformed(detail: string): ProxyProblem {
  return new ProxyProblem(400, `${detail}.`, { proxyError: "http_request_error" });
}
