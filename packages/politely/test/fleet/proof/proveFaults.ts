import { describe } from "vitest";
import { groundOf } from "./ground.js";
import { outageProof } from "./outageProof.js";
import type { ServedPlace } from "./places.js";
import { wayProof } from "./wayProof.js";

/** Proves with real processes what holds when a server, or the way to it, fails. */
export function proveFaults(name: string, open: () => Promise<ServedPlace<unknown>>): void {
  describe.concurrent(`processes whose way to ${name} fails`, () => {
    const ground = groundOf(open);
    wayProof(ground);
    outageProof(name, ground);
  });
}
