import { ONE } from "./cost.js";
import { Gate, NO_ROW } from "./gate.js";
import { Lane, Waiter } from "./lane.js";

/**
 * One of each that a queue is made of, of no limiter and kept for good: a gate where a lane is parked in which somebody waits.
 *
 * V8 forgets how the objects of a class are laid out once three collections have found none of them, and throws away all code it has compiled for them. Without this,
 * a queue that is empty for a while would be compiled anew for the next crowd: about a quarter of what a hundred thousand waiters cost altogether.
 */
export const STAND_IN = standIn();

function standIn(): Gate {
  // Numbers that are not whole: a layout that has only met whole ones is given up for another at the first that is not.
  const gate = new Gate(NO_ROW);
  gate.slackUs = 0.5;
  const lane = new Lane({ name: "", key: "", intent: undefined, slots: [], scopeNames: [] }, 1);
  const target = { key: "", intent: undefined, scopes: [] };
  lane.add(new Waiter(0.5, 0, ONE, target, undefined, nothing, nothing), 0);
  lane.gate = gate;
  gate.parked.push(lane);
  return gate;
}

function nothing(): void {}
