import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { Duration, PolicyInput } from "politely";
import { UsageError, WorkError } from "../errors.js";
import type { Io } from "../io.js";
import { keepRead } from "../keepRead.js";
import { readUrls } from "../list/urlList.js";
import { findPolicy } from "../policy/policyFile.js";
import { countText } from "../words.js";
import { countUrls, type UrlCounts } from "./countUrls.js";
import { peakInFlight } from "./peakInFlight.js";
import type { Plan, PlanOptions } from "./plan.js";
import { planHtml } from "./planHtml.js";
import { planJson } from "./planJson.js";
import { planSteps } from "./planRun.js";
import { planSvg } from "./planSvg.js";
import { isUnicodeTerminal, planText } from "./planText.js";
import { ProgressLine } from "./progressLine.js";

/** What somebody asked of `politely plan`. */
export interface PlanRequest {
  /** URLs, lists, or `-`. */
  readonly sources: readonly string[];
  readonly policy?: string | undefined;
  readonly json?: boolean | undefined;
  readonly svg?: string | undefined;
  readonly html?: string | undefined;
  readonly concurrency?: number | undefined;
  readonly latency?: Duration | undefined;
  /** How many hosts get a row in the terminal. Default 10. */
  readonly rows?: number | undefined;
  /** When the plan begins, in milliseconds since 1970. Default now. */
  readonly wallMs?: number | undefined;
}

/** Reads a list and a policy, plans, and writes the plan to stdout and the files asked for. Throws `UsageError` for an empty list, `WorkError` for a file that cannot be written or when it is interrupted. */
export async function runPlan(request: PlanRequest, io: Io): Promise<void> {
  const { wallMs = Date.now(), concurrency, latency } = request;
  if (request.sources.length === 0) throw new UsageError(`plan needs URLs: ${NEEDS}`);
  const { policy, path } = await findPolicy(request.policy, io.cwd);
  for (const name of ["svg", "html"] as const) {
    const written = request[name];
    if (written !== undefined) keepRead({ option: `--${name}`, path: written }, [path, ...request.sources], io.cwd);
  }
  const progress = new ProgressLine(io);
  let listed: UrlCounts;
  let plan: Plan;
  try {
    listed = await count(request.sources, policy, io, progress);
    if (listed.counts.size === 0) throw new UsageError(`the list is empty: ${NEEDS}`);
    plan = await planned(listed, policy, { concurrency, latency, wallMs }, io, progress);
  } finally {
    progress.clear();
  }
  const told = { wallMs, duplicates: listed.duplicates, peakInFlight: peakInFlight(plan) };
  if (request.json === true) io.stdout.write(`${JSON.stringify(planJson(plan, told))}\n`);
  else {
    const isUnicode = isUnicodeTerminal(io.env, process.platform);
    io.stdout.write(planText(plan, { ...told, columns: io.columns, isUnicode, rows: request.rows ?? 10 }));
  }
  if (request.svg !== undefined) await save(request.svg, planSvg(plan, wallMs), io);
  if (request.html !== undefined) await save(request.html, planHtml(plan, told), io);
}

const NEEDS = "give at least one URL, a file with one URL a line, or - for stdin.";

async function count(
  sources: readonly string[],
  policy: PolicyInput,
  io: Io,
  progress: ProgressLine,
): Promise<UrlCounts> {
  return countUrls(readUrls(sources, io), policy, (urls) => {
    stopIfInterrupted(io);
    progress.show(`reading: ${countText(urls)} URLs`);
  });
}

async function planned(
  { counts }: UrlCounts,
  policy: PolicyInput,
  options: PlanOptions,
  io: Io,
  progress: ProgressLine,
): Promise<Plan> {
  const steps = planSteps(counts, policy, options);
  for (let turn = 1; ; turn++) {
    const step = steps.next();
    if (step.done === true) return step.value;
    const { planned: done, toPlan } = step.value;
    progress.show(`planning: ${countText(done)} of ${countText(toPlan)} requests`);
    // Now and then a Ctrl-C must be heard.
    if (turn % 8 === 0) await setImmediate();
    stopIfInterrupted(io);
  }
}

function stopIfInterrupted({ interrupted }: Io): void {
  if (interrupted.aborted) throw new WorkError("interrupted; nothing was planned.");
}

async function save(path: string, content: string, { cwd }: Io): Promise<void> {
  try {
    await writeFile(resolve(cwd, path), content);
  } catch (error) {
    throw new WorkError(`${path} could not be written: ${error instanceof Error ? error.message : String(error)}`);
  }
}
