import { type Answer, isBadAnswer } from "../answer.js";
import { headroomAfter } from "../headroom.js";
import { afterBadAnswer, afterSuccess, incidentReadyAt, isIncidentForgotten } from "../incident.js";
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

/** Notes a start at a key that may remember an incident; whether it is the probe. Whatever starts after it shows that nobody waits for the probe any more. */
export function holdsTake(holds: Holds, who: unknown, atUs: number): boolean {
  const { incident } = holds;
  if (incident === undefined || incident.probe === "done") return false;
  const isProbe = incident.probe === "due";
  holds.probe = isProbe ? who : undefined;
  holds.incident = { ...incident, probe: isProbe ? "out" : "done", probeAtUs: atUs };
  return isProbe;
}

/** An answer at one key: to which start, and what else has to be known of it. */
export interface HeardAt {
  /** The start, as `holdsTake` was told of it; undefined for one that was recorded. */
  readonly who: unknown;
  readonly startedUs: number;
  readonly nowUs: number;
  /** The answer speaks of this key. */
  readonly isMeant: boolean;
  /** Units started at this key after that request. */
  readonly laterUnits: number;
  /** From 0 up to 1. */
  readonly random: number;
}

/**
 * Learns from an answer; whether it has begun or lengthened a hold.
 *
 * To keys that it does not speak of it says at most that it was a success, or that their probe is back.
 */
export function holdsHear(holds: Holds, rule: Rule, answer: Answer, at: HeardAt): boolean {
  const { incident, headers } = holds;
  const { kind, budget } = answer;
  if (at.isMeant && budget !== undefined) holds.headers = headroomAfter(headers, budget, at, at.laterUnits);
  if (at.isMeant && rule.enabled && isBadAnswer(kind)) {
    holds.incident = afterBadAnswer(incident, rule, { ...answer, ...at }, at.random);
  } else if (incident !== undefined && kind === "success") {
    holds.incident = afterSuccess(incident, at.startedUs, at.nowUs);
  }
  if (holds.incident !== incident) holds.probe = undefined;
  else if (incident !== undefined && at.who !== undefined && holds.probe === at.who) {
    holds.incident = { ...incident, probe: kind === "unused" ? "due" : "done" };
    holds.probe = undefined;
  }
  return holds.incident !== incident && isBadAnswer(kind);
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
