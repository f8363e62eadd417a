import type { FastifyError, FastifySchemaValidationError } from "fastify";
import {
  CapacityError,
  ClosedError,
  DeadlineError,
  PolicyError,
  PolitelyError,
  QueueFullError,
  StoreError,
} from "politely";
import { countText } from "../../words.js";
import { type FieldError, ProblemError } from "./problem.js";

/** When to come back to a service that stops, in milliseconds. */
export const STOPPING_RETRY_MS = 5_000;
const FULL_RETRY_MS = 1_000;
const STORE_RETRY_MS = 5_000;
/** What an answer says of wrong fields has a bound, however many were sent. */
const FIELDS_MOST = 20;
const NAME_MOST = 200;

/**
 * The problem that an error is answered with. What the caller sent wrong, what a limit refuses and what the store does is said as it is; anything
 * else is a mistake of ours, and answered with 500 and no detail.
 */
export function asProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  if (error instanceof PolitelyError) return ofLimiter(error);
  if (error instanceof TypeError || error instanceof RangeError) {
    const said = FIELDS.find(([begins]) => error.message.startsWith(begins));
    if (said !== undefined) return fieldsProblem([{ field: said[1], message: afterName(error.message, said[0]) }]);
  }
  return ofFramework(error) ?? new ProblemError(500, "The service made a mistake. Its log says more.");
}

/** What the service says of fields that are wrong: 422 with the first twenty, and how many more there are. */
export function fieldsProblem(all: readonly FieldError[]): ProblemError {
  const errors = all.slice(0, FIELDS_MOST).map(({ field, message }) => ({ field: field.slice(0, NAME_MOST), message }));
  const detail = errors.map(({ field, message }) => `${field}: ${message}`);
  if (all.length > errors.length) detail.push(`and ${countText(all.length - errors.length)} more`);
  return new ProblemError(422, detail.join("; "), { code: "invalid", errors });
}

/** The service stops: 503. */
export function stoppingProblem(): ProblemError {
  const detail = "The service is stopping. Ask again in some seconds, or ask another one.";
  return new ProblemError(503, detail, { code: "stopping", retryAfterMs: STOPPING_RETRY_MS });
}

function ofLimiter(error: PolitelyError): ProblemError {
  const { code, message } = error;
  if (error instanceof DeadlineError) {
    const { waitMs, reason } = error;
    return new ProblemError(429, message, { code, waitMs, reason, retryAfterMs: waitMs });
  }
  if (error instanceof QueueFullError) return new ProblemError(503, message, { code, retryAfterMs: FULL_RETRY_MS });
  if (error instanceof CapacityError) {
    const retryAfterMs = Math.max(FULL_RETRY_MS, Number.isFinite(error.waitMs) ? error.waitMs : 0);
    return new ProblemError(503, message, { code, retryAfterMs });
  }
  if (error instanceof ClosedError) return stoppingProblem();
  if (error instanceof StoreError) return new ProblemError(503, message, { code, retryAfterMs: STORE_RETRY_MS });
  if (error instanceof PolicyError) {
    return fieldsProblem(error.problems.map(({ path, message: said }) => ({ field: path, message: said })));
  }
  return new ProblemError(500, message, { code });
}

/** The beginnings of what the limiter says about a target or an option, and the field of the request that they are about. */
const FIELDS: readonly (readonly [begins: string, field: string])[] = [
  ["target.intent", "intent"],
  ["target.scopes", "scopes"],
  ["target", "domain"],
  ["groupBy", "domain"],
  ["priority", "priority"],
  ["maxWait", "maxWaitMs"],
  ["cost", "cost"],
  ["A cost of ", "cost"],
  ["pause(", "domain"],
  ["outcome.status", "status"],
  ["outcome", "outcome"],
  ["duration", "durationMs"],
];

/** What is said of a field, without its name in the library. */
function afterName(message: string, name: string): string {
  const rest = message.slice(name.length);
  return /^[a-z]/.test(name) && rest.startsWith(" ") ? rest.slice(1) : message;
}

function ofFramework(error: unknown): ProblemError | undefined {
  const { validation, validationContext, statusCode, code, errors } = Object(error) as Thrown;
  if (validation !== undefined) return fieldsProblem(fieldErrors(validation, validationContext));
  switch (code ?? "") {
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new ProblemError(415, "The body must be JSON: send content-type application/json.");
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new ProblemError(413, "The body has more than 65,536 bytes.", { isLast: true });
    case "FST_ERR_CTP_INVALID_JSON_BODY":
      return bodyProblem("is not JSON");
    case "FST_ERR_CTP_EMPTY_JSON_BODY":
      return bodyProblem("is empty; it must be a JSON object");
    case "FST_ERR_BAD_URL":
      return pathProblem(error);
    case "FST_ERR_MAX_PARAM_LENGTH":
      return new ProblemError(414, "A part of the path is longer than 4,096 characters.");
  }
  if (statusCode === undefined || statusCode < 400 || statusCode === 500 || statusCode > 599) return undefined;
  const message = error instanceof Error ? error.message : "The request cannot be understood.";
  return new ProblemError(statusCode, message, { errors, isLast: statusCode === 400 });
}

function bodyProblem(message: string): ProblemError {
  return new ProblemError(400, `The body ${message}.`, { code: "invalid", errors: [{ field: "body", message }] });
}

function pathProblem(error: unknown): ProblemError {
  const isHalf = error instanceof Error && /%(?![\da-f]{2})/i.test(error.message);
  const why = isHalf ? "a % must be followed by two hexadecimal digits" : "what its %XX stand for is not UTF-8";
  return new ProblemError(400, `The path cannot be decoded: ${why}.`);
}

/** What is wrong with each field, once for each: of a field that may be one of several things, all that it could be. */
function fieldErrors(
  validation: readonly FastifySchemaValidationError[],
  context: string | undefined,
): readonly FieldError[] {
  const messages = new Map<string, string[]>();
  for (const one of validation) {
    const { field, message } = fieldError(one, context);
    const before = messages.get(field) ?? [];
    // It only sums up what the others say.
    if (one.keyword === "anyOf" && before.length > 0) continue;
    messages.set(field, before.includes(message) ? before : [...before, message]);
  }
  return Array.from(messages, ([field, said]) => ({ field, message: said.join(" or ") }));
}

/** What routes and the framework throw: an error with a status, and the fields that are wrong if it is about fields. */
type Thrown = Partial<FastifyError> & { readonly errors?: readonly FieldError[] };

function fieldError(error: FastifySchemaValidationError, context: string | undefined): FieldError {
  const parts = error.instancePath.split("/").slice(1);
  const { missingProperty, additionalProperty, allowedValues } = error.params;
  const name = typeof missingProperty === "string" ? missingProperty : additionalProperty;
  if (typeof name === "string") parts.push(name);
  const field = parts.join(".") || (context ?? "body");
  if (missingProperty !== undefined) return { field, message: "is missing" };
  if (error.keyword === "minLength") return { field, message: "must not be empty" };
  if (additionalProperty !== undefined) return { field, message: "is not a field of this request" };
  const values = Array.isArray(allowedValues) ? `: ${allowedValues.join(", ")}` : "";
  return { field, message: `${error.message ?? "is wrong"}${values}` };
}
