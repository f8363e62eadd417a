import type { TraceEntry, TraceInstant } from "../../../src/testing/index.js";
import { type Run, startedCalls, startUsOf } from "../../laws/play.js";

/** What a limiter did in a played script, as a trace. */
export function entriesOf(run: Run): TraceEntry[] {
  return startedCalls(run).map((call) => {
    const { ending, releasedUs, ask } = call;
    const retryAfterMs = ending !== undefined && "retryAfterMs" in ending ? ending.retryAfterMs : undefined;
    return {
      host: ask.host,
      ...(ask.scopes === undefined ? {} : { scopes: ask.scopes }),
      startedAtMs: startUsOf(call) / 1000,
      ...(releasedUs === undefined ? {} : { endedAtMs: releasedUs / 1000 }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      cost: ask.cost,
      unused: ending?.kind === "unused",
    };
  });
}

/** The same entries as a log with coarser stamps would tell them: each instant somewhere in its whole `gridMs`. */
export function rounded(trace: readonly TraceEntry[], gridMs: number): TraceEntry[] {
  const round = (at: TraceInstant): TraceInstant => {
    const fromMs = Math.floor(Number(at) / gridMs) * gridMs;
    return [fromMs, fromMs + gridMs];
  };
  return trace.map((entry) => ({
    ...entry,
    startedAtMs: round(entry.startedAtMs),
    ...(entry.endedAtMs === undefined ? {} : { endedAtMs: round(entry.endedAtMs) }),
  }));
}
