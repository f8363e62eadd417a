import { ONE } from "../../src/scheduler/cost.js";
import { Lane, Terms, Waiter } from "../../src/scheduler/lane.js";

/** A lane of its own, for a host of that name. */
export function laneOf(name: string, { ageingUs = 10_000_000 } = {}): Lane {
  const spec = { name, key: name, intent: undefined, slots: [0], scopeNames: ["host"] };
  return new Lane(spec, ageingUs);
}

/** Somebody who asked then, and waits in no lane yet. */
export function waiterAt(askedUs: number, sequence: number, terms?: Terms): Waiter {
  const target = { key: "a.example", intent: undefined, scopes: [] };
  const waiter = new Waiter(
    askedUs,
    sequence,
    ONE,
    target,
    terms,
    () => {},
    () => {},
  );
  if (terms !== undefined) terms.waiter = waiter;
  return waiter;
}

/** Terms of somebody who waits in `lane` until that deadline. */
export function waitingTerms(lane: Lane, deadlineUs: number): Terms {
  const terms = new Terms(deadlineUs, undefined, true);
  lane.add(waiterAt(0, 0, terms), 0);
  return terms;
}

/** Takes somebody out of their lane, as a start or a cancel does. */
export function stopWaiting(terms: Terms): void {
  const { waiter } = terms;
  if (waiter === undefined) return;
  waiter.lane?.remove(waiter);
}
