import type { Stop } from "../../shared/operation.js";
import type { Outlook } from "../counsel.js";
import type { LaneCost, LaneSpec } from "../lane.js";
import type { Desk } from "./desk.js";
import type { Plan } from "./plan.js";
import type { QuestionParts, Taken } from "./questions.js";
import { isSameCost } from "./sameCost.js";
import { pauseEndUs, readStop, type ToldStop } from "./stopWords.js";

type Parts = Pick<QuestionParts, "engine" | "link" | "standby">;

/** Limits that let a start wait for longer the more it costs. */
const BY_COST: readonly string[] = ["rate", "window", "quota"];

/** Whose outlook it is. */
interface Asker {
  readonly plan: Plan;
  readonly spec: LaneSpec;
  readonly cost: LaneCost;
  readonly desk: Desk | undefined;
}

/**
 * What stops a request by what the store last said to its lane; undefined when nothing is known to.
 *
 * While the store is away, what this process has heard to hold its keys counts as well. Else somebody may have ended it, and the store is asked.
 */
export function outlookOf(parts: Parts, { plan, spec, cost, desk }: Asker, nowUs: number): Outlook | undefined {
  if (desk !== undefined) {
    const told = toldTo(desk, cost, nowUs);
    if (told !== undefined) return inWords(parts, { plan, spec, isByStandby: desk.isByStandby }, told, nowUs);
  }
  const held = parts.link.isAway ? parts.standby.recollection.holdOf(plan, nowUs) : undefined;
  if (held === undefined) return undefined;
  const stop = { ...held.hold, atUs: held.hold.untilUs };
  return inWords(parts, { plan, spec, isByStandby: false }, { stop, index: held.index }, nowUs);
}

/** What a reply says is in the way of somebody who does not wait; undefined when nothing is. */
export function readToldStop(
  parts: Parts,
  { plan, spec }: Pick<Asker, "plan" | "spec">,
  { reply, origin }: Taken,
  nowUs: number,
): Outlook | undefined {
  const { stop, nowUs: saidUs } = reply;
  if (stop === undefined) return undefined;
  const told = hereAt(stop, nowUs + Math.max(0, stop.readyUs - saidUs));
  return inWords(parts, { plan, spec, isByStandby: origin !== "store" }, told, nowUs);
}

interface Told {
  readonly stop: ToldStop;
  readonly index: number;
}

function toldTo({ stop, stopUntilUs, cost: askedFor }: Desk, cost: LaneCost, nowUs: number): Told | undefined {
  if (stop === undefined || stopUntilUs <= nowUs) return undefined;
  // It was said to somebody who wanted more, or less.
  if (BY_COST.includes(stop.kind) && !isSameCost(askedFor, cost)) return undefined;
  return hereAt(stop, stopUntilUs);
}

/** A stop with its instants on this process's clock, where it is over at `untilUs`. */
function hereAt(stop: Stop, untilUs: number): Told {
  const { kind, because, key } = stop;
  const atUs = kind === "pause" ? untilUs + pauseEndUs(stop) - stop.readyUs : untilUs;
  return { stop: { kind, because, atUs }, index: key };
}

function inWords(
  { engine, link }: Parts,
  { plan, spec, isByStandby }: { readonly plan: Plan; readonly spec: LaneSpec; readonly isByStandby: boolean },
  { stop, index }: Told,
  nowUs: number,
): Outlook {
  const words = readStop(stop, {
    rule: plan.keys[index].rule,
    slot: spec.slots[index],
    slowdowns: engine.ledger.slowdowns,
    awayFrom: isByStandby ? link.parts.store.name : undefined,
    nowUs,
  });
  return { ...words, index };
}
