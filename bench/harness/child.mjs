// @ts-check
// Runs one contender of one measure in a process of its own and prints what it measured as one line of JSON.
// Usage: node child.mjs MEASURE RIVAL PARAMS OPTIONS, the last two as JSON.
import { measures } from "../measures/index.mjs";

// Told to stop, it exits in order: servers that it has started end with it.
process.once("SIGTERM", () => process.exit(1));

const [name, rival, params, options] = process.argv.slice(2);
const measure = measures.find((candidate) => candidate.name === name);
if (!measure) throw new Error(`no measure is called ${name}`);
/** @type {object} */
let answer;
try {
  answer = await measure.run(await import(`../rivals/${rival}.mjs`), JSON.parse(params), JSON.parse(options));
} catch (error) {
  answer = { error: error instanceof Error ? error.message : String(error) };
}
// Some rivals keep timers for ever; the exit ends them.
process.stdout.write(`${JSON.stringify(answer)}\n`, () => process.exit());
