import { type Headroom, headroomAfter } from "../core/headroom.js";
import type { Answer } from "../engine/outcome.js";
import type { Ledger } from "./ledger.js";
import type { HeldPermit } from "./permit.js";
import type { Slowdown } from "./slowdowns.js";

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
  /** What is known of budgets, by row. It goes when the row's slowdown goes. */
  readonly #headrooms = new WeakMap<Slowdown, Headroom>();

  constructor(
    readonly ledger: Ledger,
    /** A hold was lengthened. */
    readonly onHold: (slot: number) => void,
  ) {}

  /** Slows the key down so that what is left of the site's budget lasts until it is full again. */
  hear({ budget: said }: Answer, at: AnswerAt): void {
    if (said === undefined) return;
    const { slowdowns } = this.ledger;
    const known = slowdowns.get(at.slot, "headers");
    const before = known === undefined ? undefined : this.#headrooms.get(known);
    const headroom = headroomAfter(before, said, at);
    if (headroom === before) return;
    const { gapUs, holdUntilUs, untilUs } = headroom;
    const slowdown = { gapUs, holdUntilUs, untilUs, because: said.because };
    this.#headrooms.set(slowdown, headroom);
    slowdowns.set(at.slot, "headers", slowdown);
    if (holdUntilUs > at.nowUs) this.onHold(at.slot);
  }
}
