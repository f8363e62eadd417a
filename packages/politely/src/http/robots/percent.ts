/** What a path may have in it as it is; every other octet is compared in its encoded form. */
const plain = /^[\w\-.~!&()+,;=:@/?[\]]*$/;

const encodedOrSpecial = /%[\dA-Fa-f]{2}|[^\w\-.~!&()+,;=:@/?[\]]/g;

const encodedOrForeign = /%[\dA-Fa-f]{2}|[\x80-\xFF]/g;

const unreserved = /^[\w\-.~]$/;

/**
 * Brings part of a path into the one form in which paths are compared. Takes one character for each octet and gives ASCII.
 *
 * Hex digits become upper-case, encoded letters, digits and `- . _ ~` are decoded, and what a URL cannot have as it is gets encoded:
 * octets outside ASCII, blanks, control characters, `" ' < > \ ^ { | }` and the backtick. `%2F` is not `/`. A literal `*` or `$` becomes
 * `%2A` or `%24`, and so does not differ from one that was encoded; a `%` that encodes nothing becomes `%25`.
 */
export function normalisePath(octets: string): string {
  return plain.test(octets) ? octets : octets.replace(encodedOrSpecial, normaliseOne);
}

/**
 * How long part of a path is where the longest rule decides: in octets after those outside ASCII are encoded and those that need no
 * encoding are decoded. What is encoded beyond that, only to be compared, counts as it was written.
 */
export function pathLength(octets: string): number {
  if (plain.test(octets)) return octets.length;
  let length = octets.length;
  for (const [found] of octets.matchAll(encodedOrForeign)) {
    if (found.length === 1) length += 2;
    else if (normaliseOne(found).length === 1) length -= 2;
  }
  return length;
}

function normaliseOne(found: string): string {
  if (found.length === 1) return `%${found.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  const decoded = String.fromCharCode(Number.parseInt(found.slice(1), 16));
  return unreserved.test(decoded) ? decoded : found.toUpperCase();
}
