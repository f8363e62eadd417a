import type { ResetWhat, Target } from "../types.js";
import type { Engine } from "./engine.js";

/** Forgets the state of one target or of everything. Throws `RangeError` or `TypeError` for what cannot be meant. Run the queue afterwards. */
export function resetTarget(engine: Engine, target: Target | undefined, what: ResetWhat): void {
  if (what !== "pacing" && what !== "stats" && what !== "all") {
    throw new RangeError(`reset takes "pacing", "stats" or "all"; got ${String(what)}.`);
  }
  if (target === "pacing" || target === "stats" || target === "all") {
    throw new TypeError(`reset("${target}") names a host. To reset every host, write reset(undefined, "${target}").`);
  }
  const nowUs = engine.nowUs();
  const { keys, books, options, queue } = engine;
  if (target === undefined) {
    keys.forgetAll(what, nowUs);
    engine.refresh();
    engine.waiting.requeue(nowUs);
  } else {
    const { slots, scopeNames } = engine.need(target, nowUs);
    slots.forEach((slot, index) => {
      // What is over everything is not the target's own.
      if (scopeNames[index] === "global") return;
      keys.forgetRow(slot, keys.profileOf(slot).rule, index === 0, what, nowUs);
      queue.touch(slot);
    });
  }
  // Without statistics per host all counts are in the folded ones, and permits in flight at any host stay there.
  if (what !== "pacing" && (target === undefined || options.keepStats === 0)) {
    books.clearFolded(options.keepStats === 0 ? books.flying : 0);
  }
}
