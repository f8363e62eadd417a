/** So many characters of a path are compared with rules that have a `*`. No site but a hostile one has rules and links for so much work. */
const maxCompared = 30_000_000;

/** One Allow or Disallow line. */
export interface Rule {
  readonly isAllow: boolean;
  readonly pattern: Pattern;
  /** Where it stands, from 1. */
  readonly line: number;
  /** The line as it is written, without its comment, one character for each octet. */
  readonly text: string;
}

/** The rules of one agent, in the order in which they are asked. */
export interface RuleTable {
  /** Patterns without `*`, by the path that they are or begin; those that end in `$` have it behind. */
  readonly plain: ReadonlyMap<string, Rule>;
  /** The lengths of those that a path may begin with. */
  readonly lengths: ReadonlySet<number>;
  /** Patterns with `*`, the longest first; Allow before Disallow where they are equally long. */
  readonly wildcards: readonly Rule[];
}

/** Sorts rules for `findRule`. Of two rules with the same pattern, Allow stays. */
export function createRuleTable(rules: readonly Rule[]): RuleTable {
  const plain = new Map<string, Rule>();
  const lengths = new Set<number>();
  for (const rule of rules) {
    const { prefix, hasWildcard, suffix } = rule.pattern;
    if (hasWildcard) continue;
    // No normalised path has a `$` in it.
    const text = suffix === undefined ? prefix : `${prefix}$`;
    if (suffix === undefined) lengths.add(prefix.length);
    if (isBetter(rule, plain.get(text))) plain.set(text, rule);
  }
  const wildcards = rules.filter(({ pattern }) => pattern.hasWildcard);
  wildcards.sort(
    (one, other) => other.pattern.length - one.pattern.length || Number(other.isAllow) - Number(one.isAllow),
  );
  return { plain, lengths, wildcards };
}

/**
 * Finds the rule that decides about a normalised path: of those that match the longest, and of equally long ones an Allow.
 *
 * Undefined when none matches. Rules without `*` are looked up by each length that there is; those with one are compared in turn, for
 * a fifth of a second or so: of those that are left a Disallow counts as one that matches.
 */
export function findRule({ plain, lengths, wildcards }: RuleTable, path: string): Rule | undefined {
  let best = plain.get(`${path}$`);
  for (const length of lengths) {
    const rule = length > path.length ? undefined : plain.get(path.slice(0, length));
    if (rule !== undefined && isBetter(rule, best)) best = rule;
  }
  let compared = 0;
  for (const rule of wildcards) {
    if (!isBetter(rule, best)) break;
    compared += path.length;
    if (compared > maxCompared ? !rule.isAllow : matchesPattern(rule.pattern, path)) best = rule;
  }
  return best;
}

function isBetter(rule: Rule, best: Rule | undefined): boolean {
  if (best === undefined) return true;
  const more = rule.pattern.length - best.pattern.length;
  return more > 0 || (more === 0 && rule.isAllow && !best.isAllow);
}

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
 * ever tried twice, and time grows with the path, however many `*` there are.
 */
export function matchesPattern(pattern: Pattern, path: string): boolean {
  const { prefix, needles, suffix, hasWildcard } = pattern;
  if (!path.startsWith(prefix)) return false;
  if (!hasWildcard) return suffix === undefined || path.length === prefix.length;
  let from = prefix.length;
  for (const needle of needles) {
    const at = findNeedle(needle, path, from);
    if (at === -1) return false;
    from = at + needle.text.length;
  }
  return suffix === undefined || (path.length - suffix.length >= from && path.endsWith(suffix));
}

/** A text to be looked for, with what a search in linear time needs to know about it. */
export interface Needle {
  readonly text: string;
  /** For each place, how much of the text's own beginning ends there; undefined for a short text, which needs no such help. */
  readonly overlaps: Int32Array | undefined;
}

/** Up to this length the engine's own search is quicker, and its worst case is bounded; V8's gets slow from about 500 on. */
const shortLength = 64;

/** Makes a text ready to be looked for. */
export function createNeedle(text: string): Needle {
  if (text.length <= shortLength) return { text, overlaps: undefined };
  const overlaps = new Int32Array(text.length);
  let matched = 0;
  for (let index = 1; index < text.length; index++) {
    const code = text.charCodeAt(index);
    while (matched > 0 && text.charCodeAt(matched) !== code) matched = overlaps[matched - 1];
    if (text.charCodeAt(matched) === code) matched++;
    overlaps[index] = matched;
  }
  return { text, overlaps };
}

/** Finds the first place from `from` on where the needle begins in `text`; -1 when there is none. Takes time in proportion to `text`. */
export function findNeedle(needle: Needle, text: string, from: number): number {
  const { text: wanted, overlaps } = needle;
  if (overlaps === undefined) return text.indexOf(wanted, from);
  let matched = 0;
  for (let index = from; index < text.length; index++) {
    const code = text.charCodeAt(index);
    while (matched > 0 && wanted.charCodeAt(matched) !== code) matched = overlaps[matched - 1];
    if (wanted.charCodeAt(matched) === code) matched++;
    if (matched === wanted.length) return index + 1 - matched;
  }
  return -1;
}

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
