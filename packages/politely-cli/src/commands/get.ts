import type { Command } from "commander";
import { UsageError } from "../errors.js";
import type { GetOptions } from "../get/getOptions.js";
import { sizeOption } from "../get/sizeOption.js";
import type { ExitCode, Io } from "../io.js";
import type { AddCommand } from "../main.js";
import { countOption, durationOption } from "../policy/optionValues.js";

const EXAMPLES = `
Examples:
  politely get https://example.com/a https://example.com/b
  politely get urls.txt -o pages                     a file with one URL a line, into a folder
  cat urls.txt | politely get - -p policy.yaml       from stdin, with limits of your own
  politely get urls.txt --json | jq .status          one line of JSON for each URL
  politely get urls.txt --share redis://10.0.0.5     several machines, one list

Ctrl-C ends what is in flight and stops; a second one stops at once. The same command again goes on
where it was. Once all is fetched, the same command asks for what has changed since.
Exit code 0: everything was fetched. 1: something was not, or is left. 2: wrong usage, nothing was begun.`;

/** `politely get`. */
export const addGet: AddCommand = (program, io, done) => {
  program
    .command("get")
    .description("Fetches a list of URLs politely, into a folder, and can be stopped and resumed.")
    .argument("[urls...]", "URLs, files with one URL a line, or - for stdin")
    .option("-p, --policy <file>", "limits, JSON or YAML (default: politely.json here, else known sites and 1/s)")
    .option("-o, --out <dir>", "folder for bodies, index.jsonl and the journal", "politely-out")
    .option("--share <url>", "redis://…, postgres://… or a file: several workers split one list")
    .option("--list <name>", "which list of --share", "default")
    .option("--lease <duration>", "with --share: a silent worker's URLs are handed out again after this", "30s")
    .option("--concurrency <n>", "requests in flight at once", "32")
    .option("--no-robots", "do not ask for robots.txt")
    .option("--user-agent <text>", "who you are (default: that of the policy, else politely)")
    .option("--retry <n>", "send a failed request again, so many times (default: the policy's, else 2)")
    .option("--max-wait <duration>", "give a URL up that would wait longer for its turn: 30s, 10min")
    .option("--timeout <duration>", "the longest silence of a site", "60s")
    .option("--max-size <size>", "break off a body that is larger", "1GiB")
    .option("--refresh", "ask for finished URLs again, for what has changed")
    .option("--json", "one line of JSON for each URL on stdout, and the summary at the end")
    .option("-q, --quiet", "no progress and no summary on stderr")
    .addHelpText("after", EXAMPLES)
    .action(async (urls: string[], _options: unknown, command: Command) => {
      done(await get(urls, command.opts<GetFlags>(), io));
    });
};

/** What was written on the command line. */
interface GetFlags {
  readonly policy?: string;
  readonly out: string;
  readonly share?: string;
  readonly list: string;
  readonly lease: string;
  readonly concurrency: string;
  readonly robots: boolean;
  readonly userAgent?: string;
  readonly retry?: string;
  readonly maxWait?: string;
  readonly timeout: string;
  readonly maxSize: string;
  readonly refresh?: boolean;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

async function get(args: readonly string[], flags: GetFlags, io: Io): Promise<ExitCode> {
  const options = readFlags(args, flags);
  // What fetches takes a moment to load, which no other command should wait for.
  const [{ findPolicy }, { runGet }, { createGetView }] = await Promise.all([
    import("../policy/policyFile.js"),
    import("../get/runGet.js"),
    import("../view/getView.js"),
  ]);
  const { policy } = await findPolicy(flags.policy, io.cwd);
  await runGet({ ...options, policy }, io, createGetView(io, { isQuiet: flags.quiet === true }));
  return 0;
}

function readFlags(args: readonly string[], flags: GetFlags): Omit<GetOptions, "policy"> {
  const { out, share, list, userAgent, retry, maxWait } = flags;
  if (!/^[\w.-]{1,100}$/.test(list)) {
    throw new UsageError(`--list takes 1 to 100 letters, digits, -, _ or .; got "${list}"`);
  }
  if (out === "") throw new UsageError('--out takes the name of a folder; got "". This one is a dot: --out .');
  return {
    args,
    out,
    list,
    concurrency: countOption("--concurrency", flags.concurrency, { least: 1, most: 10_000 }),
    leaseMs: durationOption("--lease", flags.lease, { least: 1_000, most: 3_600_000 }),
    maxBytes: sizeOption("--max-size", flags.maxSize),
    timeoutMs: durationOption("--timeout", flags.timeout, { least: 1, most: 86_400_000 }),
    isRobots: flags.robots,
    isRefresh: flags.refresh === true,
    isJson: flags.json === true,
    ...(share === undefined ? {} : { share }),
    ...(userAgent === undefined ? {} : { userAgent }),
    ...(retry === undefined ? {} : { retry: countOption("--retry", retry, { least: 0, most: 100 }) }),
    ...(maxWait === undefined
      ? {}
      : { maxWait: durationOption("--max-wait", maxWait, { least: 0, most: 365 * 86_400_000 }) }),
  };
}
