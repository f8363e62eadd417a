import { statusMeaning } from "../core/answer.js";
import type { HeadersLike, Outcome, OutcomeKind } from "../types.js";
import { type Answer, NEUTRAL } from "./answers.js";

/** Reads from headers how long an answer asks to stay away, in whole microseconds, 0 when it does not say; and whether it says that nothing remains. */
export type HeaderReader = (
  headers: HeadersLike,
  wallMs: number,
  status: number,
) => { readonly retryAfterUs: number; readonly isExhausted: boolean };

const KINDS: readonly OutcomeKind[] = ["success", "rate_limited", "server_error", "timeout", "unused"];

const NOTHING_SAID = { retryAfterUs: 0, isExhausted: false };

const WORDS: Readonly<Record<OutcomeKind, string>> = {
  success: "success",
  rate_limited: "too many requests",
  server_error: "server error",
  timeout: "no answer in time",
  unused: "never sent",
};

/** Understands an outcome in any of its forms. Throws `TypeError` when it is none. */
export function readOutcome(outcome: Outcome | undefined, readHeaders: HeaderReader, wallMs: () => number): Answer {
  if (outcome === undefined) return NEUTRAL;
  if (typeof outcome === "string") return { ...NEUTRAL, kind: knownKind(outcome), because: WORDS[outcome] };
  if (typeof outcome !== "object" || outcome === null) throw new TypeError(unknownOutcome(outcome));
  if ("kind" in outcome) {
    const kind = knownKind(outcome.kind);
    const retryAfterUs = usableUs(outcome.retryAfterMs);
    return { kind, retryAfterUs, because: withWait(WORDS[kind], retryAfterUs), scope: outcome.scope };
  }
  const { status, headers } = outcome;
  if (!Number.isInteger(status)) throw new TypeError(`outcome.status must be a whole number; got ${String(status)}.`);
  const { retryAfterUs, isExhausted } = headers === undefined ? NOTHING_SAID : readHeaders(headers, wallMs(), status);
  return {
    kind: statusMeaning(status, retryAfterUs > 0 || isExhausted),
    retryAfterUs,
    because: withWait(String(status), retryAfterUs),
    scope: undefined,
  };
}

function knownKind(kind: OutcomeKind): OutcomeKind {
  if (!KINDS.includes(kind)) throw new TypeError(unknownOutcome(kind));
  return kind;
}

function unknownOutcome(outcome: unknown): string {
  return `outcome must be one of ${KINDS.join(", ")}, or an object with kind or status; got ${String(outcome)}.`;
}

/** Zero, negative or nonsense counts as absent. Rounded up, so that nothing starts early. */
function usableUs(ms: number | undefined): number {
  return typeof ms === "number" && ms > 0 && ms < Number.MAX_SAFE_INTEGER / 1000 ? Math.ceil(ms * 1000) : 0;
}

function withWait(words: string, retryAfterUs: number): string {
  return retryAfterUs > 0 ? `${words}, Retry-After ${retryAfterUs / 1_000_000} s` : words;
}
