// @ts-check
// Usage: npm run bench -- [MEASURE or ROW …] [--quick] [--no-build]
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildGoProgram } from "./harness/goProgram.mjs";
import { describeRun } from "./harness/machine.mjs";
import { formatResult } from "./harness/report.mjs";
import { startChild } from "./harness/startChild.mjs";
import { summarize } from "./harness/summary.mjs";
import { measures } from "./measures/index.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const RESULTS = fileURLToPath(new URL("results/", import.meta.url));
const DEFAULT_CAP_MS = 60_000;
const USAGE = `Usage: npm run bench -- [MEASURE or ROW …] [--quick] [--no-build]
Measures: ${measures.map(({ name }) => name).join(" ")}
Rows: ${measures.flatMap(({ rows }) => rows.map(({ id }) => id)).join(" ")}`;

process.exitCode = await main();

async function main() {
  const wanted = readArguments();
  if (!wanted) return 2;
  const startMs = performance.now();
  if (wanted.build) buildLibrary();
  const go = buildGoProgram();
  if (go.note) console.log(go.note);
  const about = describeRun(go.version);
  console.log(
    `${about.machine.processor}, ${about.machine.cores} cores, Node ${about.node}, Go ${about.go ?? "not installed"}`,
  );

  /** @type {import("./harness/summary.mjs").Result[]} */
  const results = [];
  for (const { measure, row } of wanted.rows) {
    const rowStartMs = performance.now();
    const answers = await runRow(measure, row, { isQuick: wanted.isQuick, goProgram: go.program });
    const result = summarize(row, answers, results);
    results.push(result);
    result.seconds = (performance.now() - rowStartMs) / 1000;
    if (wanted.isQuick && row.quick) result.title += ` [quick: ${formatParams(row.quick)}]`;
    console.log(formatResult(row, result));
  }
  mkdirSync(RESULTS, { recursive: true });
  const file = wanted.isWhole ? "latest.json" : "partial.json";
  writeFileSync(RESULTS + file, `${JSON.stringify({ ...about, isQuick: wanted.isQuick, results }, null, 2)}\n`);
  const seconds = Math.round((performance.now() - startMs) / 1000);
  console.log(`\nDone in ${seconds} s; written to bench/results/${file}`);
  return results.some(({ entries }) => entries[0].error !== undefined) ? 1 : 0;
}

/** Undefined: wrong usage, already said. */
function readArguments() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      allowNegative: true,
      options: { quick: { type: "boolean", default: false }, build: { type: "boolean", default: true } },
    });
    const all = measures.flatMap((measure) => measure.rows.map((row) => ({ measure: measure.name, row })));
    const unknown = positionals.filter((name) => !all.some(({ measure, row }) => name === measure || name === row.id));
    if (unknown.length > 0) throw new Error(`No measure or row is called ${unknown.join(", ")}.`);
    const isNamed = (/** @type {typeof all[number]} */ { measure, row }) =>
      positionals.includes(measure) || positionals.includes(row.id);
    const rows = all.filter((entry) =>
      positionals.length === 0 ? !(values.quick && entry.row.isSlow) : isNamed(entry),
    );
    return { rows, isQuick: values.quick, isWhole: positionals.length === 0 && !values.quick, build: values.build };
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    return undefined;
  }
}

/**
 * Runs every contender once a round, so that whatever else the machine does meanwhile meets all of them.
 *
 * @param {string} measure
 * @param {import("./measures/types.d.ts").Row} row
 * @param {{ isQuick: boolean; goProgram: string | undefined }} how
 */
async function runRow(measure, row, { isQuick, goProgram }) {
  const params = isQuick ? { ...row.params, ...row.quick } : row.params;
  const rounds = isQuick ? 1 : row.rounds;
  const atOnce = isQuick && row.parallel ? row.contenders.length : (row.parallel ?? 1);
  /** @type {Record<string, number | string>[][]} */
  const answers = row.contenders.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (let first = 0; first < row.contenders.length; first += atOnce) {
      const group = row.contenders.slice(first, first + atOnce);
      const jobs = group.map((contender) =>
        startChild({ measure, contender, params, capMs: row.capMs ?? DEFAULT_CAP_MS, goProgram }),
      );
      for (const [i, answer] of (await Promise.all(jobs)).entries()) answers[first + i].push(answer);
    }
  }
  return answers;
}

/** @param {object} params */
function formatParams(params) {
  return Object.entries(params)
    .map(([name, value]) => `${name} ${value.toLocaleString("en-US")}`)
    .join(", ");
}

/** Ours is measured as published: compiled. A failing build is said and leaves the rivals' rows standing. */
function buildLibrary() {
  const { status, stdout } = spawnSync("npx", ["tsc", "-p", "packages/politely"], { cwd: ROOT, encoding: "utf8" });
  if (status !== 0)
    console.log(`packages/politely does not compile; politely's rows may be missing or old.\n${stdout}`);
}
