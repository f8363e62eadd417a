import type { Answer } from "../core/answer.js";
import { maxDurationUs } from "../core/rule.js";
import type { HeadersLike, Outcome, OutcomeKind } from "../types.js";
import { type AnswerHeaders, type HeaderReader, nothingSaid } from "./headers/answerHeaders.js";
import { statusMeaning } from "./statusMeaning.js";

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

/** How outcomes are read. */
export interface OutcomeReading {
  readonly readHeaders: HeaderReader;
  readonly wallMs: () => number;
  /** The longest that headers hold anybody, and who is told when they ask for more. Default: what `HeaderReader` allows. */
  readonly mostUs?: () => number;
  readonly onCut?: (field: string, askedUs: number) => void;
}

/** Understands an outcome in any of its forms. Throws `TypeError` when it is none. */
export function readOutcome(outcome: Outcome | undefined, reading: OutcomeReading): Answer {
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
  const said = headers === undefined ? nothingSaid : reading.readHeaders(headers, reading.wallMs, status);
  const { isExhausted, remaining, field } = said;
  const { retryAfterUs, resetUs } = said === nothingSaid ? said : cut(said, reading);
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
    scope: outcome.scope,
    budget,
  };
}

/** What headers ask for, as far as the policy lets them. */
function cut({ retryAfterUs, resetUs, field }: AnswerHeaders, { mostUs, onCut }: OutcomeReading): Times {
  const longestUs = mostUs?.() ?? maxDurationUs;
  const askedUs = Math.max(retryAfterUs, resetUs);
  if (askedUs > longestUs) onCut?.(field, askedUs);
  return { retryAfterUs: Math.min(retryAfterUs, longestUs), resetUs: Math.min(resetUs, longestUs) };
}

type Times = Pick<AnswerHeaders, "retryAfterUs" | "resetUs">;

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

/** Where HTTP clients keep the answer beside the value or error itself: fetch and axios, AWS, the retries of the AI SDK. */
const PLACES = ["response", "$response", "$metadata", "lastError"];
const STATUSES = ["status", "statusCode", "httpStatusCode"];
const HEADERS = ["headers", "responseHeaders"];

type Fields = Readonly<Record<string, unknown>>;

/** What the value that a task returned, or its error, says about the request: its status if it carries one. A getter that throws says nothing. */
export function outcomeIn(value: unknown): Outcome | undefined {
  try {
    const own = fieldsOf(value);
    const places = [own, ...PLACES.map((name) => fieldsOf(own[name]))];
    const status = firstOf(places, STATUSES, "number");
    if (status === undefined) return saidByMethods(own) ?? saidBySlack(own);
    if (!Number.isInteger(status) || Number(status) < 100 || Number(status) > 999) return undefined;
    const headers = firstOf(places, HEADERS, "object");
    return headers === undefined
      ? { status: Number(status) }
      : { status: Number(status), headers: headers as HeadersLike };
  } catch {
    return undefined;
  }
}

/** The responses of Playwright and Puppeteer tell everything by methods. */
function saidByMethods(response: Fields): Outcome | undefined {
  const { status, statusText, headers } = response;
  if (![status, statusText, headers].every((each) => typeof each === "function")) return undefined;
  const read = response as { status(): unknown; headers(): HeadersLike };
  const code = read.status();
  return typeof code === "number" ? { status: code, headers: read.headers() } : undefined;
}

/** Slack's error has the seconds to wait, and no status. */
function saidBySlack({ code, retryAfter }: Fields): Outcome | undefined {
  if (code !== "slack_webapi_rate_limited_error" || typeof retryAfter !== "number") return undefined;
  return { status: 429, headers: { "retry-after": retryAfter } };
}

function firstOf(places: readonly Fields[], names: readonly string[], type: "number" | "object"): unknown {
  const values = places.flatMap((place) => names.map((name) => place[name]));
  return values.find((value) => typeof value === type && value !== null);
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}
