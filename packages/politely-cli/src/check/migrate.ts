import { type HostLimits, loadPolicy, PolicyError, type PolicyInput } from "politely";
import { UsageError } from "../errors.js";
import { closeNames } from "../policy/closeNames.js";
import { inOrder, load, type ParsedFile, type PlacedProblem } from "../policy/inspectPolicy.js";
import { domainsFileFields } from "./domainsFile.js";

/** What became of a file of per-domain limits: the policy, or what is wrong; and what could not be carried over. */
export interface Migration {
  readonly policy: PolicyInput | undefined;
  /** The file cannot be migrated before these are mended. */
  readonly problems: readonly PlacedProblem[];
  /** What the policy does not have, though the file does. */
  readonly dropped: readonly PlacedProblem[];
  /** What changes, or is said now and was not before. */
  readonly notes: readonly string[];
}

const entryFields = ["requests_per_second", "burst_capacity"] as const;

/**
 * Turns a file of `version`, `default_config` and `domains` into a policy: each entry becomes a token bucket that grants the same.
 *
 * Fields that format does not have are dropped, each with its place, unless they look like a misspelled one, which is a problem.
 * Throws a `UsageError` for a file that is a policy already.
 */
export function migrate(file: ParsedFile, path: string): Migration {
  if (file.value === undefined) return { policy: undefined, problems: file.problems, dropped: [], notes: [] };
  if (isRecord(file.value) && !domainsFileFields.some((name) => Object.hasOwn(file.value as object, name))) {
    throw new UsageError(
      `${path} has none of version, default_config and domains, so there is nothing to migrate; without --migrate it is checked as a policy`,
    );
  }
  const unknown = new UnknownFields(file);
  const kept = unknown.without(file.value);
  const { policy, problems } = load(file, kept);
  const all = inOrder([...file.problems, ...unknown.problems, ...problems]);
  if (policy === undefined || all.length > 0) return { policy: undefined, problems: all, dropped: [], notes: [] };
  const readable = withRateText(policy);
  return { policy: readable, problems: [], dropped: inOrder(unknown.dropped), notes: notesOf(readable, file) };
}

class UnknownFields {
  readonly problems: PlacedProblem[] = [];
  readonly dropped: PlacedProblem[] = [];

  constructor(readonly file: ParsedFile) {}

  /** The same value with the known fields only. What has another type than it should is left for validation. */
  without(value: unknown): unknown {
    if (!isRecord(value)) return value;
    const kept = this.#known(value, "", domainsFileFields);
    const { default_config, domains } = kept;
    return {
      ...kept,
      ...(isRecord(default_config)
        ? { default_config: this.#known(default_config, "default_config", entryFields) }
        : {}),
      ...(isRecord(domains) ? { domains: this.#entries(domains) } : {}),
    };
  }

  #entries(domains: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const entries = Object.entries(domains).map(([name, entry]) => {
      const path = `domains[${JSON.stringify(name)}]`;
      return [name, isRecord(entry) ? this.#known(entry, path, entryFields) : entry] as const;
    });
    return Object.fromEntries(entries);
  }

  #known(
    record: Readonly<Record<string, unknown>>,
    path: string,
    known: readonly string[],
  ): Readonly<Record<string, unknown>> {
    const isKnown = ([name]: readonly [string, unknown]): boolean => known.includes(name);
    for (const [name] of Object.entries(record).filter((field) => !isKnown(field))) this.#judge(name, path, known);
    return Object.fromEntries(Object.entries(record).filter(isKnown));
  }

  #judge(name: string, path: string, known: readonly string[]): void {
    const at = path === "" ? name : `${path}.${name}`;
    const position = this.file.place(at, "is not a field of this format");
    const meant = closeNames(name, known).at(0);
    if (meant !== undefined) {
      this.problems.push({ ...position, path: at, message: `is not a field of this format; did you mean "${meant}"?` });
    } else this.dropped.push({ ...position, path: at, message: "has no counterpart in a policy and is left out" });
  }
}

/** Writes `{ count: 2, per: "1s" }` as `2/s`, where that means the same. */
function withRateText({ default: fallback, hosts = {} }: PolicyInput): PolicyInput {
  const entries = Object.entries(hosts).map(([name, limits]) => [name, readable(limits)] as const);
  return {
    ...(fallback === undefined ? {} : { default: readable(fallback) }),
    hosts: Object.fromEntries(entries),
  };
}

function readable(limits: HostLimits): HostLimits {
  const { rate } = limits;
  if (typeof rate !== "object" || rate.per !== "1s") return limits;
  const text = `${rate.count}/s` as const;
  try {
    loadPolicy({ default: { ...limits, rate: text } });
    return { ...limits, rate: text };
  } catch (error) {
    if (error instanceof PolicyError) return limits;
    throw error;
  }
}

function notesOf(policy: PolicyInput, file: ParsedFile): readonly string[] {
  const notes: string[] = [];
  if (policy.default === undefined) {
    notes.push("the file has no default_config, so that hosts not named get 1 start per second");
  }
  if (file.commentCount > 0) notes.push("comments are not carried over");
  notes.push('requests to this machine are not limited; add "localhost": "limited" if they should be');
  return notes;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
