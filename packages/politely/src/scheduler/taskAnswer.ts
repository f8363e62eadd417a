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
  const { status, headers, response } = value as { status?: unknown; headers?: unknown; response?: unknown };
  if (typeof status !== "number" || !Number.isInteger(status) || status < 100 || status > 999) return undefined;
  const usable = headersIn(headers) ?? headersIn((response as { headers?: unknown } | null | undefined)?.headers);
  return usable === undefined ? { status } : { status, headers: usable };
}

function headersIn(value: unknown): HeadersLike | undefined {
  return typeof value === "object" && value !== null ? (value as HeadersLike) : undefined;
}
