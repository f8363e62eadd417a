import type { PolicyInput } from "politely";
import { UsageError } from "../errors.js";
import { inspectPolicy, type PlacedProblem } from "./inspectPolicy.js";
import { readText, UnreadableError } from "./readText.js";

/** A policy and the file it comes from. */
export interface PolicyFile {
  /** As it was given; empty where there is no file and the presets apply. */
  readonly path: string;
  readonly policy: PolicyInput;
}

/** How many problems one message lists; `problems` has them all. */
const maxListed = 1_000;

/** A policy file that was read and is no policy. The message lists the problems, each on a line of its own as `file:line:column: path: message`. */
export class PolicyFileError extends UsageError {
  constructor(
    readonly path: string,
    readonly problems: readonly PlacedProblem[],
  ) {
    const lines = problems.slice(0, maxListed).map((problem) => problemLine(path, problem));
    if (problems.length > 1) lines.unshift(`${path} has ${problems.length} problems:`);
    if (problems.length > maxListed) lines.push(`and ${problems.length - maxListed} more`);
    super(lines.join("\n"));
  }
}

/** Writes a problem as compilers do: `file:line:column: path: message`. Control characters are escaped, so that no file can draw on a terminal. */
export function problemLine(file: string, { line, column, path, message }: PlacedProblem): string {
  const what = path === "" ? message : `${path}: ${message}`;
  return `${file}:${line}:${column}: ${what.replace(/[\p{Cc}\u2028\u2029]/gu, escaped)}`;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/**
 * Reads a policy from a file, JSON or YAML by its ending, else whichever it is. `path` is relative to `cwd`.
 *
 * Throws a `PolicyFileError` with every problem, and a `UsageError` for a file that cannot be read.
 */
export async function readPolicyFile(path: string, cwd: string): Promise<PolicyFile> {
  const inspection = inspectPolicy(await readText(path, cwd), path);
  if (inspection.policy === undefined) throw new PolicyFileError(path, inspection.problems);
  return { path, policy: inspection.policy };
}

/** The files that are looked for, in this order. */
const usualNames = ["politely.json", "politely.yaml", "politely.yml"] as const;

/**
 * Reads the policy an option names, else `politely.json`, `politely.yaml` or `politely.yml` in `cwd`, the first there is.
 *
 * Without any of them the presets apply, and every other host gets one request a second; `path` is empty then.
 */
export async function findPolicy(option: string | undefined, cwd: string): Promise<PolicyFile> {
  if (option !== undefined) return readPolicyFile(option, cwd);
  for (const name of usualNames) {
    try {
      return await readPolicyFile(name, cwd);
    } catch (error) {
      if (!(error instanceof UnreadableError && error.isMissing)) throw error;
    }
  }
  return { path: "", policy: { presets: true } };
}
