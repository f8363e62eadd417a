import type { Answer } from "../core/answer.js";
import { headroomAfter } from "../core/headroom.js";
import type { Ledger } from "./ledger.js";
import type { HeldPermit } from "./permit.js";

/** One answer at one key. */
export interface AnswerAt {
  readonly slot: number;
  readonly key: string;
  readonly startedUs: number;
  readonly nowUs: number;
  readonly permit: HeldPermit | undefined;
  /** Units started at this key after that request. */
  readonly laterUnits: number;
}

/** Slows keys down by what their answers say is left of a budget. Cooldowns are the store's. */
export class Answers {
  constructor(
    readonly ledger: Ledger,
    /** A hold was lengthened. */
    readonly onHold: (slot: number) => void,
  ) {}

  /** Slows the key down so that what is left of the site's budget lasts until it is full again. */
  hear({ budget }: Answer, at: AnswerAt): void {
    if (budget === undefined) return;
    const { slowdowns } = this.ledger;
    const before = slowdowns.get(at.slot, "headers");
    const headroom = headroomAfter(before, budget, at, at.laterUnits);
    if (headroom === before) return;
    slowdowns.set(at.slot, "headers", headroom);
    if (headroom.holdUntilUs > at.nowUs) this.onHold(at.slot);
  }
}
