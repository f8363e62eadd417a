// A policy file may group by domain; this entry brings the list of public suffixes along.
import "politely/domains";
import { loadPolicy, PolicyError, type PolicyInput } from "politely";
import { type DoubledName, jsonPlaces } from "./jsonPlaces.js";
import { offsetOfProblem, type Place, type Position, positionsIn } from "./place.js";
import { readJson } from "./readJson.js";
import { readYaml } from "./readYaml.js";

/** Something wrong in a policy file. `path` is empty for what is wrong with the file as a whole, its syntax for instance. */
export interface PlacedProblem extends Position {
  readonly path: string;
  readonly message: string;
}

/** How a file is written. */
export type Format = "json" | "yaml";

/** A file that was taken apart, whether or not it is a policy. */
export interface ParsedFile {
  readonly format: Format;
  /** What it holds; undefined when it could not be read. */
  readonly value: unknown;
  /** What keeps it from being read, and names that stand twice. */
  readonly problems: readonly PlacedProblem[];
  /** How many comments it has; YAML only. */
  readonly commentCount: number;
  /** Finds where a problem stands, by its path and its message. */
  place(path: string, message: string): Position;
  /** Adds to a message what the way of writing makes worth saying. */
  advise(path: string, message: string): string;
}

/** What is known about a policy file: the policy, or what is wrong. */
export type Inspection = { readonly file: ParsedFile } & (
  | { readonly policy: PolicyInput; readonly problems: readonly [] }
  | { readonly policy: undefined; readonly problems: readonly PlacedProblem[] }
);

/** Reads a policy from the text of a file and lists everything that is wrong with it, in the order of the file. `path` tells the format by its ending. */
export function inspectPolicy(text: string, path: string): Inspection {
  const file = parseFile(text, path);
  if (file.value === undefined) return { file, policy: undefined, problems: file.problems };
  const { policy, problems } = load(file, file.value);
  const all = inOrder([...file.problems, ...problems]);
  return policy === undefined || all.length > 0
    ? { file, policy: undefined, problems: all }
    : { file, policy, problems: [] };
}

/** Takes a file apart: JSON for `.json`, YAML for `.yaml` and `.yml`, else whichever it is. */
export function parseFile(text: string, path: string): ParsedFile {
  if (text.trim() === "") {
    const message = "the file is empty; the smallest policy is {}";
    return unread("json", [{ line: 1, column: 1, path: "", message }]);
  }
  const ending = /\.(json|ya?ml)$/i.exec(path)?.[1]?.toLowerCase();
  if (ending === "json") return parseJson(text);
  if (ending !== undefined) return parseYaml(text);
  const json = parseJson(text);
  if (json.value !== undefined) return json;
  const yaml = parseYaml(text);
  // A text that begins with a bracket and is neither was most likely meant to be JSON.
  return yaml.value === undefined && text.trimStart().startsWith("{") ? json : yaml;
}

/** Holds what a file has in it against the form of a policy. */
export function load(
  file: ParsedFile,
  value: unknown,
): { readonly policy: PolicyInput | undefined; readonly problems: readonly PlacedProblem[] } {
  try {
    // A number or a text is refused with the same words as other things that are no policy.
    return { policy: loadPolicy(typeof value === "string" ? JSON.stringify(value) : (value as object)), problems: [] };
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    const problems = error.problems.map(({ path, message }) => ({
      ...file.place(path, message),
      path: path === "" ? "(policy)" : path,
      message: file.advise(path, message),
    }));
    return { policy: undefined, problems };
  }
}

/** Sorts problems by where they stand. */
export function inOrder(problems: readonly PlacedProblem[]): readonly PlacedProblem[] {
  return problems.toSorted((one, other) => one.line - other.line || one.column - other.column);
}

function parseJson(text: string): ParsedFile {
  const reading = readJson(text);
  if (!reading.isJson) return unread("json", [{ ...reading.position, path: "", message: reading.message }]);
  const { root, doubled } = jsonPlaces(text);
  const position = positionsIn(text);
  return {
    format: "json",
    value: reading.value,
    problems: problemsOfDoubled(doubled, position),
    commentCount: 0,
    place: placer(root, position),
    advise: (_, message) => message,
  };
}

function parseYaml(text: string): ParsedFile {
  const { value, problems, root, doubled, unquoted, commentCount } = readYaml(text);
  const position = positionsIn(text);
  if (problems.length > 0) {
    return unread(
      "yaml",
      problems.map(({ offset, message }) => ({ ...position(offset), path: "", message })),
    );
  }
  return {
    format: "yaml",
    // A file of nothing but comments holds null, which the form of a policy refuses.
    value: value ?? null,
    problems: problemsOfDoubled(doubled, position),
    commentCount,
    place: placer(root, position),
    advise(path, message) {
      const written = unquoted.get(offsetOfProblem(root, path, message));
      return written !== undefined && message.includes(JSON.stringify(written))
        ? `${message}; put it in quotes`
        : message;
    },
  };
}

function unread(format: Format, problems: readonly PlacedProblem[]): ParsedFile {
  return {
    format,
    value: undefined,
    problems: inOrder(problems),
    commentCount: 0,
    place: () => ({ line: 1, column: 1 }),
    advise: (_, message) => message,
  };
}

function placer(root: Place, position: (offset: number) => Position): ParsedFile["place"] {
  return (path, message) => position(offsetOfProblem(root, path, message));
}

function problemsOfDoubled(
  doubled: readonly DoubledName[],
  position: (offset: number) => Position,
): readonly PlacedProblem[] {
  return doubled.map(({ name, offset, firstOffset }) => {
    const shown = name.length > 100 ? `${name.slice(0, 100)}…` : name;
    const message = `${JSON.stringify(shown)} stands twice in one object, first in line ${position(firstOffset).line}; keep one of them`;
    return { ...position(offset), path: "", message };
  });
}
