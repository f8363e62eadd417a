import type { Outcome } from "../types.js";
import type { Answer } from "./answers.js";

/** What was last said about a start before its end. */
export interface Reported {
  readonly kind: Answer["kind"];
  readonly scope: string | undefined;
  /** The very thing that has the details. */
  readonly detail: unknown;
}

/** What is to be remembered of an answer, to know it again. */
export function reportedOf({ kind, scope }: Answer, outcome: Outcome | undefined): Reported {
  return { kind, scope, detail: detailOf(outcome) };
}

/** Whether an answer is the one reported before: of the same kind, and with nothing in it that was not in that one. */
export function isReported(before: Reported | undefined, answer: Answer, outcome: Outcome | undefined): boolean {
  if (before === undefined) return false;
  const { kind, scope, detail } = reportedOf(answer, outcome);
  return before.kind === kind && before.scope === scope && (detail === undefined || detail === before.detail);
}

/** What an outcome says beyond its kind. A response that is given twice has the same headers both times, whatever was made of it between. */
function detailOf(outcome: Outcome | undefined): unknown {
  if (typeof outcome !== "object") return undefined;
  return "kind" in outcome ? outcome.retryAfterMs : outcome.headers;
}
