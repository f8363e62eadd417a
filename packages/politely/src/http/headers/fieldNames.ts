import type { Bucket } from "./quotas.js";
import { readSpanMs } from "./values.js";

/** What a field of a bucket says. A summary says all there is about its buckets in one value. */
export type FieldRole = "limit" | "remaining" | "used" | "reset" | "resetAfter" | "window" | "summary";

/** What the name of a field says, whatever its value is. */
export interface FieldName {
  /** In lower case. */
  readonly name: string;
  readonly role: FieldRole | "wait" | "rateLimit" | "policy" | "resource" | "date" | "age";
  /** Equal for the fields of one bucket: `x|` for those of `X-RateLimit-*`, `|` for `RateLimit-*`. */
  readonly key: string;
  /** The families that come first: 0 for those of the drafts, 1 for those of vendors, 2 for the common `X-RateLimit-*`. */
  readonly rank: number;
  /** The family for people: `x-ratelimit-*`, `anthropic-ratelimit-tokens-*`. */
  readonly label: string;
  /** What the bucket counts, or for whom: `requests-day`; empty when the name does not say. */
  readonly dimension: string;
  /** Whether the bucket counts requests of the host, and not something else or one part of it. */
  readonly isOfHost: boolean;
  /** The name alone proves little: the bucket needs both a limit and what remains to be believed. */
  readonly isUnproven: boolean;
  /** Of two fields for one role, and of those that ask to wait, the lower one counts. */
  readonly order: number;
  /** Milliseconds per unit of a bare number; undefined where the caller's `resetUnit` says it. */
  readonly unitMs?: number | undefined;
  /** The window that the name says. */
  readonly windowMs?: number | undefined;
  /** The name is so common that it means something only beside another field of its bucket. */
  readonly isShy?: boolean | undefined;
  /** Reads the value of a summary, bucket by bucket. */
  readonly summary?: Summary | undefined;
}

/** Reads a value that says everything about its buckets. */
export type Summary = (text: string) => readonly (Partial<Bucket> | undefined)[];

/** No field that is read has a longer name. */
export const maxNameLength = 96;

/** So many names are remembered. Sites send few different ones; beyond that the memory starts anew. */
const maxRemembered = 2_048;

/** The names that a reader of headers knows. What they mean is remembered: asking again costs one look into a map. */
export class FieldNames {
  /** Names to ask for where headers can only be asked, not listed. */
  readonly asked: readonly string[];
  readonly #remembered = new Map<string, FieldName | null>();

  constructor(
    readonly understand: (name: string) => FieldName | null,
    asked: readonly string[],
  ) {
    // One with a star stands for many, and the last two are asked for when there is another.
    this.asked = [...new Set(asked)].filter((name) => !name.includes("*") && name !== "date" && name !== "age");
  }

  /** What a field of this name, in any case, is about; null when it is not about limits. */
  read(name: string): FieldName | null {
    const known = this.#remembered.get(name);
    if (known !== undefined) return known;
    if (name.length > maxNameLength) return null;
    if (this.#remembered.size >= maxRemembered) this.#remembered.clear();
    const found = this.understand(name.toLowerCase());
    this.#remembered.set(name, found);
    return found;
  }
}

/** A field with a meaning of its own, whatever the values of others. */
export function plainName(name: string, role: FieldName["role"], rest: Partial<FieldName> = {}): FieldName {
  const bucket = { key: name, rank: 1, label: name, dimension: "", isOfHost: true, isUnproven: false, order: 0 };
  return { name, role, ...bucket, ...rest };
}

/** The names that every answer may have, besides those of buckets. */
export const fixedNames: ReadonlyMap<string, FieldName> = new Map(
  [
    plainName("ratelimit", "rateLimit"),
    plainName("ratelimit-policy", "policy"),
    plainName("x-ratelimit-resource", "resource"),
    plainName("retry-after", "wait", { order: 1 }),
    plainName("date", "date"),
    plainName("age", "age"),
  ].map((field) => [field.name, field]),
);

const words = {
  limit: "limit|max|maximum|total|allowed",
  remaining: "remaining|remain|left|available",
  used: "used|usage|count|observed",
  resetAfter: "resets?-(?:after|in)",
  reset: "resets?(?:-?(?:at|on|time|date|timestamp))?",
  window: "(?:time-)?window|interval|period|duration",
};
const [limit, remaining, used, resetAfter, reset, window] = Object.entries(words).map(
  ([role, each]) => `(?<${role}>${each})`,
);
const unit = "(?:-(?:in-)?(?<unit>s|secs?|seconds|ms|millis(?:econds)?|minutes|hours))?";
const phrase = `(?<phrase>${limit}|${remaining}|${used}|(?:${resetAfter}|${reset}|${window})${unit})`;

/** `requests-limit`, `api-key-interval-ms`; `limit-requests-day`; `userlimit`. */
const shapes = [
  new RegExp(`^(?:(?<dimension>.+?)-)??${phrase}$`),
  new RegExp(`^${phrase}-(?<dimension>.+)$`),
  /^(?<dimension>[a-z]+)(?<phrase>(?<limit>limit)|(?<remaining>remaining)|(?<reset>reset))$/,
];

/** Words of dimensions that count requests, all of a host or all that somebody makes there. */
const hostWords = wordSet(
  "account api app burst call calls client core global ip key organization project req reqs request requests service sustained user",
);
/** Words of dimensions that count something else, or only a part of the requests. */
const otherWords = wordSet(
  `audio complexity completion endpoint feature graphql images input method output path points post prompt read reads search token
  tokens userpath write writes`,
);
/** Words of buckets that count something else than starts in time. */
const unreadWords = wordSet("concurrent concurrency connections parallel");

function wordSet(text: string): ReadonlySet<string> {
  return new Set(text.split(/\s+/));
}

/** Whether the name of a quota says that it counts something else than requests of the host: `tokens`, `input-tokens`. */
export function hasOtherDimension(name: string): boolean {
  return name
    .toLowerCase()
    .split(/[^a-z]+/)
    .some((word) => otherWords.has(word));
}

/** The parts of a name about limits. */
export interface NameParts {
  readonly name: string;
  /** Whose it is: `x` and nothing are everybody's. */
  readonly prefix: string;
  /** What stands behind `ratelimit-`; undefined when it ends there. */
  readonly rest: string | undefined;
  /** Words that are written together with `ratelimit`, before and after it. */
  readonly glued?: readonly [string, string];
}

/** Understands a name by its words: a role, and around it what is counted. Null when it has no role. */
export function nameOfParts({ name, prefix, rest, glued = ["", ""] }: NameParts): FieldName | null {
  const read = rest === undefined ? limitAlone : readRole(rest);
  if (read === undefined) return null;
  const { role, unitMs, phrase, isPlain } = read;
  const dimensions = [glued[0], ...read.dimensions, glued[1]].filter((word) => word !== "" && word !== "per");
  if (dimensions.some((word) => unreadWords.has(word))) return null;
  const spans = dimensions.map(readSpanMs);
  const counted = dimensions.filter((_, i) => spans[i] === undefined);
  const dimension = dimensions.join("-");
  const key = `${prefix}|${dimension}`;
  return {
    name,
    role,
    key,
    rank: key === "|" ? 0 : key === "x|" ? 2 : 1,
    label: rest === undefined || phrase === "" ? name : name.slice(0, -rest.length) + rest.replace(phrase, "*"),
    dimension: dimension || prefix.replace(/^x(?:-|$)/, ""),
    isOfHost: counted.every((word) => hostWords.has(word)),
    isUnproven: !counted.every((word) => hostWords.has(word) || otherWords.has(word)),
    // The plain word before its synonyms, the spelling without a second hyphen before the other.
    order: name.length + (isPlain ? 0 : maxNameLength),
    unitMs,
    windowMs: spans.find((ms) => ms !== undefined && ms > 0),
  };
}

interface RoleFound {
  readonly role: FieldRole;
  readonly dimensions: readonly string[];
  /** The words of the role; empty when the name has none. */
  readonly phrase: string;
  readonly unitMs?: number | undefined;
  /** The role is written as it is called here. */
  readonly isPlain: boolean;
}

/** `X-Rate-Limit: 700` is a limit. */
const limitAlone: RoleFound = { role: "limit", dimensions: [], phrase: "", isPlain: false };

function readRole(rest: string): RoleFound | undefined {
  for (const shape of shapes) {
    const found = shape.exec(rest)?.groups as Readonly<Record<string, string | undefined>> | undefined;
    if (found === undefined) continue;
    const role = (Object.keys(words) as (keyof typeof words)[]).find((each) => found[each] !== undefined) ?? "limit";
    const { dimension = "", phrase = "", unit: spelled = role === "window" ? "s" : undefined } = found;
    const unitMs = spelled === undefined ? undefined : readSpanMs(`1 ${spelled}`);
    // The first word of `x-ratelimit-limit-reset` says nothing more.
    const said = role === "limit" ? dimension : dimension.replace(/^limit(?:-|$)/, "");
    return { role, dimensions: said.split("-"), phrase, unitMs, isPlain: found[role] === role };
  }
  // `daily` is the limit of a day.
  const parts = rest.split("-");
  return parts.every((part) => readSpanMs(part) !== undefined) ? { ...limitAlone, dimensions: parts } : undefined;
}

const standardName = /^(?:(x)-)?(?:ratelimit|rate-limit)(?:-(.+))?$/;

/** `Retry-After`, `RateLimit` of every draft and `X-RateLimit-*`. */
export const standardNames = new FieldNames(
  (name) => {
    const [match, prefix = "", rest] = standardName.exec(name) ?? [];
    return fixedNames.get(name) ?? (match === undefined ? null : nameOfParts({ name, prefix, rest }));
  },
  [...fixedNames.keys(), ...["ratelimit", "x-ratelimit", "x-rate-limit"].flatMap(withRoles)],
);

/** The names of a family that headers are asked for. */
function withRoles(stem: string): string[] {
  const roles = ["limit", "remaining", "reset", "reset-after", "used", "usage", "window", "interval"];
  return [stem, ...roles.map((role) => `${stem}-${role}`)];
}
