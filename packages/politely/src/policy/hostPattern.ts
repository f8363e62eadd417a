import { isAddress, readHost } from "./host.js";
import { bad, good, type Reading } from "./reading.js";
import { showValue } from "./showValue.js";

/** Which hosts an entry of the policy is for. */
export interface HostPattern {
  /** True for `"*.x.org"`: every subdomain of `host`, each on its own, and not `host` itself. */
  readonly isWildcard: boolean;
  readonly host: string;
  /** Only requests to this port; undefined for all. */
  readonly port: number | undefined;
  /** The pattern in the one form it is compared in: `"x.org"`, `"*.x.org"`, `"x.org:8443"`. */
  readonly name: string;
}

/** Reads a key of `hosts`: a host name, a host name with a port, or `*.` and a host name for its subdomains. */
export function readHostPattern(text: string): Reading<HostPattern> {
  const bare = bareHost(text);
  if (bare !== text && readHostPattern(bare).ok) {
    return bad(
      `must be a host name without a scheme, a user name or a path; got ${showValue(text)}; did you mean "${bare}"?`,
    );
  }
  if (text === "*") return bad('must name hosts; got "*". For every other host use default');
  const isWildcard = text.startsWith("*.");
  const rest = isWildcard ? text.slice(2) : text;
  if (rest.includes("*")) {
    return bad(`must have its * in front and followed by a dot, as in "*.example.com"; got ${showValue(text)}`);
  }
  const reading = readHost(rest);
  if (!reading.ok) return reading;

  const { host, port } = reading.value;
  if (isWildcard && isAddress(host)) return bad(`must not have a * before an address; got ${showValue(text)}`);
  if (isWildcard && port !== undefined) return bad(`must not name a port after a *; got ${showValue(text)}`);
  const name = (isWildcard ? "*." : "") + host + (port === undefined ? "" : `:${port}`);
  return good({ isWildcard, host, port, name });
}

/** Cuts the host, with its port, out of a URL or of what is left of one without its scheme. */
function bareHost(text: string): string {
  return text
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, "")
    .replace(/[/?#\\].*$/s, "")
    .replace(/^.*@/s, "");
}

/** The hosts of some entries, for looking one up fast. */
export interface PatternTable<Entry> {
  readonly exact: Map<string, Entry>;
  /** By the part after `*.`. */
  readonly wildcards: Map<string, Entry>;
}

/** Makes a table without entries. */
export function createPatternTable<Entry>(): PatternTable<Entry> {
  return { exact: new Map(), wildcards: new Map() };
}

/** Adds an entry; one that is there already stays. */
export function addPattern<Entry>(table: PatternTable<Entry>, pattern: HostPattern, entry: Entry): void {
  const map = pattern.isWildcard ? table.wildcards : table.exact;
  const name = pattern.isWildcard ? pattern.host : pattern.name;
  if (!map.has(name)) map.set(name, entry);
}

/** Finds the most specific entry: the key itself, its host without the port, then the longest `*.` that fits. */
export function findPattern<Entry>(table: PatternTable<Entry>, key: string, host: string): Entry | undefined {
  const exact = table.exact.get(key) ?? (host === key ? undefined : table.exact.get(host));
  if (exact !== undefined || table.wildcards.size === 0) return exact;
  for (let dot = host.indexOf("."); dot !== -1; dot = host.indexOf(".", dot + 1)) {
    const entry = table.wildcards.get(host.slice(dot + 1));
    if (entry !== undefined) return entry;
  }
  return undefined;
}
