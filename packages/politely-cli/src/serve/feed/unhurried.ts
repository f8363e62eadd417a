import { setImmediate } from "node:timers/promises";

/** Hosts that are looked at in one go; then others have their turn. */
const IN_ONE_GO = 300;

/** Gives all of them, and lets others have their turn now and then. */
export async function* unhurried<T>(all: Iterable<T>): AsyncIterable<T> {
  let given = 0;
  for (const one of all) {
    yield one;
    if (++given % IN_ONE_GO === 0) await setImmediate();
  }
}
