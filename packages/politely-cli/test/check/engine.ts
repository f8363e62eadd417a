import { type PolicyInput, politely } from "politely";
import { VirtualClock } from "politely/testing";

/** How a target is treated under a policy, seen from outside. */
export interface Treatment {
  /** When nine requests that are asked for at once and answered at once start, in milliseconds. */
  readonly startsMs: readonly number[];
  /** How many of nine may start at once when none is answered. */
  readonly atOnce: number;
}

const requestCount = 9;

/** Sends requests to a target on virtual time. */
export async function treatmentOf(policy: PolicyInput, target: string, intent?: string): Promise<Treatment> {
  const asked = {
    ...(target.includes("://") ? { url: target } : { host: target }),
    ...(intent === undefined ? {} : { intent }),
  };
  const clock = new VirtualClock();
  const limiter = politely(policy, { clock });
  const begunMs = clock.now();
  const runs = Array.from({ length: requestCount }, () =>
    limiter.run(asked, ({ startedAtMs }) => startedAtMs - begunMs),
  );
  await clock.runToEnd();
  const startsMs = await Promise.all(runs);

  const still = politely(policy, { clock: new VirtualClock() });
  const permits = Array.from({ length: requestCount }, () => still.tryAcquire(asked));
  return { startsMs, atOnce: permits.filter((permit) => permit !== undefined).length };
}
