import { isIP } from "node:net";
import type { onRequestHookHandler } from "fastify";
import { Secret } from "../secret.js";
import { ProblemError } from "./problem.js";

/** Whom the service answers. */
export interface GuardOptions {
  /** Names under which the service may be called, beside its address and localhost. */
  readonly allowedHosts: readonly string[];
}

/**
 * Checks that a request means this service: `Host` names the address it came in at, localhost or an allowed name, so that no site can reach it under a
 * name of its own; and `Origin`, if a browser sends one with anything but a GET, is that of the service.
 *
 * Where the address is not known, since the connection has gone already, only names count.
 */
export function hostGuard({ allowedHosts }: GuardOptions): onRequestHookHandler {
  const allowed = new Set(["localhost", ...allowedHosts.map((name) => name.toLowerCase())]);
  // Who calls mostly calls in the same way as the one before.
  let last: { readonly host: string | undefined; readonly localAddress: string | undefined } | undefined;
  return (request, _reply, done) => {
    const { headers, method, socket } = request.raw;
    const { host } = headers;
    const { localAddress } = socket;
    const isKnown = last !== undefined && last.host === host && last.localAddress === localAddress;
    if (!isKnown && !isMeant(host, localAddress, allowed)) {
      const detail = `Host "${host ?? ""}" is not a name of this service. Call it by its address, or start it with --allow-host.`;
      done(new ProblemError(421, detail, { code: "host" }));
      return;
    }
    if (!isKnown) last = { host, localAddress };
    const { origin } = headers;
    if (origin !== undefined && method !== "GET" && method !== "HEAD" && !isOwn(origin, host)) {
      done(new ProblemError(403, "Another site's page may not do this.", { code: "origin" }));
      return;
    }
    done();
  };
}

/** Checks the token. */
export function tokenGuard(token: string): onRequestHookHandler {
  const secret = new Secret(token);
  return (request, _reply, done) => {
    const given = tokenIn(request.headers.authorization);
    if (given !== undefined && secret.is(given)) {
      done();
      return;
    }
    const detail = given === undefined ? "Send Authorization: Bearer and the token." : "The token is wrong.";
    done(new ProblemError(401, detail, { code: "token" }));
  };
}

/** The token of an `Authorization: Bearer …`; undefined where there is none. Takes time in proportion to the header's length. */
export function tokenIn(authorization: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
}

/** Whether an address is of this machine only: 127.0.0.0/8, ::1 or localhost. */
export function isLoopback(host: string): boolean {
  return host.toLowerCase() === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

function isMeant(host: string | undefined, localAddress: string | undefined, allowed: ReadonlySet<string>): boolean {
  if (host === undefined) return false;
  const name = host.replace(/:\d{1,5}$/, "").toLowerCase();
  if (allowed.has(name)) return true;
  if (localAddress === undefined) return false;
  const address = localAddress.startsWith("::ffff:") ? localAddress.slice(7) : localAddress;
  return name === address || name === `[${address}]`;
}

/** Whether an origin has the host and port that the request was sent to. */
function isOwn(origin: string, host: string | undefined): boolean {
  const [, own] = /^https?:\/\/([^/]+)$/i.exec(origin) ?? [];
  return own !== undefined && own.toLowerCase() === host?.toLowerCase();
}
