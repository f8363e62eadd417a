import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { PolicyInput } from "politely";
import { stringify } from "yaml";
import { UsageError, WorkError } from "../errors.js";
import type { ExitCode, Io } from "../io.js";
import {
  type Inspection,
  inspectPolicy,
  type ParsedFile,
  type PlacedProblem,
  parseFile,
} from "../policy/inspectPolicy.js";
import { problemLine } from "../policy/policyFile.js";
import { readText, whyNot } from "../policy/readText.js";
import { countText } from "../words.js";
import { isDomainsFile } from "./domainsFile.js";
import { type HostExplanation, hostExplainer } from "./explainHost.js";
import { explanationText } from "./explanationText.js";
import { limitWords } from "./limitWords.js";
import { migrate } from "./migrate.js";
import { warningsOf } from "./warnings.js";

/** What `check` is asked for. */
export interface CheckOptions {
  /** Hosts and URLs to explain. Default none. */
  readonly explain?: readonly string[];
  /** One JSON object on stdout instead of text. Default false. */
  readonly json?: boolean;
}

type CheckIo = Pick<Io, "stdout" | "stderr" | "cwd">;

/**
 * Checks a policy file and tells on stdout what is wrong with it, or what it says. Exit code 1 when it has problems.
 *
 * Throws a `UsageError` for a file that cannot be read and for a host to explain that is none.
 */
export async function checkPolicy(path: string, options: CheckOptions, io: CheckIo): Promise<ExitCode> {
  const inspection = inspectPolicy(await readText(path, io.cwd), path);
  const report = options.json === true ? jsonReport(path, inspection, options) : textReport(path, inspection, options);
  io.stdout.write(report);
  if (inspection.policy !== undefined) return 0;
  if (options.json !== true) io.stderr.write(`politely: ${foundText(path, inspection.problems)}\n`);
  return 1;
}

/** Where a migrated policy goes. */
export interface MigrateOptions {
  /** A new file, YAML if its name ends so; default stdout, as JSON. */
  readonly out?: string;
}

/**
 * Migrates a file of per-domain limits and writes the policy; on stderr, what could not be carried over.
 *
 * Exit code 1 and nothing written when the file has problems. Throws a `UsageError` for a file that cannot be read, is a policy
 * already, or would be overwritten.
 */
export async function migrateFile(path: string, { out }: MigrateOptions, io: CheckIo): Promise<ExitCode> {
  const file = parseFile(await readText(path, io.cwd), path);
  const { policy, problems, dropped, notes } = migrate(file, path);
  if (policy === undefined) {
    io.stderr.write(`${problems.map((problem) => problemLine(path, problem)).join("\n")}\n`);
    io.stderr.write(`politely: ${foundText(path, problems)}; nothing was written\n`);
    return 1;
  }
  const isYaml = out !== undefined && /\.ya?ml$/i.test(out);
  const text = isYaml ? stringify(policy) : `${JSON.stringify(policy, undefined, 2)}\n`;
  if (out === undefined) io.stdout.write(text);
  else await writeNew(out, io.cwd, text);
  const lines = [...dropped.map((problem) => problemLine(path, problem)), ...notes.map((note) => `${path}: ${note}`)];
  io.stderr.write(lines.map((line) => `${line}\n`).join(""));
  return 0;
}

async function writeNew(path: string, cwd: string, text: string): Promise<void> {
  try {
    await writeFile(resolve(cwd, path), text, { flag: "wx" });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EEXIST") throw new UsageError(`${path} is there already; remove it, or give --out another name`);
    if (code === "ENOENT") throw new UsageError(`${path} cannot be written: its folder does not exist`);
    if (code === "ENOSPC") throw new WorkError(`${path} is not complete: the disk is full`);
    throw new UsageError(`${path} cannot be written: ${whyNot(error)}`);
  }
}

const older = "; --migrate writes it in the form of a policy";

function textReport(path: string, { policy, problems, file }: Inspection, options: CheckOptions): string {
  if (policy === undefined) return problems.map((problem) => `${problemLine(path, problem)}\n`).join("");
  const warnings = warningsOf(policy, file).map(
    (warning) => `${problemLine(path, { ...warning, message: `warning: ${warning.message}` })}\n`,
  );
  const explanations = explained(policy, file, options).map((one) => `\n${explanationText(one, path)}`);
  return [
    ...warnings,
    `${path} is fine: ${summaryText(policy)}${isDomainsFile(file) ? older : ""}\n`,
    ...explanations,
  ].join("");
}

function jsonReport(path: string, { policy, problems, file }: Inspection, options: CheckOptions): string {
  const found =
    policy === undefined
      ? { isFine: false, problems }
      : {
          isFine: true,
          problems,
          warnings: warningsOf(policy, file),
          hostCount: Object.keys(policy.hosts ?? {}).length,
          default: policy.default ?? { rate: "1/s" },
          explained: explained(policy, file, options),
        };
  return `${JSON.stringify({ file: path, ...found }, writable, 2)}\n`;
}

/** JSON would write null for the maxWait or maxQueue that YAML calls .inf. */
function writable(_name: string, value: unknown): unknown {
  return value === Number.POSITIVE_INFINITY ? "Infinity" : value;
}

function explained(policy: PolicyInput, file: ParsedFile, { explain = [] }: CheckOptions): readonly HostExplanation[] {
  return explain.length === 0 ? [] : explain.map(hostExplainer(policy, file));
}

function summaryText(policy: PolicyInput): string {
  const count = Object.keys(policy.hosts ?? {}).length;
  const hosts = count === 0 ? "no hosts" : `${countText(count)} ${count === 1 ? "host" : "hosts"}`;
  const presets =
    policy.presets === undefined
      ? ""
      : policy.presets === true
        ? ", presets"
        : `, ${countText(policy.presets.length)} ${policy.presets.length === 1 ? "preset" : "presets"}`;
  const isBuiltIn = policy.default === undefined && policy.presets !== true && policy.presets?.includes("collector");
  if (isBuiltIn === true) return `${hosts}${presets}; default of the preset collector`;
  const words = limitWords(policy.default ?? { rate: "1/s" }).join("; ");
  return `${hosts}${presets}; default ${policy.default === undefined ? "(none given) " : ""}${words}`;
}

function foundText(path: string, problems: readonly PlacedProblem[]): string {
  return `${path} has ${problems.length === 1 ? "a problem" : `${countText(problems.length)} problems`}`;
}
