import { STATUS_CODES } from "node:http";
import type { FastifyReply } from "fastify";

/** One field of a request that is wrong, and how. */
export interface FieldError {
  readonly field: string;
  readonly message: string;
}

/** What a problem may say beside its status and detail. */
export interface ProblemMore {
  /** For programs: `POLITELY_DEADLINE` and the other codes of the library, or a word of the service. */
  readonly code?: string | undefined;
  readonly errors?: readonly FieldError[] | undefined;
  /** How long a start would have to wait at least. */
  readonly waitMs?: number | undefined;
  readonly reason?: string | undefined;
  /** Sent as `Retry-After`, in whole seconds, rounded up, at least one; not sent when infinite. */
  readonly retryAfterMs?: number | undefined;
  /** Sent as `Allow`. */
  readonly allow?: string | undefined;
  /** The connection is closed after the answer. */
  readonly isLast?: boolean | undefined;
}

/** The media type of problem details, RFC 9457. */
export const PROBLEM_TYPE = "application/problem+json";

/** Something that is answered with problem details. Thrown in a handler, it becomes the answer. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";

  constructor(
    readonly status: number,
    readonly detail: string,
    readonly more: ProblemMore = {},
  ) {
    super(detail);
  }
}

/** The body of a problem, as JSON. */
export function problemText({ status, detail, more }: ProblemError): string {
  const { code, errors, waitMs, reason } = more;
  return JSON.stringify({
    type: "about:blank",
    title: STATUS_CODES[status] ?? "Error",
    status,
    detail,
    code,
    waitMs,
    reason,
    errors,
  });
}

/** Answers with a problem. */
export function sendProblem(reply: FastifyReply, problem: ProblemError): FastifyReply {
  const { retryAfterMs, allow, isLast } = problem.more;
  const retryAfter = retryAfterSeconds(retryAfterMs);
  if (retryAfter !== undefined) reply.header("retry-after", retryAfter);
  if (allow !== undefined) reply.header("allow", allow);
  if (problem.status === 401) reply.header("www-authenticate", 'Bearer realm="politely"');
  if (isLast === true) reply.header("connection", "close");
  return reply.code(problem.status).type(PROBLEM_TYPE).send(problemText(problem));
}

/** The value of `Retry-After`: whole seconds, rounded up, from 1 to a year. Undefined, for no header, when no time is known or it has no end. */
export function retryAfterSeconds(ms: number | undefined): string | undefined {
  if (ms === undefined || !Number.isFinite(ms)) return undefined;
  return String(Math.min(Math.max(1, Math.ceil(ms / 1_000)), 31_536_000));
}

/** A problem with one field of what was sent: 422. */
export function fieldProblem(field: string, message: string): ProblemError {
  return new ProblemError(422, `${field}: ${message}`, { code: "invalid", errors: [{ field, message }] });
}
