import { Option } from "commander";
import { UsageError } from "../errors.js";
import type { AddCommand } from "../main.js";

interface Options {
  readonly explain?: readonly string[];
  readonly migrate?: boolean;
  readonly out?: string;
  readonly json?: boolean;
}

const examples = `
Examples:
  politely check politely.json                        every problem, with line and column
  politely check politely.yaml --explain api.x.org    what limits that host, and which rule says so
  politely check limits.json --migrate > politely.json
                                                      from a file of version, default_config and domains

Exit code: 0 the policy is fine, 1 it has problems, 2 the file cannot be read.`;

/** Adds `politely check FILE`. */
export const addCheck: AddCommand = (program, io, done) => {
  program
    .command("check")
    .description("Is this policy right? Says what it means for a host, and migrates older files.")
    .argument("<file>", "policy file, JSON or YAML")
    .option("--explain <host>", "limits of a host or URL and the rule they come from; may be repeated", collect)
    .addOption(
      new Option("--migrate", "turn a file of version, default_config and domains into a policy").conflicts([
        "explain",
        "json",
      ]),
    )
    .option("--out <file>", "with --migrate: write there, as YAML if it ends so (default: stdout, JSON)")
    .option("--json", "one JSON object on stdout")
    .addHelpText("after", examples)
    .action(async (file: string, { migrate, out, explain, json }: Options) => {
      if (out !== undefined && migrate !== true) throw new UsageError("--out has a meaning only with --migrate");
      const isMigration = migrate === true;
      const { checkPolicy, migrateFile } = await import("../check/checkPolicy.js");
      done(
        isMigration
          ? await migrateFile(file, out === undefined ? {} : { out }, io)
          : await checkPolicy(file, { explain: explain ?? [], json: json === true }, io),
      );
    });
};

function collect(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}
