import type { HeadersLike, Outcome, OutcomeKind } from "politely";
import { fieldProblem } from "./problem.js";

/** The fields of a body that say how a request ended. */
export interface OutcomeBody {
  readonly outcome?: OutcomeKind;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | number | readonly string[]>>;
  readonly retryAfterMs?: number;
  readonly latencyMs?: number;
}

/**
 * The outcome that a body tells; undefined when it tells none. Throws a problem where it tells two, or belongs to none.
 */
export function outcomeOf(body: OutcomeBody): Outcome | undefined {
  const { outcome, status, headers, retryAfterMs, latencyMs } = body;
  const latency = latencyMs === undefined ? {} : { latencyMs };
  if (outcome !== undefined) {
    if (status !== undefined) throw fieldProblem("status", "must not stand beside outcome: send one of them");
    if (headers !== undefined) throw fieldProblem("headers", "need status: outcome says how it ended already");
    return { kind: outcome, ...(retryAfterMs === undefined ? {} : { retryAfterMs }), ...latency };
  }
  if (status !== undefined) return { status, headers: withRetryAfter(headers, retryAfterMs), ...latency };
  for (const field of ["headers", "retryAfterMs", "latencyMs"] as const) {
    if (body[field] !== undefined) throw fieldProblem(field, "needs outcome or status");
  }
  return undefined;
}

/** A duration that the caller worked out counts as the header, rounded up, unless the header itself is there. */
function withRetryAfter(headers: OutcomeBody["headers"], retryAfterMs: number | undefined): HeadersLike {
  if (retryAfterMs === undefined) return headers ?? {};
  const has = Object.keys(headers ?? {}).some((name) => name.toLowerCase() === "retry-after");
  return has ? (headers ?? {}) : { ...headers, "retry-after": String(Math.ceil(retryAfterMs / 1_000)) };
}
