import { type AnswerKind, statusMeaning } from "../core/answer.js";
import type { BudgetSaid } from "../core/headroom.js";
import { maxDurationUs } from "../core/maxDuration.js";
import type { HeadersLike, Outcome, OutcomeKind } from "../types.js";

/** An outcome, understood. */
export interface Answer {
  readonly kind: AnswerKind | "unused";
  /** 0 when the site did not say. */
  readonly retryAfterUs: number;
  /** From the start to the answer, as the caller says; undefined when it does not say. */
  readonly latencyUs: number | undefined;
  /** What was answered, for people. */
  readonly because: string;
  /** The scope to hold instead of the host. */
  readonly scope: string | undefined;
  /** What the site says is left of its budget; undefined when it does not say. */
  readonly budget: BudgetSaid | undefined;
}

/** What headers ask for. */
export interface HeadersSay {
  /** How long to stay away, in whole microseconds; 0 when they do not say. */
  readonly retryAfterUs: number;
  /** Nothing of the budget remains. */
  readonly isExhausted: boolean;
  /** Requests left of the budget; -1 when they do not say. */
  readonly remaining: number;
  /** Time until the budget is full again; 0 when they do not say. */
  readonly resetUs: number;
  /** Which header says so, for people. */
  readonly field: string;
}

/** Reads what the headers of an answer ask for. Never throws. */
export type HeaderReader = (headers: HeadersLike, wallMs: () => number, status: number) => HeadersSay;

const NOTHING_SAID: HeadersSay = { retryAfterUs: 0, isExhausted: false, remaining: -1, resetUs: 0, field: "" };

/** Every kind of outcome, and what it is called where nothing more is known. */
const WORDS: Readonly<Record<OutcomeKind, string>> = {
  success: "success",
  rate_limited: "too many requests",
  server_error: "server error",
  timeout: "no answer in time",
  unused: "never sent",
};

/** `release()` without an outcome. */
export const NEUTRAL: Answer = {
  kind: "neutral",
  retryAfterUs: 0,
  latencyUs: undefined,
  because: "no outcome",
  scope: undefined,
  budget: undefined,
};

/** Understands an outcome in any of its forms. Throws `TypeError` when it is none. */
export function readOutcome(outcome: Outcome | undefined, readHeaders: HeaderReader, wallMs: () => number): Answer {
  if (outcome === undefined) return NEUTRAL;
  if (typeof outcome === "string") return { ...NEUTRAL, kind: knownKind(outcome), because: WORDS[outcome] };
  if (typeof outcome !== "object" || outcome === null) return knownKind(outcome);
  const latencyUs = latencyOf(outcome.latencyMs);
  if ("kind" in outcome) {
    const kind = knownKind(outcome.kind);
    const retryAfterUs = usableUs(outcome.retryAfterMs);
    const because = withWait(outcome.because ?? WORDS[kind], retryAfterUs);
    return { kind, retryAfterUs, latencyUs, because, scope: outcome.scope, budget: undefined };
  }
  const { status, headers } = outcome;
  if (!Number.isInteger(status)) throw new TypeError(`outcome.status must be a whole number; got ${String(status)}.`);
  const said = headers === undefined ? NOTHING_SAID : readHeaders(headers, wallMs, status);
  const { retryAfterUs, isExhausted, remaining, resetUs, field } = said;
  const kind = statusMeaning(status, retryAfterUs > 0, isExhausted);
  // An answer that says how long to stay away has said it: the reset of a budget does not come on top.
  const hasBudget = kind !== "rate_limited" && retryAfterUs === 0 && remaining >= 0 && resetUs > 0;
  const left = `${field} ${remaining} left for ${Math.ceil(resetUs / 100_000) / 10} s`;
  const budget = hasBudget ? { remaining, resetUs, because: left } : undefined;
  return {
    kind,
    retryAfterUs,
    latencyUs,
    because: withWait(String(status), retryAfterUs, field),
    scope: undefined,
    budget,
  };
}

function knownKind(kind: unknown): never;
function knownKind(kind: OutcomeKind): OutcomeKind;
function knownKind(kind: unknown): OutcomeKind {
  if (typeof kind === "string" && Object.hasOwn(WORDS, kind)) return kind as OutcomeKind;
  const kinds = Object.keys(WORDS).join(", ");
  throw new TypeError(`outcome must be one of ${kinds}, or an object with kind or status; got ${String(kind)}.`);
}

/** Zero, negative or nonsense counts as absent. Rounded up, so that nothing starts early; at most 100 years. */
function usableUs(ms: number | undefined): number {
  return typeof ms === "number" && ms > 0 ? Math.min(maxDurationUs, Math.ceil(ms * 1000)) : 0;
}

/** Negative or nonsense counts as absent, as it does for a wait. */
function latencyOf(ms: number | undefined): number | undefined {
  return typeof ms === "number" && ms >= 0 && ms < Number.MAX_SAFE_INTEGER / 1000 ? Math.ceil(ms * 1000) : undefined;
}

function withWait(words: string, retryAfterUs: number, field = "retry-after"): string {
  const name = field === "retry-after" ? "Retry-After" : field;
  return retryAfterUs > 0 ? `${words}, ${name} ${retryAfterUs / 1_000_000} s` : words;
}

/** What was last said about a start before its end. */
export interface Reported {
  readonly kind: Answer["kind"];
  readonly scope: string | undefined;
  /** The very thing that has the details: what an outcome says beyond its kind. */
  readonly detail: unknown;
}

/** What is to be remembered of an answer, to know it again. A response that is given twice has the same headers both times, whatever was made of it between. */
export function reportedOf({ kind, scope }: Answer, outcome: Outcome | undefined): Reported {
  const details = typeof outcome === "object" ? outcome : { headers: undefined };
  return { kind, scope, detail: "kind" in details ? details.retryAfterMs : details.headers };
}

/** Whether an answer is the one reported before: of the same kind, and with nothing in it that was not in that one. */
export function isReported(before: Reported | undefined, answer: Answer, outcome: Outcome | undefined): boolean {
  if (before === undefined) return false;
  const { kind, scope, detail } = reportedOf(answer, outcome);
  return before.kind === kind && before.scope === scope && (detail === undefined || detail === before.detail);
}

/** What a task's return value says about the request: its status if it has one, else success. */
export function answerOfValue(value: unknown): Outcome {
  return answerOfError(value) ?? "success";
}

/** What a task's error says about the request: its status if it carries one, else nothing. A getter that throws says nothing. */
export function answerOfError(error: unknown): Outcome | undefined {
  try {
    const own = fieldsOf(error);
    const inner = fieldsOf(own.response);
    const codes = [own.status, own.statusCode, inner.status, inner.statusCode];
    const status = codes.find((each) => typeof each === "number");
    if (!Number.isInteger(status) || status === undefined || status < 100 || status > 999) return undefined;
    const headers = [own.headers, inner.headers].find((each) => typeof each === "object" && each !== null);
    return headers === undefined ? { status } : { status, headers: headers as HeadersLike };
  } catch {
    return undefined;
  }
}

/** Where HTTP clients keep the answer: on the value or error itself, or on its `response`. */
interface Fields {
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly headers?: unknown;
  readonly response?: unknown;
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? value : {};
}
