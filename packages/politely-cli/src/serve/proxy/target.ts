import type { IncomingMessage } from "node:http";
import { ProxyProblem } from "./proxyProblem.js";

/** How a request reached the proxy: as a proxy's (`http_proxy`), or under a path of its own. */
export type Form = "proxy" | "gateway";

/** Where a request goes. */
export interface ProxyTarget {
  readonly form: Form;
  readonly isSecure: boolean;
  /** As a URL writes it: lower case, ASCII, IPv6 in brackets. */
  readonly hostname: string;
  readonly port: number;
  /** `https://example.com`, with the port where it is not the usual one. What the limiter counts goes by this. */
  readonly origin: string;
  /** Path and query as they were sent, never empty. */
  readonly path: string;
  /** Authorization and cookies stay behind: the request follows a redirect from another origin. */
  readonly isAnonymous: boolean;
}

/** Stands before a gateway URL whose request sends neither Authorization nor cookies. */
const ANONYMOUS = "/-";

// No user info, and nothing that two readers could take for different hosts: a backslash, or a second "@".
const ABSOLUTE = /^(https?):\/\/([A-Za-z0-9._~%:[\]-]+)([/?][^#]*)?$/i;
const AUTHORITY = /^([A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})$/;

/** Reads the request line's target. Throws a 400 or 404 that says how to write it. */
export function readTarget(text: string): ProxyTarget {
  if (!text.startsWith("/")) return readAbsolute(text, "proxy", false);
  const isAnonymous = text.startsWith(`${ANONYMOUS}/`);
  const inner = text.slice(isAnonymous ? ANONYMOUS.length + 1 : 1);
  if (/^https?:\/\//i.test(inner)) return readAbsolute(inner, "gateway", isAnonymous);
  throw new ProxyProblem(
    404,
    "This is the pacing proxy. Use it as http_proxy, or write the whole URL behind its address: http://127.0.0.1:8788/https://example.com/path",
  );
}

/** Reads `host:port` of a CONNECT. Throws a 400. */
export function readAuthority(text: string): { readonly hostname: string; readonly port: number } {
  const [, host, port] = AUTHORITY.exec(text) ?? [];
  const url = host === undefined ? undefined : parsed(`https://${host}:${port}`);
  if (url === undefined) throw malformed("CONNECT needs a host and a port: CONNECT example.com:443");
  return { hostname: url.hostname, port: portOf(url) };
}

/** The site that a request line names, without a path: `https://example.com`, or `example.com:443` of a CONNECT. Undefined when it names none. */
export function siteOf({ method, url = "" }: Pick<IncomingMessage, "method" | "url">): string | undefined {
  try {
    if (method !== "CONNECT") return readTarget(url).origin;
    const { hostname, port } = readAuthority(url);
    return `${hostname}:${port}`;
  } catch {
    return undefined;
  }
}

/** How a URL is written for the gateway, as a path that a client resolves against it. */
export function gatewayPath(url: URL, isAnonymous: boolean): string {
  return `${isAnonymous ? ANONYMOUS : ""}/${url.href}`;
}

/** A host name as a socket takes it: without the brackets of IPv6. */
export function socketHost(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}

function readAbsolute(text: string, form: Form, isAnonymous: boolean): ProxyTarget {
  const [, scheme, authority, rest = "/"] = ABSOLUTE.exec(text) ?? [];
  const url = authority === undefined ? undefined : parsed(`${scheme}://${authority}`);
  if (url === undefined || url.pathname !== "/") {
    throw malformed(
      "The target must be http:// or https:// with a host, without user info and fragment; credentials belong in Authorization",
    );
  }
  return {
    form,
    isSecure: url.protocol === "https:",
    hostname: url.hostname,
    port: portOf(url),
    origin: url.origin,
    // A proxy passes path and query on as they are; only what is missing is added.
    path: rest.startsWith("?") ? `/${rest}` : rest,
    isAnonymous,
  };
}

function parsed(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url === undefined || url.hostname === "" || url.port === "0" ? undefined : url;
}

function portOf({ port, protocol }: URL): number {
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}

function malformed(detail: string): ProxyProblem {
  return new ProxyProblem(400, `${detail}.`, { proxyError: "http_request_error" });
}
