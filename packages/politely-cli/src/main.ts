import { Command, CommanderError } from "commander";
import { UsageError, WorkError } from "./errors.js";
import type { ExitCode, Io } from "./io.js";

/** Adds a command to the program. `done` hears the exit code of what it did. */
export type AddCommand = (program: Command, io: Io, done: (code: ExitCode) => void) => void;

/**
 * Runs the command line. Resolves to the exit code: 0 fine, 1 the work failed or a violation was found, 2 wrong usage.
 *
 * Whatever goes wrong is one line on stderr. Never rejects.
 */
export async function main(args: readonly string[], io: Io, commands: readonly AddCommand[]): Promise<0 | 1 | 2> {
  let code: ExitCode = 0;
  const program = new Command("politely")
    .description("Fetches, plans and audits within the limits of the sites it calls.")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
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
  if (error instanceof UsageError || error instanceof WorkError) return error.message;
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
