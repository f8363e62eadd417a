import type { Ahead, Cost, Tell } from "../core/key.js";
import type { LimitKind } from "../observe/types.js";
import type { CompiledPolicy, HostRule, ResolvedTarget } from "../policy/types.js";
import type { HeldPermit, PermitOwner } from "./permit.js";

// Read this file after core/key.ts. It says what the queue knows of a request, and what it asks an arbiter.

/**
 * Says who may start, what a start takes, and what becomes of it when its permit comes back. The queue asks nobody else.
 *
 * All keys of a request are taken in one step or none is, and a refusal changes nothing. In one process `LocalArbiter` decides over the rows and answers at once.
 * With a store `FleetArbiter` answers by what the store has granted; what only that has to say is optional here.
 */
export interface Arbiter extends PermitOwner {
  /** What stops a request that comes after those `ahead`; undefined: nothing does. The answer is valid until the next question. */
  look(need: Need, costs: Costs, nowUs: number, ahead: Ahead, tell?: TellAt): Readonly<Stop> | undefined;
  /** Takes all keys of a request that nothing stops. */
  take(need: Need, costs: Costs, askedUs: number, nowUs: number): HeldPermit;
  /** Lanes wait for their own turns and for no other lane of this process. */
  readonly keepsLanesApart?: boolean;
  /** A store says how long a cooldown is, so that no event comes from the rows of this process. */
  readonly storeTellsHolds?: boolean;
  /** Throws what a request is refused with before it waits, if it is. */
  assertOpen?(need: Need): void;
  /** Nobody knows yet whether those who wait in a lane have to. */
  isUndecided?(need: Need): boolean;
  /** Asks once for somebody who does not wait. Rejects with `DeadlineError`. */
  enterOnce?(need: Need, costs: Costs, signal: AbortSignal | undefined): Promise<HeldPermit>;
  /** What of a policy is in force for this process. */
  partOf?(policy: CompiledPolicy): CompiledPolicy;
  /** Somebody does not wait in a lane any more; so many still do. */
  left?(need: Need, waiting: number): void;
}

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
