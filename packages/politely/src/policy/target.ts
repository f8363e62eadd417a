import type { Target } from "../types.js";
import { closestName } from "./closestName.js";
import { cutPlainHost, type HostName, parseUrl, plainHostEnd, readHost, readHostOfUrl } from "./host.js";
import { isName, isPrintable, nameForm, reservedScopes } from "./names.js";
import { unwrap } from "./reading.js";
import { showValue } from "./showValue.js";
import type { ResolvedTarget } from "./types.js";

/** What decides the key of a target. */
export interface ResolverOptions {
  /** Makes the key from a URL; undefined where the host is the key. */
  readonly groupBy: ((url: URL) => string) | undefined;
  /** The `host:port` names that rules of the policy have. Only these ports are part of a key. */
  readonly portKeys: ReadonlySet<string>;
}

const maxScopes = 16;
const targetFields: readonly string[] = ["url", "host", "intent", "scopes"];
const noScopes: readonly string[] = [];
const defaultPorts: Record<string, number> = { "http:": 80, "https:": 443, "ws:": 80, "wss:": 443, "ftp:": 21 };

/** Makes the function that takes targets apart. It throws `TypeError` naming what is wrong with a target. */
export function createResolver(options: ResolverOptions): (target: Target) => ResolvedTarget {
  return (target) => {
    if (typeof target === "string") {
      return { key: keyOfText(target, options), intent: undefined, scopes: noScopes };
    }
    if (typeof target !== "object" || target === null || Array.isArray(target)) {
      throw new TypeError(`target must be a host name, a URL, or an object with url or host; got ${showValue(target)}`);
    }
    if (isUrl(target)) return { key: keyOfUrl(target, options), intent: undefined, scopes: noScopes };
    checkFields(target);
    const { intent, scopes } = target;
    if (intent !== undefined && !isName(intent)) {
      throw new TypeError(`target.intent must be a text ${nameForm}; got ${showValue(intent)}`);
    }
    return {
      key: keyOfObject(target, options),
      intent,
      scopes: scopes === undefined ? noScopes : checkedScopes(scopes),
    };
  };
}

function checkFields(target: object): void {
  const name = Object.keys(target).find((field) => !targetFields.includes(field));
  if (name === undefined) return;
  const close = closestName(name, targetFields);
  const hint = close === undefined ? `known are ${targetFields.join(", ")}` : `did you mean "${close}"?`;
  throw new TypeError(`target must not have a field ${showValue(name)}; ${hint}`);
}

function keyOfObject({ url, host }: Exclude<Target, string | URL>, options: ResolverOptions): string {
  if (url !== undefined && host !== undefined) throw new TypeError("target must have url or host, not both");
  if (host !== undefined) return keyOfHost(unwrap(readHost(host), "target.host"), undefined, options);
  if (typeof url === "string") return keyOfUrlText(url, options);
  if (typeof url === "object" && url !== null && isUrl(url)) return keyOfUrl(url, options);
  throw new TypeError(
    url === undefined ? "target must have url or host" : `target.url must be a URL; got ${showValue(url)}`,
  );
}

function keyOfText(text: string, options: ResolverOptions): string {
  if (text.includes("://")) return keyOfUrlText(text, options);
  const isPlain = plainHostEnd(text, 0) === text.length;
  const name = isPlain ? { host: text, port: undefined } : unwrap(readHost(text), "target");
  return keyOfHost(name, undefined, options);
}

function keyOfUrlText(text: string, options: ResolverOptions): string {
  const name = options.groupBy === undefined ? cutPlainHost(text) : undefined;
  if (name !== undefined) return keyOfHost(name, undefined, options);
  const url = parseUrl(text);
  if (url !== undefined) return keyOfUrl(url, options);
  const hint = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? "" : ". Write https:// in front";
  throw new TypeError(`target must be a valid URL; got ${showValue(text)}${hint}`);
}

function keyOfUrl(url: URL, options: ResolverOptions): string {
  const { hostname, port, protocol } = url;
  if (hostname === "") throw new TypeError(`target must be a URL with a host; got ${showValue(url.href)}`);
  // Only the schemes known to browsers have their hosts normalised; the others go through the same door as a bare host name.
  const host =
    protocol in defaultPorts
      ? unwrap(readHostOfUrl(hostname), "target's host")
      : unwrap(readHost(hostname), "target's host").host;
  return keyOfHost({ host, port: port === "" ? defaultPorts[protocol] : Number(port) }, url, options);
}

function keyOfHost({ host, port }: HostName, url: URL | undefined, { groupBy, portKeys }: ResolverOptions): string {
  if (groupBy === undefined && portKeys.size === 0) return host;
  const withPort = port === undefined ? host : `${host}:${port}`;
  if (groupBy === undefined) return portKeys.has(withPort) ? withPort : host;
  const key: unknown = groupBy(url ?? new URL(`http://${withPort}/`));
  if (typeof key === "string" && isPrintable(key)) return key;
  throw new TypeError(
    `groupBy must return a text that is not empty and has no control characters; got ${showValue(key)} for "${host}"`,
  );
}

function checkedScopes(scopes: unknown): readonly string[] {
  if (!Array.isArray(scopes) || scopes.length > maxScopes) {
    throw new TypeError(`target.scopes must be a list of at most ${maxScopes} names; got ${showValue(scopes)}`);
  }
  for (const scope of scopes as unknown[]) {
    if (!isName(scope)) throw new TypeError(`target.scopes must hold texts ${nameForm}; got ${showValue(scope)}`);
    if (reservedScopes.includes(scope)) {
      throw new TypeError(`target.scopes must not use a reserved name; got ${showValue(scope)}`);
    }
  }
  const distinct = new Set(scopes as readonly string[]);
  if (distinct.size !== scopes.length) throw new TypeError("target.scopes must not name a scope twice");
  return [...distinct];
}

/** Also true for the URL class of another realm or of a test environment, which `instanceof` does not know. */
function isUrl(value: object): value is URL {
  if (value instanceof URL) return true;
  const { href, hostname } = value as { readonly href?: unknown; readonly hostname?: unknown };
  return typeof href === "string" && typeof hostname === "string";
}
