import type { Outlook } from "../counsel.js";
import type { LaneSpec } from "../lane.js";
import type { Desk } from "./desk.js";
import type { Plan } from "./plan.js";
import type { QuestionParts } from "./questions.js";
import { pauseEndUs, readStop, type ToldStop } from "./stopWords.js";

/** What stops a lane by what the store last said to it, or else by what this process has heard to hold its keys; undefined when nothing is known to. */
export function outlookOf(
  { engine, link, standby }: Pick<QuestionParts, "engine" | "link" | "standby">,
  { plan, spec, desk }: { readonly plan: Plan; readonly spec: LaneSpec; readonly desk: Desk | undefined },
  nowUs: number,
): Outlook | undefined {
  const told = desk === undefined ? undefined : toldTo(desk, nowUs);
  const remembered = told === undefined ? standby.recollection.holdOf(plan, nowUs) : undefined;
  // Others may have ended a pause since; while the store is away nobody can.
  const held = remembered?.hold.kind === "pause" && !link.isAway ? undefined : remembered;
  const index = told?.index ?? held?.index;
  const stop = told?.stop ?? (held === undefined ? undefined : { ...held.hold, atUs: held.hold.untilUs });
  if (index === undefined || stop === undefined) return undefined;
  const words = readStop(stop, {
    rule: plan.keys[index].rule,
    slot: spec.slots[index],
    slowdowns: engine.ledger.slowdowns,
    awayFrom: told !== undefined && desk?.isByStandby === true ? link.parts.store.name : undefined,
    nowUs,
  });
  return { ...words, index };
}

function toldTo(desk: Desk, nowUs: number): { readonly stop: ToldStop; readonly index: number } | undefined {
  const { stop, stopUntilUs } = desk;
  if (stop === undefined || stopUntilUs <= nowUs) return undefined;
  const { kind, because, key } = stop;
  const atUs = kind === "pause" ? stopUntilUs + pauseEndUs(stop) - stop.readyUs : stopUntilUs;
  return { stop: { kind, because, atUs }, index: key };
}
