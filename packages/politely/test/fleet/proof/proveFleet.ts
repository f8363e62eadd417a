import { describe } from "vitest";
import { groundOf } from "./ground.js";
import { memoryProof } from "./memoryProof.js";
import type { Place } from "./places.js";
import { placesProof } from "./placesProof.js";
import { policiesProof } from "./policiesProof.js";
import { stormProof } from "./stormProof.js";
import { toldProof } from "./toldProof.js";

/** Proves with real processes that a store's users keep their limits together. The proofs run side by side: most of their time is waiting. */
export function proveFleet(
  name: string,
  open: () => Promise<Place>,
  options: { readonly isGentle?: boolean } = {},
): void {
  describe.concurrent(`processes that share ${name}`, () => {
    const ground = groundOf(open);
    stormProof(ground, options);
    placesProof(ground);
    memoryProof(ground);
    policiesProof(ground);
    toldProof(name, ground);
  });
}
