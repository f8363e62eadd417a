import type {
  AuditedKey,
  AuditReport,
  AuditViolation,
  IgnoredRetryAfter,
  TraceInstant,
  TraceMark,
} from "politely/testing";
import { safeText } from "../view/width.js";
import { countText, durationText } from "../words.js";
import { countOf } from "./receipt.js";

/** What the report needs to know beside what was found. */
export interface ReportSetting {
  /** Empty where there is no file and the presets apply. */
  readonly policyPath: string;
  /** Sources whose numbers count entries, not lines. */
  readonly isHar: ReadonlySet<string>;
  /** Lines that could not be read. */
  readonly unread: number;
  /** Everything that was read kept to the policy, and nothing was left unread that counts. */
  readonly isKept: boolean;
}

/** How many keys that kept to the policy are shown. Those that did not always are. */
const maxKeptShown = 20;

/**
 * Writes what was found for people: a block for each key, those that did not keep to the policy last, then the verdict.
 *
 * Names that come from a log or the command line cannot draw on a terminal, nor add lines.
 */
export function reportText(report: AuditReport, setting: ReportSetting): string {
  const kept = report.keys.filter(({ isClean }) => isClean);
  const guilty = report.keys.filter(({ isClean }) => !isClean);
  const shown = kept.slice(0, maxKeptShown);
  const blocks = [...shown, ...guilty].map((key) => blockOf(key, setting));
  if (kept.length > shown.length) {
    const rest = kept.length - shown.length;
    blocks.splice(shown.length, 0, `and ${countText(rest)} more that kept to the policy (--json lists all)\n`);
  }
  return `${blocks.join("\n")}\n${verdictOf(report, guilty, setting)}\n`;
}

function blockOf(key: AuditedKey, setting: ReportSetting): string {
  const lines = [`${titleOf(key)}: ${limitsOf(key)}`, `  ${requestsOf(key)}`];
  const peaks = peaksOf(key);
  if (peaks !== "") lines.push(`  at most ${peaks}`);
  for (const violation of key.violations) lines.push(...violationLines(violation, setting));
  lines.push(...ignoredLines(key, setting));
  return `${lines.join("\n")}\n`;
}

function titleOf({ kind, key, intent }: AuditedKey): string {
  if (kind === "host") return safeText(key);
  if (kind === "intent") return safeText(`${key}, intent ${intent ?? ""}`);
  return kind === "scope" ? safeText(`scope ${key}`) : "everything together";
}

function limitsOf({ limits, isLimited, origin }: AuditedKey): string {
  if (!isLimited) return `not limited (${origin})`;
  return `${limits.length === 0 ? "no limit" : limits.join(", ")} (${origin})`;
}

function requestsOf(key: AuditedKey): string {
  const { requests, firstMs, lastMs } = key;
  const throttled = countOf(key, 429);
  const count = `${countText(requests)} ${requests === 1 ? "request" : "requests"}`;
  if (requests === 0) return count;
  const span = `${count} in ${durationText(lastMs - firstMs)}, from ${stampText(firstMs)} to ${stampText(lastMs)}`;
  return throttled === 0 ? span : `${span}, ${countText(throttled)} answered with 429`;
}

function peaksOf({ peaks, peakConcurrency }: AuditedKey): string {
  const parts = peaks.map(({ perMs, starts, allowed }) => {
    const most = allowed === undefined ? "" : ` (${countText(allowed)} allowed)`;
    return `${countText(starts)} in ${durationText(perMs)}${most}`;
  });
  if (peakConcurrency !== undefined) parts.push(`${countText(peakConcurrency)} in flight`);
  return parts.join(", ");
}

function violationLines({ says, proof, proofCount }: AuditViolation, setting: ReportSetting): string[] {
  const lines = proof.map((mark) => `    ${placeOf(mark, setting)}  ${instantText(mark.startedAtMs)}`);
  if (proofCount > proof.length) lines.splice(-1, 0, `    … ${countText(proofCount - proof.length)} more …`);
  return [`  NOT KEPT: ${safeText(says)}`, ...lines];
}

function ignoredLines({ ignoredCount, ignoredRetryAfters }: AuditedKey, setting: ReportSetting): string[] {
  if (ignoredCount === 0) return [];
  const starts = `${countText(ignoredCount)} ${ignoredCount === 1 ? "start" : "starts"}`;
  const lines = ignoredRetryAfters.map((ignored) => `    ${ignoredText(ignored, setting)}`);
  if (ignoredCount > lines.length) lines.push(`    … ${countText(ignoredCount - lines.length)} more`);
  return [`  RETRY-AFTER IGNORED: ${starts}`, ...lines];
}

function ignoredText({ start, asked, says }: IgnoredRetryAfter, setting: ReportSetting): string {
  return `${placeOf(start, setting)}  ${instantText(start.startedAtMs)}  ${safeText(says)}, asked for in ${placeOf(asked, setting)}`;
}

function verdictOf(
  { keys, entries }: AuditReport,
  guilty: readonly AuditedKey[],
  { policyPath, unread, isKept }: ReportSetting,
): string {
  const policy = policyPath === "" ? "the policy (presets, else 1/s)" : safeText(policyPath);
  const lines = `${countText(unread)} ${unread === 1 ? "line" : "lines"} could not be read`;
  const tail = unread === 0 ? "" : `; ${lines}`;
  const hosts = keys.filter(({ kind }) => kind === "host").length;
  const all = `${countText(hosts)} ${hosts === 1 ? "host" : "hosts"}`;
  const requests = `${countText(entries)} ${entries === 1 ? "request" : "requests"}`;
  if (isKept) return `Kept to ${policy}: ${all}, ${requests}${tail}.`;
  if (guilty.length === 0) {
    return `Not certain: ${lines}; the rest kept to ${policy}: ${all}, ${requests}. --allow-unread judges by the rest.`;
  }
  const guiltyHosts = new Set(guilty.filter(({ kind }) => kind === "host" || kind === "intent").map(({ key }) => key))
    .size;
  const others = guilty.filter(({ kind }) => kind === "scope" || kind === "global").map(titleOf);
  const parts = guiltyHosts > 0 ? [`${countText(guiltyHosts)} of ${all}`, ...others] : others;
  return `Not kept to ${policy}: ${parts.join(", ")}; ${requests}${tail}.`;
}

function placeOf({ source, line, index }: TraceMark, { isHar }: ReportSetting): string {
  if (source === undefined || line === undefined) return `request ${index + 1}`;
  return safeText(isHar.has(source) ? `${source} entry ${line}` : `${source}:${line}`);
}

function instantText(instant: TraceInstant): string {
  if (typeof instant === "number") return stampText(instant);
  const [fromMs, untilMs] = instant;
  // The stamp as the log had it; a few microseconds are how it was rounded.
  return untilMs - fromMs >= 1000 ? stampText(fromMs).slice(0, 19) : stampText((fromMs + untilMs) / 2);
}

function stampText(ms: number): string {
  return new Date(ms).toISOString().replace("T", " ").replace("Z", "");
}
