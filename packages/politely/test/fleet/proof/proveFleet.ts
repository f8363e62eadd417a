import type { Ground } from "./ground.js";
import { memoryProof } from "./memoryProof.js";
import { outageProof } from "./outageProof.js";
import type { ServedPlace } from "./places.js";
import { placesProof } from "./placesProof.js";
import { stormProof } from "./stormProof.js";
import { toldProof } from "./toldProof.js";
import { wayProof } from "./wayProof.js";

/** Proves with real processes that the users of a store keep their limits together. */
export function proveFleet(name: string, ground: () => Ground, options: { readonly isGentle?: boolean } = {}): void {
  stormProof(ground, options);
  placesProof(ground);
  memoryProof(ground);
  toldProof(name, ground);
}

/** Proves with real processes what holds when a server, or the way to it, fails. */
export function proveFaults(name: string, ground: () => Ground & { readonly place: ServedPlace<unknown> }): void {
  wayProof(ground);
  outageProof(name, ground);
}
