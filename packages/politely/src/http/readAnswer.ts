import type { HeadersLike } from "../types.js";
import { readRetryAfterUs } from "./readRetryHeaders.js";

/** What the headers of an answer ask of the client. */
export interface AnswerHeaders {
  /** How long to stay away, in whole microseconds; 0 when nothing is said. */
  readonly retryAfterUs: number;
  /** A 403 says that nothing of the budget remains. Looked at for that status only. */
  readonly isExhausted: boolean;
}

const remainingNames = ["ratelimit-remaining", "x-ratelimit-remaining", "x-rate-limit-remaining"];

/** Reads what an answer's headers ask for. Never throws; headers that do count as absent. */
export function readAnswer(headers: HeadersLike, wallMs: number, status: number): AnswerHeaders {
  return { retryAfterUs: readRetryAfterUs(headers, wallMs), isExhausted: status === 403 && saysNoneRemain(headers) };
}

function saysNoneRemain(headers: HeadersLike): boolean {
  try {
    return remainingNames.some((name) => /^\s*0\s*$/.test(String(fieldOf(headers, name))));
  } catch {
    return false;
  }
}

function fieldOf(headers: HeadersLike, name: string): unknown {
  if ("get" in headers && typeof headers.get === "function") return headers.get(name);
  const key = Object.keys(headers).find((each) => each.toLowerCase() === name);
  return key === undefined ? undefined : (headers as Readonly<Record<string, unknown>>)[key];
}
