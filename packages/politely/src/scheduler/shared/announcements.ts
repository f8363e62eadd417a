import type { TellWhy } from "../counsel.js";
import type { Lane, Waiter } from "../lane.js";
import type { Desk } from "./desk.js";

/** Lanes with somebody who has not been told why they wait, at most; with more, the others are not told. */
const LANES_MOST = 10_000;

interface Untold {
  readonly waiter: Waiter;
  readonly tell: TellWhy;
}

/** Those who wait and do not know yet what for: the store has been asked and has not answered. */
export class Announcements {
  readonly #lanes = new Map<string, Untold[]>();

  constructor(readonly find: (name: string) => { readonly desk: Desk | undefined; readonly lane: Lane | undefined }) {}

  /** Tells once it is known. */
  add(name: string, waiter: Waiter, tell: TellWhy): void {
    this.#keep(name, { waiter, tell });
    // With starts at hand nothing is asked that could be answered.
    if ((this.find(name).desk?.left ?? 0) > 0) queueMicrotask(() => this.answered(name));
  }

  /** The store has answered: who is still in the lane hears why. */
  answered(name: string): void {
    const untold = this.#lanes.get(name);
    if (untold === undefined) return;
    this.#lanes.delete(name);
    const { desk, lane } = this.find(name);
    if (desk === undefined || lane === undefined) return;
    const granted = grantedAhead(desk, lane);
    for (const { waiter, tell } of untold) {
      if (waiter.lane !== lane) continue;
      const forUs = granted.get(waiter);
      if (forUs !== undefined || desk.stop !== undefined) tell(forUs);
      else this.#keep(name, { waiter, tell });
    }
  }

  #keep(name: string, untold: Untold): void {
    const known = this.#lanes.get(name);
    if (known !== undefined) known.push(untold);
    else if (this.#lanes.size < LANES_MOST) this.#lanes.set(name, [untold]);
  }

  /** Nobody waits in the lane any more. */
  forget(name: string): void {
    this.#lanes.delete(name);
  }
}

/** Who is to have the starts at hand, and when. */
function grantedAhead({ pocket, left }: Desk, lane: Lane): Map<Waiter, number> {
  const granted = new Map<Waiter, number>();
  if (left === 0) return granted;
  const instants = pocket.flatMap((run) =>
    run.starts.slice(run.starts.length - run.left).map(({ startedUs }) => startedUs + run.offsetUs),
  );
  const rankOf = ({ askedUs, level }: Waiter): number => askedUs - (level?.priority ?? 0) * lane.ageingUs;
  const order = lane.everybody().sort((a, b) => rankOf(a) - rankOf(b) || a.sequence - b.sequence);
  instants.forEach((atUs, index) => {
    if (index < order.length) granted.set(order[index], atUs);
  });
  return granted;
}
