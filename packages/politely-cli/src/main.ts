import { createRequire } from "node:module";
import { Command, CommanderError } from "commander";
import { UsageError, WorkError } from "./errors.js";
import type { ExitCode, Io } from "./io.js";
import { safeText } from "./view/width.js";

/** Adds a command to the program. `done` hears the exit code of what it did. What is slow to load is imported by its action. */
export type AddCommand = (program: Command, io: Io, done: (code: ExitCode) => void) => void;

/**
 * Runs the command line. Resolves to the exit code: 0 fine, 1 the work failed or a violation was found, 2 wrong usage.
 *
 * Whatever goes wrong is one line on stderr that begins with `politely: `; a policy with several problems has one for each. What others
 * wrote is shown without codes that draw on a terminal. Never rejects.
 */
export async function main(args: readonly string[], io: Io, commands: readonly AddCommand[]): Promise<0 | 1 | 2> {
  let code: ExitCode = 0;
  const program = new Command("politely")
    .description("Fetches, plans and audits within the limits of the sites it calls.")
    .version(version())
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      outputError: (text, write) => write(`politely: ${safeText(text.replace(/^error: /, "").trim())}\n`),
    });
  const done = (result: ExitCode): void => {
    code = result;
  };
  for (const add of commands) add(program, io, done);
  try {
    await program.parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    io.stderr.write(`politely: ${messageOf(error)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

function messageOf(error: unknown): string {
  if (error instanceof UsageError || error instanceof WorkError) {
    return error.message.split("\n").map(safeText).join("\n");
  }
  return safeText(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
}

/** The version of the package, which lies beside this folder, compiled or not. */
function version(): string {
  return (createRequire(import.meta.url)("../package.json") as { readonly version: string }).version;
}
