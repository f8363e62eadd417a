import type { AddCommand } from "../main.js";

interface Options {
  readonly search?: string;
  readonly json?: boolean;
}

const examples = `
Examples:
  politely presets                       all known sites
  politely presets arxiv                 one of them, with source and date
  politely presets --search wikipedia    by name, host, notes or source
  politely presets --json

A policy applies them with "presets": true, or by name with "presets": ["arxiv"].`;

/** Adds `politely presets [NAME]`. */
export const addPresets: AddCommand = (program, io, done) => {
  program
    .command("presets")
    .description("Known sites and their published limits, with source and date.")
    .argument("[name]", "show all of this one")
    .option("--search <text>", "those with every word of the text in name, hosts, notes or sources")
    .option("--json", "JSON on stdout")
    .addHelpText("after", examples)
    .action(async (name: string | undefined, { search, json }: Options) => {
      const asked = {
        ...(name === undefined ? {} : { name }),
        ...(search === undefined ? {} : { search }),
        json: json === true,
      };
      const { showPresets } = await import("../presets/showPresets.js");
      done(showPresets(asked, io));
    });
};
