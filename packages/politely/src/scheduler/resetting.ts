import type { ResetWhat, Target } from "../types.js";
import type { Demand } from "./demand.js";
import type { Engine } from "./engine.js";
import { ROW } from "./slab.js";

const { LAST_US } = ROW;

/** Forgets the state of one target or of everything. Throws `RangeError` or `TypeError` for what cannot be meant. Run the queue afterwards. */
export function resetTarget(engine: Engine, target: Target | undefined, what: ResetWhat): void {
  if (what !== "pacing" && what !== "stats" && what !== "all") {
    throw new RangeError(`reset takes "pacing", "stats" or "all"; got ${String(what)}.`);
  }
  if (target === "pacing" || target === "stats" || target === "all") {
    throw new TypeError(`reset("${target}") names a host. To reset every host, write reset(undefined, "${target}").`);
  }
  const nowUs = engine.nowUs();
  const { hosts, scopes } = engine.keys;
  const slots = target === undefined ? [...hosts.values(), ...scopes.values()] : ownSlots(engine.demand(target, nowUs));
  for (const slot of slots) resetRow(engine, slot, what, nowUs);
  if (what !== "pacing") resetFolded(engine, target === undefined, nowUs);
}

/** The rows that belong to a target alone: all but what is over everything. */
function ownSlots({ slots, scopeNames }: Demand): number[] {
  return slots.filter((_, index) => scopeNames[index] !== "global");
}

function resetRow({ ledger, books, queue }: Engine, slot: number, what: ResetWhat, nowUs: number): void {
  if (what !== "stats") {
    const { words } = ledger.slab.chunkOf(slot);
    const word = ledger.slab.wordOf(slot);
    if (what === "pacing") books.keepLast(slot, words[word + LAST_US]);
    words[word + LAST_US] = Number.NEGATIVE_INFINITY;
    ledger.ties.cut(slot, nowUs, what === "all");
  }
  if (what === "all") {
    ledger.setPause(slot, undefined);
    ledger.slowdowns.forget(slot);
  }
  if (what !== "pacing") books.clear(slot, ledger.inFlight(slot, nowUs), nowUs);
  queue.touch(slot);
}

/** Begins the folded counts anew. Without statistics per host all counts are there, so that permits in flight at any host stay in them. */
function resetFolded({ keys, ledger, books, options }: Engine, isAll: boolean, nowUs: number): void {
  if (options.keepStats > 0) {
    if (isAll) books.clearFolded(0);
    return;
  }
  const shared = keys.overflow.map(([, slot]) => slot);
  const open = [...keys.hosts.values(), ...shared].reduce((sum, slot) => sum + ledger.inFlight(slot, nowUs), 0);
  books.clearFolded(open);
}
