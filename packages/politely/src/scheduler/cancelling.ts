import type { ResolvedTarget } from "../policy/types.js";
import type { Target } from "../types.js";
import type { Engine } from "./engine.js";
import type { Lane, Waiter } from "./lane.js";

/**
 * Cancels those who wait, each with what `reasonOf` says, and returns how many.
 *
 * Of a target these are all who asked for its host; where it names an intent or scopes, those who named the same, whatever the policy makes of it.
 */
export function cancelWaiters(engine: Engine, target: Target | undefined, reasonOf: (lane: Lane) => unknown): number {
  const wanted = target === undefined ? undefined : engine.policy.resolve(target);
  const lanes = wanted === undefined ? [...engine.queue.lanes.values()] : lanesOf(engine, wanted.key);
  let cancelled = 0;
  for (const lane of lanes) {
    for (const waiter of lane.everybody()) {
      if (waiter.lane === undefined || (wanted !== undefined && !isMeant(waiter, wanted))) continue;
      engine.departures.cancel(waiter, reasonOf(lane));
      cancelled += 1;
    }
  }
  engine.queue.run();
  return cancelled;
}

/** The lanes in which somebody may wait for the key: its own, and those that hosts beyond `maxKeys` share. */
function lanesOf({ queue, keys }: Engine, key: string): Lane[] {
  const own = keys.hosts.get(key);
  const slots = own === undefined ? keys.overflow.map(([, slot]) => slot) : [own];
  return slots.flatMap((slot) => [...(queue.gateAt(slot)?.lanes ?? [])]);
}

function isMeant({ target }: Waiter, { key, intent, scopes }: ResolvedTarget): boolean {
  if (target.key !== key) return false;
  if (intent === undefined && scopes.length === 0) return true;
  // No list names a scope twice.
  const isSameScopes = target.scopes.length === scopes.length && scopes.every((scope) => target.scopes.includes(scope));
  return target.intent === intent && isSameScopes;
}
