import { createHash } from "node:crypto";
import type { PolicyInput } from "politely";
import type { AuditedKey, AuditReport } from "politely/testing";

/** What is handed to a site's owner: numbers per host, and no URL. */
export interface Receipt {
  readonly kind: "politely-receipt";
  readonly version: 1;
  /** The policy that was kept to, or not: the SHA-256 of its JSON with sorted fields and without blanks. */
  readonly policy: string;
  /** From the first start to the last: ISO 8601, UTC. */
  readonly period: { readonly from: string; readonly until: string };
  readonly requests: number;
  /** Lines of the logs that could not be read, and are not judged. */
  readonly unread: number;
  /** False also where lines could not be read, unless those were allowed. */
  readonly kept: boolean;
  readonly hosts: readonly ReceiptHost[];
}

/** One host of a receipt. */
export interface ReceiptHost {
  readonly host: string;
  readonly requests: number;
  /** Answers of 429. */
  readonly throttled: number;
  readonly limits: readonly string[];
  /** The most starts in any stretch of each length, and what the limit of that length allows. */
  readonly peaks: readonly { readonly perMs: number; readonly starts: number; readonly allowed?: number }[];
  readonly peakConcurrency?: number;
  /** What was not kept, a sentence each; limits of intents included. */
  readonly violations: readonly string[];
  readonly ignoredRetryAfters: number;
  readonly kept: boolean;
}

/** Makes a receipt of what an audit found. Limits over several hosts count for `kept` of the whole, not of a host. */
export function receiptOf(
  report: AuditReport,
  { digest, unread, isKept }: { readonly digest: string; readonly unread: number; readonly isKept: boolean },
): Receipt {
  const hosts = report.keys.filter(({ kind, requests }) => kind === "host" && requests > 0);
  const firstMs = hosts.reduce((least, host) => Math.min(least, host.firstMs), Number.POSITIVE_INFINITY);
  const lastMs = hosts.reduce((most, host) => Math.max(most, host.lastMs), Number.NEGATIVE_INFINITY);
  const intents = new Map<string, AuditedKey[]>();
  for (const intent of report.keys.filter(({ kind }) => kind === "intent")) {
    intents.set(intent.key, [...(intents.get(intent.key) ?? []), intent]);
  }
  return {
    kind: "politely-receipt",
    version: 1,
    policy: digest,
    period: { from: isoText(firstMs), until: isoText(lastMs) },
    requests: hosts.reduce((sum, { requests }) => sum + requests, 0),
    unread,
    kept: isKept,
    hosts: hosts.map((host) => hostOf(host, intents.get(host.key) ?? [])),
  };
}

/** The SHA-256 of a policy, whatever the order of its fields and however its file is written. */
export function policyDigest(policy: PolicyInput): string {
  return `sha256:${createHash("sha256")
    .update(JSON.stringify(sortedFields(policy)))
    .digest("hex")}`;
}

function hostOf(host: AuditedKey, intents: readonly AuditedKey[]): ReceiptHost {
  const judged = [host, ...intents];
  return {
    host: host.key,
    requests: host.requests,
    throttled: countOf(host, 429),
    limits: host.limits,
    peaks: host.peaks.map(({ perMs, starts, allowed }) => ({
      perMs,
      starts,
      ...(allowed === undefined ? {} : { allowed }),
    })),
    ...(host.peakConcurrency === undefined ? {} : { peakConcurrency: host.peakConcurrency }),
    violations: judged.flatMap(({ violations }) => violations.map(({ says }) => says)),
    ignoredRetryAfters: host.ignoredCount,
    kept: judged.every(({ isClean }) => isClean),
  };
}

/** How many answers of a key had a status. */
export function countOf({ statuses }: AuditedKey, status: number): number {
  return statuses.find((one) => one.status === status)?.count ?? 0;
}

function isoText(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString() : "";
}

function sortedFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedFields);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(
    fields.toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([name, field]) => [name, sortedFields(field)]),
  );
}
