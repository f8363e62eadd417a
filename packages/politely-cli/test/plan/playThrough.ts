import { type PolicyInput, politely } from "politely";
import { VirtualClock } from "politely/testing";

/** What a full play-through assumes. */
export interface PlayOptions {
  readonly latencyMs: number;
  readonly wallMs: number;
}

/**
 * The slow, obvious way to plan: every request asks the limiter at once, on virtual time, and is answered after the latency.
 *
 * Returns the starts of each key in milliseconds, in order.
 */
export async function playThrough(
  counts: ReadonlyMap<string, number>,
  policy: PolicyInput,
  { latencyMs, wallMs }: PlayOptions,
): Promise<Map<string, number[]>> {
  const clock = new VirtualClock({ wallMs });
  const limiter = politely(policy, { clock });
  const starts = new Map([...counts.keys()].map((key) => [key, [] as number[]]));
  const rounds = Math.max(0, ...counts.values());
  // Hosts ask in turn, as a list that names them in turn would have it.
  for (let round = 0; round < rounds; round++) {
    for (const [key, count] of counts) {
      if (round >= count) continue;
      void limiter.acquire(key).then((permit) => {
        starts.get(key)?.push(permit.startedAtMs);
        clock.setTimer(permit.startedAtMs + latencyMs, () => permit.release("success"));
      });
    }
  }
  await clock.runToEnd();
  return starts;
}
