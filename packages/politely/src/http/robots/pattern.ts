import { createNeedle, findNeedle, type Needle } from "./needle.js";
import { normalisePath, pathLength } from "./percent.js";
import type { Substrings } from "./substrings.js";

/** The value of an Allow or Disallow line, ready to be compared with paths. */
export interface Pattern {
  /** What a path must begin with: everything before the first `*`. */
  readonly prefix: string;
  /** What must follow in this order, each anywhere after the one before. */
  readonly needles: readonly Needle[];
  /** What a path must end with, after all of those; undefined without a `$` at the end. */
  readonly suffix: string | undefined;
  /** There is a `*` in it. */
  readonly hasWildcard: boolean;
  /** Octets by `pathLength`, `*` and `$` included: the longest pattern that matches decides. */
  readonly length: number;
}

/**
 * Reads the value of an Allow or Disallow line, one character for each octet.
 *
 * `*` is any run of characters, `$` at the very end is the end of the URL, and everything else is itself. A value that begins with
 * neither `/` nor `*` is taken to have lost its `/`. The value must not be empty; `$` alone matches nothing, as no path is empty.
 */
export function compilePattern(value: string): Pattern {
  const isAnchored = value.endsWith("$");
  const body = isAnchored ? value.slice(0, -1) : value;
  const isRooted = body === "" || body.startsWith("/") || body.startsWith("*");
  const written = (isRooted ? body : `/${body}`).split("*");
  const [prefix, ...others] = written.map(normalisePath);
  const length = written.reduce((sum, part) => sum + pathLength(part), others.length + (isAnchored ? 1 : 0));
  // Without a * the end of the pattern is its beginning, too.
  const suffix = isAnchored && others.length > 0 ? others.pop() : undefined;
  return {
    prefix,
    needles: others.filter((part) => part !== "").map(createNeedle),
    suffix: isAnchored ? (suffix ?? "") : undefined,
    hasWildcard: written.length > 1,
    length,
  };
}

/**
 * Tells whether a pattern matches a normalised path.
 *
 * Each piece is looked for once, from where the one before ended: the first place that fits is as good as any later one, so nothing is
 * ever tried twice, and time grows with the path, however many `*` there are. With `pieces`, those of the path, it grows with the pattern.
 */
export function matchesPattern(pattern: Pattern, path: string, pieces?: Substrings): boolean {
  const { prefix, needles, suffix, hasWildcard } = pattern;
  if (!path.startsWith(prefix)) return false;
  if (!hasWildcard) return suffix === undefined || path.length === prefix.length;
  let from = prefix.length;
  for (const needle of needles) {
    const at = pieces === undefined ? findNeedle(needle, path, from) : pieces.find(needle.text, from);
    if (at === -1) return false;
    from = at + needle.text.length;
  }
  return suffix === undefined || (path.length - suffix.length >= from && path.endsWith(suffix));
}
