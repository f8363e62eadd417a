import { ONE } from "./cost.js";
import { Gate, NO_ROW } from "./gate.js";
import { Lane, Waiter } from "./lane.js";

/**
 * One of each that a queue is made of, of no limiter and kept for good: a gate where a lane is parked in which somebody waits.
 *
 * V8 forgets how the objects of a class are laid out once three collections have found none of them, and throws away all code it has compiled for them. Without this,
 * a queue that is empty for a while would be compiled anew for the next crowd: about a quarter of what a hundred thousand waiters cost altogether.
 */
export const STAND_IN = new Gate(NO_ROW);

const asked = { name: "", key: "", intent: undefined, slots: [], scopes: [], scopeNames: [] };
const lane = new Lane(asked, 1);
// Numbers that are not whole: a layout that has only met whole ones is given up for another at the first that is not.
lane.add(new Waiter(0.5, 0, ONE, asked, undefined, nothing, nothing), 0);
STAND_IN.slackUs = 0.5;
STAND_IN.parked.push(lane);

function nothing(): void {}
