import type { HeadersLike, Outcome } from "../types.js";

/** What a task's return value says about the request: its status if it has one, else success. */
export function answerOfValue(value: unknown): Outcome {
  return answerIn(value) ?? "success";
}

/** What a task's error says about the request: its status if it carries one, else nothing. */
export function answerOfError(error: unknown): Outcome | undefined {
  return answerIn(error);
}

function answerIn(value: unknown): Outcome | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  try {
    return statusIn(value);
  } catch {
    // A getter that throws says nothing about the request.
    return undefined;
  }
}

function statusIn(value: object): Outcome | undefined {
  const { status, statusCode, headers, response } = value as Fields;
  const inner: Fields = typeof response === "object" && response !== null ? response : {};
  const code = [status, statusCode, inner.status, inner.statusCode].find((each) => typeof each === "number");
  if (typeof code !== "number" || !Number.isInteger(code) || code < 100 || code > 999) return undefined;
  const usable = headersIn(headers) ?? headersIn(inner.headers);
  return usable === undefined ? { status: code } : { status: code, headers: usable };
}

/** Where HTTP clients keep the answer: on the value or error itself, or on its `response`. */
interface Fields {
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly headers?: unknown;
  readonly response?: unknown;
}

function headersIn(value: unknown): HeadersLike | undefined {
  return typeof value === "object" && value !== null ? (value as HeadersLike) : undefined;
}
