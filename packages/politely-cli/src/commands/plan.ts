import type { AddCommand } from "../main.js";
import type { PlanRequest } from "../plan/runPlan.js";
import { countOption, durationOption } from "../policy/optionValues.js";

const EXAMPLES = `
Examples:
  politely plan urls.txt                          how long the list takes by politely.json here, else by the presets
  politely plan -p policy.yaml urls.txt --html plan.html
  politely plan --concurrency 32 --latency 500ms urls.txt
  cat urls.txt | politely plan - --json

Nothing is fetched. A file is a list with one URL a line; - is stdin.`;

/** `politely plan`: how long a list will take, which host is done last, and what would help. */
export const addPlan: AddCommand = (program, io, done) => {
  program
    .command("plan")
    .description("Tells how long a list of URLs will take, what holds it back, and what would help. Fetches nothing.")
    .argument("[URL or FILE...]", "URLs, or files with one URL a line; - is stdin")
    .option("-p, --policy <FILE>", "policy file, JSON or YAML (default: politely.json here, else the presets)")
    .option("--json", "write the plan as one JSON object")
    .option("--svg <FILE>", "draw the plan into an SVG file")
    .option("--html <FILE>", "write the plan as a page")
    .option(
      "--concurrency <N>",
      "at most so many requests in flight at once (default: as the policy says)",
      count("--concurrency"),
    )
    .option("--latency <DURATION>", "how long every answer takes, at most 10min (default: 200ms)", readLatency)
    .option("--rows <N>", "how many hosts to show, slowest first (default: 10)", count("--rows"))
    .addHelpText("after", EXAMPLES)
    .action(async (sources: string[], options: Omit<PlanRequest, "sources">) => {
      const { runPlan } = await import("../plan/runPlan.js");
      await runPlan({ ...options, sources }, io);
      done(0);
    });
};

function count(name: string): (text: string) => number {
  return (text) => countOption(name, text, { least: 1, most: 1_000_000 });
}

function readLatency(text: string): number {
  return durationOption("--latency", text, { least: 0, most: 600_000, examples: "200ms, 1.5s or 1min" });
}
