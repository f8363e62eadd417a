import type { LookAtKey } from "../../core/shared/operation.js";
import type { Cause, Stats, WindowStats } from "../../observe/types.js";
import type { Demand } from "../demand.js";
import type { Engine } from "../engine.js";
import { describeCause, keyName } from "../forecast.js";

/** Everything that stands in the way in the store, as causes people read. */
export function causesSeen(engine: Engine, demand: Demand, keys: readonly LookAtKey[], nowUs: number): Cause[] {
  return keys.flatMap(({ stops }, index) =>
    stops.map(({ kind, readyUs, because }) =>
      describeCause(
        { limit: kind, atUs: readyUs, windowIndex: 0 },
        {
          scope: demand.scopeNames[index],
          key: keyName(demand, index),
          rule: engine.ledger.profileOf(demand.slots[index]).rule,
          because: because === "" ? undefined : because,
          nowUs,
        },
      ),
    ),
  );
}

/** Statistics with what only the store knows: bucket, windows and cooldown, and for a fleet the counts of all processes. */
export function statsSeen(
  engine: Engine,
  own: Stats,
  { demand, keys, nowUs }: { readonly demand: Demand; readonly keys: readonly LookAtKey[]; readonly nowUs: number },
  isFleet: boolean,
): Stats {
  const [host] = keys;
  const { rule } = engine.policy.hostRule(demand.key);
  const windows = rule.windows.map(({ count, perUs }, index): WindowStats => {
    const calls = host.windows[2 * index];
    const nextFreeMs = Math.max(0, host.windows[2 * index + 1] - nowUs) / 1000;
    return { calls, remaining: Math.max(0, count - calls), periodMs: perUs / 1000, nextFreeMs };
  });
  const seen: Partial<Record<keyof Stats, unknown>> = {
    cooldownMs: host.cooldownUs / 1000,
    windows,
    ...(windows.length === 0 ? {} : { window: windows[0] }),
    ...(rule.rateCount === 0 ? {} : { tokens: rule.burst - host.owed / rule.ratePerUs }),
  };
  const fleet: Partial<Record<keyof Stats, unknown>> = isFleet
    ? {
        totalRequests: host.starts,
        granted: host.starts,
        throttledRequests: host.throttled,
        inFlight: host.held,
        waiting: host.waiting,
        ...(host.lastUs < 0
          ? {}
          : { lastRequestAt: new Date(engine.clock.wall() - Math.max(0, nowUs - host.lastUs) / 1000) }),
      }
    : {};
  return Object.assign(Object.create(Object.getPrototypeOf(own) as object) as Stats, own, seen, fleet);
}
