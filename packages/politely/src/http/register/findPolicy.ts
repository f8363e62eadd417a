import { PolicyError } from "../../errors.js";
import { loadPolicy } from "../../policy/loadPolicy.js";
import type { PolicyInput } from "../../policy/types.js";
import type { NodeProcess } from "./nodeProcess.js";

/** A policy and where it comes from, or why there is none. */
export type FoundPolicy = { readonly policy: PolicyInput; readonly origin: string } | { readonly problem: string };

const USUAL_NAME = "politely.json";
const NAME_VARIABLE = "POLITELY_POLICY";

/**
 * Reads the file that POLITELY_POLICY names, else `politely.json` in the working directory.
 *
 * Without either, the presets apply and every other host gets one request a second. A file that is named and missing, cannot
 * be read or is no policy is a problem, told with all that is wrong.
 */
export function findPolicy(process: NodeProcess): FoundPolicy {
  const given = process.env[NAME_VARIABLE] ?? "";
  const name = given === "" ? USUAL_NAME : given;
  let text: string;
  try {
    text = process.getBuiltinModule("node:fs").readFileSync(name, "utf8");
  } catch (error) {
    const { code, message } = error as Error & { readonly code?: string };
    if (given === "" && code === "ENOENT") {
      return { policy: { presets: true }, origin: `presets and 1/s, no ${USUAL_NAME} found` };
    }
    const why = code === "ENOENT" ? "there is no such file" : message;
    const who = given === "" ? "" : `, which ${NAME_VARIABLE} names,`;
    return { problem: notStarted(`${name}${who} cannot be read: ${why}`) };
  }
  try {
    return { policy: loadPolicy(text), origin: `policy ${name}` };
  } catch (error) {
    return { problem: problemOf(name, error) };
  }
}

/** What to tell of a policy that could not be used. */
export function problemOf(name: string, error: unknown): string {
  if (!(error instanceof PolicyError)) throw error;
  const { problems } = error;
  const lines = problems.map(({ path, message }) => `  ${path === "" ? "(policy)" : path}: ${message}`);
  return notStarted(`${name} has ${problems.length === 1 ? "a problem" : `${problems.length} problems`}:`, lines);
}

function notStarted(what: string, lines: readonly string[] = []): string {
  return [`politely: ${what}`, ...lines, "The program was not started, since it would not have been paced."].join("\n");
}
