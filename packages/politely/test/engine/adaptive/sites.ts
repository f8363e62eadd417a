import type { Outcome } from "../../../src/index.js";
import { variedMs } from "./randomNumbers.js";

/** What a site does with a request that reaches it: how it answers, and after how long. */
export interface Reply {
  readonly outcome: Outcome;
  readonly afterMs: number;
}

/** A simulated site: from the second at which a request reaches it to its reply. It sees the requests in order. */
export type Site = (atS: number) => Reply;

/** Something that may change with time, in seconds. */
export type Course = (atS: number) => number;

/** How long a site takes when it has nothing else to do. */
export interface SiteLatency {
  readonly latencyMs: number;
  /** The spread of the latency on a scale of ratios. Default 0.3: nine of ten within 0.6 and 1.6 of the middle. */
  readonly sigma?: number;
  readonly random: () => number;
}

const takenMs = ({ latencyMs, sigma = 0.3, random }: SiteLatency): number => variedMs(latencyMs, sigma, random);

/** Takes `capacity` requests a second, a second's worth at once, and answers the rest with `refusal`. */
export function refusingSite(capacity: Course, refusal: Outcome, latency: SiteLatency): Site {
  let tokens = capacity(0);
  let seenS = 0;
  return (atS) => {
    const perS = capacity(atS);
    tokens = Math.min(Math.max(1, perS), tokens + (atS - seenS) * perS);
    seenS = atS;
    const afterMs = takenMs(latency);
    if (tokens < 1) return { outcome: refusal, afterMs: afterMs / 2 };
    tokens -= 1;
    return { outcome: "success", afterMs };
  };
}

/** Serves `capacity` requests a second one after the other, and lets the others wait: the answer comes late, or after `timeoutMs` not at all. */
export function queueingSite(capacity: Course, timeoutMs: number, latency: SiteLatency): Site {
  let freeS = 0;
  return (atS) => {
    freeS = Math.max(freeS, atS) + 1 / capacity(atS);
    const afterMs = (freeS - atS) * 1000 + takenMs(latency);
    return afterMs > timeoutMs ? { outcome: "timeout", afterMs: timeoutMs } : { outcome: "success", afterMs };
  };
}

/** Answers everything, `share` of it with `failure` whatever the pace is. */
export function failingSite(share: Course, failure: Outcome, latency: SiteLatency): Site {
  return (atS) => {
    const isFailure = latency.random() < share(atS);
    return { outcome: isFailure ? failure : "success", afterMs: takenMs(latency) };
  };
}

/** Answers everything after a time that does not depend on the pace. */
export function steadySite(latencyMs: Course, latency: SiteLatency): Site {
  return (atS) => ({ outcome: "success", afterMs: takenMs({ ...latency, latencyMs: latencyMs(atS) }) });
}
