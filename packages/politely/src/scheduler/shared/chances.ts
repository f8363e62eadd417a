import type { TakeReply } from "../../shared/operation.js";
import type { Awaiting } from "./awaiting.js";
import type { Desk } from "./desk.js";

/** So many are called, at most, when something was given back, and when a turn was left, which may be one of several keys. */
const FREED_CALLS = 2;
const LEFT_CALLS = 4;

/** How many may still be called for one event, whatever comes of it. */
interface Budget {
  calls: number;
}

/** A chance for somebody at a key to start sooner than it was told. */
export interface Chance {
  readonly storeKey: string;
  /** The turn that somebody has not taken, on the store's timeline; undefined: something was given back. */
  readonly turnUs: number | undefined;
  /** Who was called so far. */
  readonly called: Set<Desk>;
  readonly budget: Budget;
}

/**
 * Tells lanes of this process that they may come before their turn: something was given back at a key, or another of its lanes has not taken its turn there.
 *
 * Who waits for longest is called first, and when that one cannot start the next: few for one event, so that not all who wait ask for the same.
 */
export class Chances {
  constructor(
    readonly awaiting: Awaiting,
    /** Lets a lane ask at once. */
    readonly call: (desk: Desk, chance: Chance) => void,
  ) {}

  /** Something was given back at these keys. */
  freed(storeKeys: readonly string[]): void {
    for (const storeKey of storeKeys) {
      this.awaiting.freed(storeKey);
      this.#offer({ storeKey, turnUs: undefined, called: new Set(), budget: { calls: FREED_CALLS } });
    }
  }

  /** A lane does not come at the turn it was told; 0: it was not told any. */
  left(desk: Desk, turnUs: number, budget: Budget = { calls: LEFT_CALLS }): void {
    if (turnUs === 0) return;
    for (const storeKey of desk.plan.storeKeys) this.#offer({ storeKey, turnUs, called: new Set([desk]), budget });
  }

  /** A lane was answered, which was told to come at `turnUs` (0: nothing), or was called for a chance. */
  answered(desk: Desk, { starts, stop }: TakeReply, turnUs: number, chance: Chance | undefined): void {
    if (starts.length > 0) {
      if (starts[0].startedUs < turnUs) this.left(desk, turnUs);
      // More may have been given back than it took.
      if (chance !== undefined && chance.turnUs === undefined) this.#offer({ ...chance, budget: { calls: 1 } });
      return;
    }
    if (chance !== undefined) this.#offer(chance);
    if (stop !== undefined && stop.turnUs > turnUs) this.left(desk, turnUs, chance?.budget);
  }

  #offer(chance: Chance): void {
    const { storeKey, turnUs, called, budget } = chance;
    if (budget.calls === 0) return;
    const first =
      turnUs === undefined
        ? this.awaiting.firstFor(storeKey, called)
        : this.awaiting.firstBehind(storeKey, turnUs, called);
    if (first === undefined) return;
    called.add(first);
    budget.calls -= 1;
    this.call(first, chance);
  }
}
