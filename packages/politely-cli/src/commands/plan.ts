import { InvalidArgumentError } from "commander";
import type { AddCommand } from "../main.js";
import { type PlanRequest, runPlan } from "../plan/runPlan.js";
import { durationMs } from "../policy/rateParts.js";

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
    .option("--concurrency <N>", "at most so many requests in flight at once (default: as the policy says)", readCount)
    .option("--latency <DURATION>", "how long every answer takes, at most 10min (default: 200ms)", readLatency)
    .option("--rows <N>", "how many hosts to show, slowest first (default: 10)", readCount)
    .addHelpText("after", EXAMPLES)
    .action(async (sources: string[], options: Omit<PlanRequest, "sources">) => {
      await runPlan({ ...options, sources }, io);
      done(0);
    });
};

function readCount(text: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1 && count <= 1_000_000) return count;
  throw new InvalidArgumentError("It must be a whole number from 1 to 1,000,000.");
}

function readLatency(text: string): number {
  const form = /^\d+(\.\d+)? ?(ms|s|m|min)?$/.exec(text);
  const ms = form === null ? Number.NaN : form[2] === undefined ? Number(text) : durationMs(text as `${number}ms`);
  if (ms >= 0 && ms <= 600_000) return ms;
  throw new InvalidArgumentError('It must be a duration from 0 to 10min, such as "200ms" or "1.5s".');
}
