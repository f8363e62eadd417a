import { Option } from "commander";
import { type LogFormat, logFormats } from "../audit/logFormat.js";
import { UsageError } from "../errors.js";
import type { AddCommand } from "../main.js";
import { durationOption } from "../policy/optionValues.js";

interface Options {
  readonly policy?: string;
  readonly format?: LogFormat;
  readonly host?: string;
  readonly only?: string;
  readonly slack?: string;
  readonly allowUnread?: boolean;
  readonly json?: boolean;
  readonly receipt?: string;
}

const examples = `
Examples:
  politely audit politely-out                             what politely get did, by its index
  politely audit -p politely.json crawl.jsonl             any JSON Lines with url and time
  politely audit -p politely.yaml session.har --json      what a browser did, for machines
  politely audit --host example.com --only MyBot/2.1 access.log
                                                          one client in a site's own log
  zcat access.log.*.gz | politely audit --host example.com -
  politely audit politely-out --receipt receipt.json      a summary for the site's owner

Stamps of whole seconds are intervals: only what no times inside them allow is reported.
Exit code: 0 kept to the policy, 1 not kept or a line could not be read, 2 wrong usage.`;

/** Adds `politely audit LOG…`. */
export const addAudit: AddCommand = (program, io, done) => {
  program
    .command("audit")
    .description(
      "Did this log keep to the policy? Names the tightest violation of each limit, and the lines that prove it.",
    )
    .argument("<log...>", "index, JSON Lines, HAR or access log (combined format); - is stdin")
    .option("-p, --policy <file>", "policy, JSON or YAML (default: politely.json here, else presets)")
    .addOption(new Option("--format <name>", "format of the logs (default: by content)").choices(logFormats))
    .option("--host <name>", "the site whose access log it is, where the lines do not say")
    .option("--only <text>", "only lines that contain this text, a user agent or an address say")
    .option("--slack <time>", "each stamp may be off by so much either way: 5ms, 1s (default: 0)")
    .option("--allow-unread", "judge by the rest where lines cannot be read (default: that is exit code 1)")
    .option("--json", "one JSON object on stdout")
    .option("--receipt <file>", "write a compact summary without URLs, for the site's owner")
    .addHelpText("after", examples)
    .action(async (logs: string[], { slack, ...options }: Options) => {
      if (logs.filter((log) => log === "-").length > 1) throw new UsageError("stdin (-) can be read once only");
      const slackMs = slack === undefined ? undefined : durationOption("--slack", slack, SLACK);
      const { auditLogs } = await import("../audit/auditLogs.js");
      done(await auditLogs(logs, { ...options, slackMs }, io));
    });
};

const SLACK = { least: 0, most: 3_600_000, examples: "5ms, 1s or 2min" };
