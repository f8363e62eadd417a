import { incidentReadyAt, isIncidentForgotten } from "../incident.js";
import type { Holds, Key, Slowdown, Tell } from "../key.js";
import type { Rule } from "../rule.js";
import { isAnswerDue, spacedFromUs } from "./gap.js";

/** Who asks a key to be slower than its rule, and how that begins in a sentence. */
const SLOWDOWNS = [
  ["headers", "the site says"],
  ["robots", "robots.txt says"],
  ["adaptive", "slower for now,"],
] as const;

/** What holds a key; made where there is nothing yet. */
export function needHolds(key: Key): Holds {
  const rest = key.needRest();
  rest.holds ??= {};
  return rest.holds;
}

/** When a person's pause ends; Infinity where it has no end. */
export function pauseReadyAt(
  { pausedUntilUs: atUs = Number.NEGATIVE_INFINITY }: Holds,
  nowUs: number,
  tell?: Tell,
): number {
  if (atUs > nowUs) tell?.("pause", atUs, "paused");
  return atUs;
}

/** When neither a cooldown, nor its probe, nor what the site asks for stands in the way. */
export function holdsReadyAt(key: Key, holds: Holds, rule: Rule, nowUs: number, tell?: Tell): number {
  let atUs = Number.NEGATIVE_INFINITY;
  const { incident } = holds;
  if (incident !== undefined) {
    const { untilUs, because } = incident;
    atUs = incidentReadyAt(incident, rule.gapUs);
    if (untilUs > nowUs) tell?.("cooldown", untilUs, `cooling down after ${because}`, undefined, because);
    else if (atUs > nowUs) tell?.("probe", nowUs, `one probe is out after ${because}`, atUs, because);
  }
  for (const [limit, says] of SLOWDOWNS) {
    const slowdown = holds[limit];
    if (slowdown === undefined || slowdown.untilUs <= nowUs || (limit === "adaptive" && !rule.adaptive)) continue;
    const latestUs = slowdownReadyAt(slowdown, spacedFromUs(key, rule));
    atUs = Math.max(atUs, latestUs);
    if (tell === undefined || latestUs <= nowUs) continue;
    const { because } = slowdown;
    const isDue = isAnswerDue(key, rule);
    const earliestUs = isDue ? slowdownReadyAt(slowdown, nowUs) : latestUs;
    tell(limit, earliestUs, `${says} ${because}`, isDue ? latestUs : undefined, because);
  }
  return atUs;
}

/** When a slowdown allows a start, gaps running from `fromUs`. */
function slowdownReadyAt({ gapUs, holdUntilUs, untilUs }: Slowdown, fromUs: number): number {
  return Math.min(untilUs, gapUs === 0 ? holdUntilUs : Math.max(holdUntilUs, fromUs + gapUs));
}

/** Until when forgetting the key would be a gift. What robots.txt asks is asked again with the next request: only its running gap counts. */
export function holdsOweUntil(key: Key, holds: Holds, rule: Rule, nowUs: number): number {
  const { incident, headers, robots, adaptive, pausedUntilUs = nowUs } = holds;
  const isIncident = incident !== undefined && !isIncidentForgotten(incident, nowUs);
  return Math.max(
    pausedUntilUs,
    isIncident ? Math.max(incident.untilUs, nowUs + 1) : nowUs,
    headers?.untilUs ?? nowUs,
    robots === undefined ? nowUs : slowdownReadyAt(robots, spacedFromUs(key, rule)),
    adaptive === undefined || adaptive.gapUs === 0 ? nowUs : adaptive.untilUs,
  );
}
