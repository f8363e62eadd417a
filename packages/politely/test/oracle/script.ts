/** What one request asks for. */
export interface Ask {
  readonly host: string;
  readonly scopes?: readonly string[];
  readonly cost: number;
  readonly priority?: number;
  readonly maxWaitUs?: number;
}

/** How a request ends, in the words of the script. */
export type Ending =
  | { readonly kind: "neutral" }
  | { readonly kind: "unused" }
  | { readonly kind: "success" }
  | { readonly kind: "rate_limited" | "server_error" | "timeout"; readonly retryAfterMs?: number };

/** One thing that is done. `pick` counts from the oldest and wraps around; with nobody to pick, nothing happens. */
export type Step =
  | { readonly kind: "acquire"; readonly ask: Ask }
  | { readonly kind: "try"; readonly ask: Ask }
  | { readonly kind: "look"; readonly host: string }
  | { readonly kind: "cancel"; readonly pick: number }
  | { readonly kind: "release"; readonly pick: number; readonly ending: Ending }
  | { readonly kind: "releaseAll" }
  | { readonly kind: "record"; readonly host: string; readonly ending: Ending }
  | { readonly kind: "cancelWaiting"; readonly host: string }
  | { readonly kind: "stall"; readonly us: number }
  | { readonly kind: "wall"; readonly us: number }
  /** Hands the limiter the policy of this number, of those the player was given. */
  | { readonly kind: "configure"; readonly policy: number };

/** Steps in order, each so long after the one before. What is due at the same instant comes before the step. */
export type Script = readonly { readonly afterUs: number; readonly step: Step }[];

/** The pick-th of a list, wrapping around; below 0 from the end, -1 being the last. */
export function pickFrom<T>(list: readonly T[], pick: number): T | undefined {
  return list.length === 0 ? undefined : list[((pick % list.length) + list.length) % list.length];
}

/** The script, followed by rounds in which time passes and everything in flight is released, so that queues drain. */
export function drained(script: Script, rounds: number, everyUs: number): Script {
  const round = { afterUs: everyUs, step: { kind: "releaseAll" } } as const;
  return [...script, ...Array.from({ length: rounds }, () => round)];
}
