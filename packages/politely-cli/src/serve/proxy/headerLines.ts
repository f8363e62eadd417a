/** Names and values in turn, as they were sent and as they are sent on. */
export type HeaderLines = readonly string[];

/** Of one connection only; RFC 9110, section 7.6.1. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-authentication-info",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);

/** Whatever `Politely-…` says is between the client and the proxy. */
const OWN_PREFIX = "politely-";

/**
 * What may be sent on to the next connection: without the headers of this one, without those that `Connection` names,
 * without `Politely-…`, and without those in `dropped` (lower case).
 */
export function endToEnd(lines: HeaderLines, dropped: ReadonlySet<string>): string[] {
  const named = new Set(listOf(lines, "connection"));
  const kept: string[] = [];
  for (let index = 0; index + 1 < lines.length; index += 2) {
    const name = lines[index].toLowerCase();
    if (HOP_BY_HOP.has(name) || named.has(name) || dropped.has(name) || name.startsWith(OWN_PREFIX)) continue;
    kept.push(lines[index], lines[index + 1]);
  }
  return kept;
}

/** Every value of a header, in order. `name` is lower case. */
export function valuesOf(lines: HeaderLines, name: string): string[] {
  return lines.filter((_, index) => index % 2 === 1 && lines[index - 1].toLowerCase() === name);
}

/** The members of a header that is a list, in lower case. */
export function listOf(lines: HeaderLines, name: string): string[] {
  return valuesOf(lines, name)
    .flatMap((value) => value.split(","))
    .map((member) => member.trim().toLowerCase())
    .filter((member) => member !== "");
}
