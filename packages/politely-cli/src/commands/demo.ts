import type { AddCommand } from "../main.js";

interface Options {
  readonly json?: boolean;
  readonly quiet?: boolean;
}

const examples = `
Examples:
  politely demo                what three sites see of a loop over fetch, and of Politely
  politely demo --json | jq    the same as one JSON object

It takes less than 40 s and needs no network: the sites are on free ports of this machine.
Exit code: 0 the polite caller got every page and kept every rule, 1 it did not.`;

/** Adds `politely demo`. */
export const addDemo: AddCommand = (program, io, done) => {
  program
    .command("demo")
    .description("Shows three local sites being called without and with Politely.")
    .option("--json", "one JSON object on stdout")
    .option("-q, --quiet", "no bars while it runs")
    .addHelpText("after", examples)
    .action(async ({ json, quiet }: Options) => {
      const { runDemo } = await import("../demo/runDemo.js");
      done(await runDemo(io, { isJson: json, isQuiet: quiet }));
    });
};
