import type { PolicyInput } from "../../src/policy/types.js";
import { politely } from "../../src/politely.js";
import type { Outcome, Target } from "../../src/types.js";
import { Fleet } from "./fleet.js";

/** A request of a plan: when it comes, for what, for how long it runs, and how it ends. */
export interface Errand {
  readonly atMs: number;
  readonly target: Target;
  readonly holdMs: number;
  readonly outcome?: Outcome;
}

/** When each request of a plan starts, in milliseconds; `"never"`: not within `lengthMs`. */
export type Starts = readonly (number | "never")[];

/** Plays a plan in one process: on a store that answers at once, or without one. */
export async function playErrands(
  where: "here" | "store",
  policy: PolicyInput,
  errands: readonly Errand[],
  { lengthMs = 400_000, roundTripMs = 0 } = {},
): Promise<Starts> {
  const fleet = new Fleet({ roundTripMs });
  const { clock } = fleet;
  const limiter = where === "store" ? fleet.add(policy) : politely(policy, { clock });
  const starts: (number | "never")[] = errands.map(() => "never");
  const one = async ({ target, holdMs, outcome = "success" }: Errand, index: number): Promise<void> => {
    const permit = await limiter.acquire(target);
    starts[index] = permit.startedAtMs;
    await new Promise<void>((resolve) => {
      clock.setTimer(clock.now() + holdMs, resolve);
    });
    // With a store, releasing is a promise.
    const released: unknown = permit.release(outcome);
    await released;
  };
  errands.forEach((errand, index) => {
    clock.setTimer(errand.atMs, () => void one(errand, index));
  });
  await clock.advance(lengthMs);
  return starts;
}
