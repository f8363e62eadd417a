import type { FamilyRank, FieldRole } from "./fieldRole.js";
import { readWindowWord } from "./timeSpan.js";
import {
  dimensionWords,
  type NamedField,
  namedFields,
  otherWords,
  roleWords,
  stems,
  waitFields,
} from "./vendorNames.js";

/** What the name of a field says, whatever its value is. */
export type FieldName = BucketFieldName | WaitFieldName | PlainFieldName;

/** A field that says one thing about one bucket. */
export interface BucketFieldName {
  readonly kind: "bucket";
  /** In lower case. */
  readonly name: string;
  /** The family for people: `x-ratelimit-*`, `anthropic-ratelimit-tokens-*`. */
  readonly label: string;
  /** Equal for the fields of one bucket. */
  readonly key: string;
  /** What the bucket counts, or for whom: `requests-day`; empty when the name does not say. */
  readonly dimension: string;
  readonly rank: FamilyRank;
  readonly role: FieldRole;
  /** Of two fields for one role the lower decides. */
  readonly order: number;
  /** Milliseconds per unit of a bare number; undefined where the caller's `resetUnit` says it. */
  readonly unitMs: number | undefined;
  /** The window that the name says; undefined when it says none. */
  readonly windowMs: number | undefined;
  /** The name alone proves little: true where the bucket needs both a limit and what remains to be believed. */
  readonly isUnproven: boolean;
  /** The name is so common that it means something only beside another field of its bucket. */
  readonly isShy: boolean;
}

/** A field that says how long to stay away; `index` is its place in `waitFields`. */
export interface WaitFieldName {
  readonly kind: "wait";
  readonly name: string;
  readonly index: number;
}

/** The other fields that are read. */
export interface PlainFieldName {
  readonly kind: "rateLimit" | "policy" | "date" | "age";
  readonly name: string;
}

/** No field that is read has a longer name. */
export const maxNameLength = 96;

/** So many names are remembered. Sites send few different ones; beyond that the memory starts anew. */
const maxRemembered = 2_048;

const remembered = new Map<string, FieldName | null>();

const fixedNames = new Map<string, FieldName>([
  ["ratelimit", { kind: "rateLimit", name: "ratelimit" }],
  ["ratelimit-policy", { kind: "policy", name: "ratelimit-policy" }],
  ["date", { kind: "date", name: "date" }],
  ["age", { kind: "age", name: "age" }],
  ...waitFields.map(({ name }, index): [string, FieldName] => [name, { kind: "wait", name, index }]),
]);

const roleOrder = new Map(Object.keys(roleWords).map((words, order) => [words, order]));
const mostRoleWords = 3;

/** `x-ratelimit-…`, `x-hubspot-rate-limit-…`, `x-featureratelimit-…`, `ratelimitbysize-…`, or one of `stems`. */
const stemmed = new RegExp(`^(?:(?:(.+?)-)?(?:([a-z]*)ratelimit([a-z]*)|rate-limit)|(${stems.join("|")}))(?:-(.+))?$`);

const gluedRole = /^([a-z]+)(limit|remaining|reset)$/;

/**
 * Says what a field of this name, in any case, is about; null when it is not about limits.
 *
 * Names are remembered: asking again costs one look into a map.
 */
export function readFieldName(name: string): FieldName | null {
  const known = remembered.get(name);
  if (known !== undefined) return known;
  if (name.length > maxNameLength) return null;
  if (remembered.size >= maxRemembered) remembered.clear();
  const found = understand(name.toLowerCase());
  remembered.set(name, found);
  return found;
}

/** Names to ask for where headers can only be asked, not listed. */
export const askedNames: ReadonlySet<string> = new Set([
  ...[...fixedNames.keys()].filter((name) => name !== "date" && name !== "age"),
  ...["ratelimit", "x-ratelimit", "x-rate-limit", "x-ratelimit-requests", "x-ratelimit-tokens"].flatMap(withMainRoles),
  ...["anthropic-ratelimit-requests", "anthropic-ratelimit-tokens", "x-hubspot-ratelimit"].flatMap(withMainRoles),
  ...["x-discogs-ratelimit", "x-sentry-rate-limit", "fitbit-rate-limit", "x-sib-ratelimit"].flatMap(withMainRoles),
  ...["limit", "remaining", "reset"].flatMap((role) => [`x-ratelimit-${role}-requests`, `x-ratelimit-${role}-tokens`]),
  "x-rate-limit",
  "x-discogs-ratelimit",
  "x-app-rate-limit",
  "x-app-rate-limit-count",
  "x-hubspot-ratelimit-max",
  "x-shopify-shop-api-call-limit",
  ...namedFields.map(({ name }) => name).filter((name) => !name.includes("*")),
]);

function withMainRoles(stem: string): string[] {
  return ["limit", "remaining", "reset", "reset-after", "used", "usage", "window", "interval"].map(
    (role) => `${stem}-${role}`,
  );
}

function understand(name: string): FieldName | null {
  const fixed = fixedNames.get(name);
  if (fixed !== undefined) return fixed;
  for (const field of namedFields) {
    const part = matchedPart(field.name, name);
    if (part !== undefined) return namedField(field, name, part);
  }
  return stemmedField(name);
}

/** What stands where the pattern has its star, empty when it has none; undefined when the name does not fit. */
function matchedPart(pattern: string, name: string): string | undefined {
  const star = pattern.indexOf("*");
  if (star === -1) return pattern === name ? "" : undefined;
  const [head, tail] = [pattern.slice(0, star), pattern.slice(star + 1)];
  if (name.length <= head.length + tail.length || !name.startsWith(head) || !name.endsWith(tail)) return undefined;
  return name.slice(head.length, name.length - tail.length);
}

function namedField(field: NamedField, name: string, part: string): FieldName {
  const { role, unitMs, windowMs, bucket = part || name, rank = "vendor", isShy = false } = field;
  const family = rank === "triple" ? "" : rank === "common" ? "x" : "named";
  return {
    kind: "bucket",
    name,
    label: name,
    key: bucket === "" ? `${family}|` : `${family}|=${bucket}`,
    dimension: bucket,
    rank,
    role,
    // Behind every word of the table, so that it adds to a family and takes nothing from it.
    order: roleOrder.size,
    unitMs,
    windowMs,
    isUnproven: false,
    isShy,
  };
}

function stemmedField(name: string): FieldName | null {
  const match = stemmed.exec(name);
  if (match === null) return null;
  const [, vendor = "", glueBefore = "", glueAfter = "", stem, rest] = match;
  const prefix = stem ?? vendor;
  const read = rest === undefined ? bareStem(stem) : (roleAtAnEnd(rest) ?? roleInOneWord(rest));
  if (read === undefined) return null;

  const words = [glueBefore, ...read.dimensions, glueAfter].filter((word) => word !== "" && word !== "per");
  if (words.some((word) => otherWords.has(word))) return null;
  const spans = words.map(readWindowWord);
  const dimension = words.join("-");
  const isCommon = dimension === "" && (prefix === "x" || prefix === "");
  const stemText = rest === undefined ? name : name.slice(0, -rest.length - 1);
  return {
    kind: "bucket",
    name,
    label: rest === undefined ? name : `${stemText}-${read.pattern}`,
    key: `${prefix}|${dimension}`,
    dimension: dimension || prefix.replace(/^x(?:-|$)/, ""),
    rank: !isCommon ? "vendor" : prefix === "x" ? "common" : "triple",
    role: read.role,
    // Both spellings of the common family may be there: the one without a hyphen decides. A name without a role comes last.
    order:
      (rest === undefined ? roleOrder.size : (roleOrder.get(read.words) ?? 0)) + (name.includes("rate-") ? 0.5 : 0),
    unitMs: roleWords[read.words]?.unitMs,
    windowMs: spans.find((span) => span?.windowMs !== undefined)?.windowMs,
    isUnproven: words.some((word, i) => spans[i] === undefined && !dimensionWords.has(word)),
    isShy: false,
  };
}

interface ReadRole {
  readonly role: FieldRole;
  /** The words of the role, as in the table. */
  readonly words: string;
  readonly dimensions: readonly string[];
  /** The rest of the name with a star for the role. */
  readonly pattern: string;
}

/** `X-Rate-Limit: 700` and `X-Discogs-Ratelimit: 60` are limits. */
function bareStem(stem: string | undefined): ReadRole | undefined {
  return stem === undefined ? { role: "limit", words: "limit", dimensions: [], pattern: "" } : undefined;
}

/** `requests-limit`, `api-key-interval-ms`; else `limit-requests-day`; else `daily`, which is the limit of a day. */
function roleAtAnEnd(rest: string): ReadRole | undefined {
  const parts = rest.split("-");
  const longest = Math.min(mostRoleWords, parts.length);
  for (let count = longest; count > 0; count--) {
    const words = parts.slice(-count).join("-");
    const dimensions = parts.slice(0, -count);
    if (roleOrder.has(words)) return readRole(words, dimensions, [...dimensions, "*"]);
  }
  for (let count = longest; count > 0; count--) {
    const words = parts.slice(0, count).join("-");
    const dimensions = parts.slice(count);
    if (roleOrder.has(words)) return readRole(words, dimensions, ["*", ...dimensions]);
  }
  const isWindow = parts.every((part) => readWindowWord(part) !== undefined);
  return isWindow ? readRole("limit", parts, parts) : undefined;
}

function readRole(words: string, dimensions: readonly string[], pattern: readonly string[]): ReadRole {
  const { role } = roleWords[words];
  // The first word of `x-ratelimit-limit-reset` says nothing more.
  const said = dimensions[0] === "limit" && role !== "limit" ? dimensions.slice(1) : dimensions;
  return { role, words, dimensions: said, pattern: pattern.join("-") };
}

/** `userlimit`, `clientremaining`. */
function roleInOneWord(rest: string): ReadRole | undefined {
  const match = gluedRole.exec(rest);
  if (match === null) return undefined;
  const [, dimension, words] = match;
  return { role: roleWords[words].role, words, dimensions: [dimension], pattern: `${dimension}*` };
}
