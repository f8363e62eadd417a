import type { LimitKind } from "../observe/types.js";
import type { Ledger } from "./ledger.js";

/** One limit of one key that does not allow a start now. */
export interface SlotCause {
  readonly limit: LimitKind;
  /** The earliest instant at which this limit could allow it. Where an answer is waited for it may be now. */
  readonly atUs: number;
  /** Which of the rule's windows, when it is one. */
  readonly windowIndex: number;
}

/** What of this process stands in the way of a start at one key, with the earliest it could be out of it. */
export function slotCauses(ledger: Ledger, slot: number, nowUs: number): SlotCause[] {
  const causes: SlotCause[] = [];
  const pauseUs = ledger.pauses.get(slot) ?? nowUs;
  if (pauseUs > nowUs) causes.push({ limit: "pause", atUs: pauseUs, windowIndex: 0 });
  if (ledger.profileOf(slot).isOff) return causes;
  for (const { source, atUs } of ledger.slowdowns.causes(slot, ledger.lastUs(slot), nowUs)) {
    causes.push({ limit: source, atUs, windowIndex: 0 });
  }
  return causes;
}
