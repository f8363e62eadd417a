import { isAddress, readHost, withoutPort } from "./host.js";
import { bad, good, type Reading } from "./reading.js";
import { showValue } from "./showValue.js";

/** The longest name of an intent or a scope. */
export const maxNameLength = 200;
/** The characters no name may have, as they stand between the brackets of a regular expression: they separate names in our own tables. */
export const controlCharacters = "\\u0000-\\u001f\\u007f";
/** What a name must be, for messages. */
export const nameForm = `of 1 to ${maxNameLength} characters, none of them a control character`;
/** Names that a cost record uses for something else, so that no scope may have them. */
export const reservedScopes: readonly string[] = ["host", "intent", "global", "rate", "window", "quota"];

const controlCharacter = new RegExp(`[${controlCharacters}]`);

/** Tells whether a value can be the name of an intent or a scope: a text of 1 to 200 characters without control characters. */
export function isName(value: unknown): value is string {
  return typeof value === "string" && value.length <= maxNameLength && isPrintable(value);
}

/** Tells whether a text is not empty and has no control characters, whatever its length. */
export function isPrintable(text: string): boolean {
  return text !== "" && !controlCharacter.test(text);
}

/** Reads the name of an intent. */
export function readName(key: string): Reading<string> {
  return isName(key) ? good(key) : bad(`must be a name ${nameForm}; got ${showValue(key)}`);
}

/** Reads a key of `scopes`: a name, or the beginning of names and `*`. */
export function readScope(key: string): Reading<string> {
  if (key.slice(0, -1).includes("*")) return bad(`must have its * at the end, as in "proxy:*"; got ${showValue(key)}`);
  return reservedScopes.includes(key)
    ? bad(`must not be one of ${reservedScopes.join(", ")}; got ${showValue(key)}`)
    : readName(key);
}

/**
 * Reads a key of `hosts`: a host name, a host name with a port, or `*.` and a host name for its subdomains, each on its own and not the
 * host itself. Gives the one form it is compared in: `"x.org"`, `"*.x.org"`, `"x.org:8443"`.
 */
export function readHostPattern(text: string): Reading<string> {
  // The host, with its port, of a URL or of what is left of one without its scheme.
  const bare = text.replace(/^[a-z][a-z0-9+.-]*:\/\/|[/?#\\].*$/gis, "").replace(/^.*@/s, "");
  const got = `got ${showValue(text)}`;
  if (bare !== text && readHostPattern(bare).ok) {
    return bad(`must be a host name without a scheme, a user name or a path; ${got}; did you mean "${bare}"?`);
  }
  if (text === "*") return bad('must name hosts; got "*". For every other host use default');
  const isWildcard = text.startsWith("*.");
  const rest = isWildcard ? text.slice(2) : text;
  if (rest.includes("*")) return bad(`must have its * in front and followed by a dot, as in "*.example.com"; ${got}`);
  const reading = readHost(rest);
  if (!reading.ok) return reading;

  const { host, port } = reading.value;
  if (isWildcard && isAddress(host)) return bad(`must not have a * before an address; ${got}`);
  if (isWildcard && port !== undefined) return bad(`must not name a port after a *; ${got}`);
  return good((isWildcard ? "*." : "") + host + (port === undefined ? "" : `:${port}`));
}

/**
 * Makes what finds the most specific entry by the names of patterns: the key itself, its host without the port, then the longest `*.` that
 * fits. It is asked for every request.
 */
export function patternFinder<Entry>(table: ReadonlyMap<string, Entry>): (key: string) => Entry | undefined {
  const wildcards = new Map([...table].filter(([name]) => name.startsWith("*.")));
  return (key) => {
    const host = withoutPort(key);
    let entry = table.get(key) ?? (host === key ? undefined : table.get(host));
    if (wildcards.size === 0) return entry;
    for (let dot = host.indexOf("."); dot !== -1 && entry === undefined; dot = host.indexOf(".", dot + 1)) {
      entry = wildcards.get(`*${host.slice(dot)}`);
    }
    return entry;
  };
}
