import type { Cost, Tell } from "../core/key.js";
import type { LimitKind } from "../observe/types.js";
import type { HostRule, ResolvedTarget } from "../policy/types.js";

// Read this file after core/key.ts. It says what the queue knows of a request, and what it is told by the arbiter that it asks (localArbiter.ts).

/** The keys of a request. */
export interface KeysOf {
  /** The rows of its keys: the host first, then intent, scopes and `global` as far as it has them. */
  readonly slots: readonly number[];
  /** `"host"`, `"intent"`, a scope's name or `"global"` for each of `slots`. */
  readonly scopeNames: readonly string[];
  /** The names of the rows, for each of `slots`. */
  readonly rowNames: readonly string[];
}

/** What a request needs, all at once. Requests with the same name stand in one lane. */
export interface Need extends KeysOf {
  readonly name: string;
  /** The key of the host. */
  readonly key: string;
  readonly host: HostRule;
  readonly target: ResolvedTarget;
}

/** The scope names of a request that needs its host alone. */
export const HOST_ONLY: readonly string[] = ["host"];

/** One cost for every key of a request, or one for each. */
export type Costs = Cost | readonly Cost[];

/** The cost at key number `index`. */
export function costAt(costs: Costs, index: number): Cost {
  return "rate" in costs ? costs : costs[index];
}

/** What a key of a request is called in a sentence. */
export function keyName({ key, target, scopeNames }: Need, index: number): string {
  const scope = scopeNames[index];
  return scope === "host" ? key : scope === "intent" ? `${key} (${target.intent})` : scope;
}

/** What keeps a request from starting now: the one of its keys that lets it start last. */
export interface Stop {
  /** The number of that key among those of the request. */
  index: number;
  /** When to look again; Infinity: only an answer or a person can tell. */
  atUs: number;
  /** How much later costs nothing, since a bucket saves up meanwhile. */
  slackUs: number;
  /** The limit that says so. */
  limit: LimitKind | undefined;
}

/** Is told everything that stands in the way of a request, each with the number of its key. */
export type TellAt = (index: number, ...told: Parameters<Tell>) => void;
