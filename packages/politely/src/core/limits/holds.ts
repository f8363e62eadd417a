import { incidentReadyAt, isIncidentForgotten } from "../incident.js";
import type { Key, Rest, Slowdown, Tell } from "../key.js";
import type { Rule } from "../rule.js";
import { isAnswerDue, spacedFromUs } from "./gap.js";

/** Who asks a key to be slower than its rule: the site's headers, its robots.txt, or what its answers have taught. */
export type SlowdownSource = "headers" | "robots" | "adaptive";

/** All of them, in a fixed order. */
export const SLOWDOWNS: readonly SlowdownSource[] = ["headers", "robots", "adaptive"];

const SAYS: Readonly<Record<SlowdownSource, string>> = {
  headers: "the site says",
  robots: "robots.txt says",
  adaptive: "slower for now,",
};

/** When a person's pause ends; Infinity where it has no end. */
export function pauseReadyAt(rest: Rest, nowUs: number, tell?: Tell): number {
  const atUs = rest.pausedUntilUs;
  if (atUs > nowUs) tell?.({ limit: "pause", atUs, isAwaited: false, latestUs: atUs, words: "paused" });
  return atUs;
}

/** When nobody but people and the rule stands in the way: after the cooldown, its probe, and what the site asks for. */
export function holdsReadyAt(key: Key, rest: Rest, rule: Rule, nowUs: number, tell?: Tell): number {
  let atUs = Number.NEGATIVE_INFINITY;
  const { incident } = rest;
  if (incident !== undefined) {
    atUs = incidentReadyAt(incident, rule.gapUs);
    const { untilUs, because } = incident;
    if (untilUs > nowUs) {
      const words = `cooling down after ${because}`;
      tell?.({ limit: "cooldown", atUs: untilUs, isAwaited: false, latestUs: untilUs, words, because });
    } else if (atUs > nowUs) {
      const words = `one probe is out after ${because}`;
      tell?.({ limit: "probe", atUs: nowUs, isAwaited: true, latestUs: atUs, words, because });
    }
  }
  for (const source of SLOWDOWNS) {
    const slowdown = rest[source];
    if (slowdown === undefined) continue;
    if (slowdown.untilUs <= nowUs) {
      rest[source] = undefined;
      continue;
    }
    const slowUs = slowdownReadyAt(slowdown, spacedFromUs(key, rule));
    if (slowUs > atUs) atUs = slowUs;
    if (tell === undefined || slowUs <= nowUs) continue;
    const { because } = slowdown;
    const words = `${SAYS[source]} ${because}`;
    const isAwaited = isAnswerDue(key, rule);
    const earliestUs = isAwaited ? slowdownReadyAt(slowdown, nowUs) : slowUs;
    tell({ limit: source, atUs: earliestUs, isAwaited, latestUs: slowUs, words, because });
  }
  return atUs;
}

/** When a slowdown allows a start, gaps running from `fromUs`. */
function slowdownReadyAt({ gapUs, holdUntilUs, untilUs }: Slowdown, fromUs: number): number {
  return Math.min(untilUs, gapUs === 0 ? holdUntilUs : Math.max(holdUntilUs, fromUs + gapUs));
}

/** Until when forgetting the key would be a gift. What robots.txt asks is asked again with the next request: only its running gap counts. */
export function holdsOweUntil(key: Key, rest: Rest, rule: Rule, nowUs: number): number {
  let untilUs = rest.pausedUntilUs;
  if (rest.incident !== undefined && !isIncidentForgotten(rest.incident, nowUs)) {
    untilUs = Math.max(untilUs, rest.incident.untilUs, nowUs + 1);
  }
  for (const source of SLOWDOWNS) {
    const slowdown = rest[source];
    if (slowdown === undefined || slowdown.untilUs <= nowUs) continue;
    const slowUs = source === "robots" ? slowdownReadyAt(slowdown, spacedFromUs(key, rule)) : slowdown.untilUs;
    untilUs = Math.max(untilUs, slowUs);
  }
  return untilUs;
}
