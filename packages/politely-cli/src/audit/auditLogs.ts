import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createTraceAudit } from "politely/testing";
import { UsageError, WorkError } from "../errors.js";
import type { ExitCode, Io } from "../io.js";
import { fileId, keepRead } from "../keepRead.js";
import { findPolicy } from "../policy/policyFile.js";
import { whyNot } from "../policy/readText.js";
import { safeText } from "../view/width.js";
import { countText } from "../words.js";
import { noHostProblem } from "./accessLine.js";
import { type LogTally, nameOf, type ReadOptions, readLog } from "./readLog.js";
import { policyDigest, type Receipt, receiptOf } from "./receipt.js";
import { reportText } from "./reportText.js";

/** What `politely audit` was asked for. */
export interface AuditLogsOptions extends ReadOptions {
  readonly policy?: string | undefined;
  readonly json?: boolean | undefined;
  readonly receipt?: string | undefined;
  readonly slackMs?: number | undefined;
  /** Lines that cannot be read do not keep it from saying that the policy was kept. Default false. */
  readonly allowUnread?: boolean | undefined;
}

/**
 * Holds logs against a policy and writes what it found to stdout. All logs together are one trace.
 *
 * Returns 1 when something did not keep to the policy, and when a line could not be read, unless those are allowed. Throws a `UsageError` for a file that cannot be opened and for a bad policy, a
 * `WorkError` when no request could be read in any of them, or the receipt cannot be written.
 */
export async function auditLogs(paths: readonly string[], options: AuditLogsOptions, io: Io): Promise<ExitCode> {
  if (paths.includes("")) {
    throw new UsageError("the name of a log is empty. Give a file, the folder of politely get, or - for stdin.");
  }
  const { path: policyPath, policy } = await findPolicy(options.policy, io.cwd);
  if (options.receipt !== undefined) {
    const read = [policyPath, ...paths, ...paths.map((path) => join(path, "index.jsonl"))];
    keepRead({ option: "--receipt", path: options.receipt }, read, io.cwd);
  }
  checkTwice(paths, io.cwd);
  const audit = createTraceAudit(policy, options.slackMs === undefined ? {} : { slackMs: options.slackMs });
  const logs: LogTally[] = [];
  for (const path of paths) logs.push(await readLog(path, io, audit, options));
  if (logs.every(({ requests }) => requests === 0)) throw nothingRead(logs, options.only);
  for (const log of logs) if (log.broken > 0) io.stderr.write(`politely: ${safeText(brokenText(log))}\n`);

  const report = audit.report();
  const unread = logs.reduce((sum, { broken }) => sum + broken, 0);
  const isKept = report.isClean && (unread === 0 || options.allowUnread === true);
  const digest = policyDigest(policy);
  if (options.json === true) {
    io.stdout.write(`${JSON.stringify({ policy: { path: policyPath, digest }, logs, unread, isKept, ...report })}\n`);
  } else {
    const isHar = new Set(logs.filter(({ format }) => format === "har").map(({ path }) => nameOf(path)));
    io.stdout.write(reportText(report, { policyPath, isHar, unread, isKept }));
  }
  if (options.receipt !== undefined)
    await writeReceipt(options.receipt, receiptOf(report, { digest, unread, isKept }), io);
  return isKept ? 0 : 1;
}

/** Each request of a log that is read twice would break the limits by itself. */
function checkTwice(paths: readonly string[], cwd: string): void {
  const seen = new Map<string, string>();
  for (const path of paths) {
    // A folder stands for the index in it.
    const id = fileId(resolve(cwd, path, "index.jsonl")) ?? fileId(resolve(cwd, path));
    const first = id === undefined ? undefined : seen.get(id);
    if (first !== undefined) throw new UsageError(`${path} is the same log as ${first}; name it once`);
    if (id !== undefined) seen.set(id, path);
  }
}

async function writeReceipt(path: string, receipt: Receipt, io: Io): Promise<void> {
  try {
    await writeFile(resolve(io.cwd, path), `${JSON.stringify(receipt, undefined, 2)}\n`);
  } catch (error) {
    throw new WorkError(`the receipt ${path} cannot be written: ${whyNot(error)}`);
  }
}

function nothingRead(logs: readonly LogTally[], only: string | undefined): WorkError | UsageError {
  const lines = logs.reduce((sum, log) => sum + log.lines, 0);
  const names = logs.map(({ path }) => nameOf(path)).join(", ");
  if (lines === 0) return new WorkError(`${names}: empty, there is nothing to audit`);
  const others = logs.reduce((sum, log) => sum + log.others, 0);
  if (others === lines) {
    return new WorkError(`${names}: none of ${countText(lines)} lines contains ${JSON.stringify(only)}`);
  }
  const hostless = logs.find((log) => log.brokenLines.some(({ problem }) => problem === noHostProblem));
  if (hostless !== undefined) return new UsageError(`${nameOf(hostless.path)} ${noHostProblem}`);
  const worst = logs.find(({ broken }) => broken > 0);
  return new WorkError(
    worst === undefined
      ? `${names}: ${countText(lines)} lines, and none of a request that was sent`
      : `no request could be read; ${brokenText(worst)}`,
  );
}

function brokenText({ path, lines, broken, brokenLines, format }: LogTally): string {
  const unit = format === "har" ? "entries" : "lines";
  const [first] = brokenLines;
  const numbers = brokenLines.map(({ line }) => String(line)).join(", ");
  const more = broken > brokenLines.length ? ", …" : "";
  return `${nameOf(path)}: ${countText(broken)} of ${countText(lines)} ${unit} could not be read (${numbers}${more}); ${nameOf(path)}:${first.line}: ${first.problem}`;
}
