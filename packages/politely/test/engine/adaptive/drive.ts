import type { Limiter } from "../../../src/index.js";
import type { VirtualClock } from "../../../src/testing/index.js";
import type { Site } from "./sites.js";

/** What came of asking for more than the limits allow, all the time. */
export interface Driven {
  /** When each request started, in seconds. */
  readonly startsS: readonly number[];
  /** What the answer to each of them took, in milliseconds. */
  readonly latenciesMs: readonly number[];
  /** Answers that were not a success. */
  readonly badCount: number;
}

/** Whom to ask, what it answers, and for how long. */
export interface Traffic {
  readonly host: string;
  readonly site: Site;
  readonly seconds: number;
}

/** Asks for one start after the other at each host, sends each to its site, and reports what it answers. Time passes for as long as the longest takes. */
export async function drive(limiter: Limiter, clock: VirtualClock, ...traffic: readonly Traffic[]): Promise<Driven[]> {
  const driven = traffic.map((one) => feed(limiter, clock, one));
  await clock.advance(Math.max(...traffic.map(({ seconds }) => seconds)) * 1000);
  limiter.cancelWaiting();
  return Promise.all(driven);
}

async function feed(limiter: Limiter, clock: VirtualClock, { host, site, seconds }: Traffic): Promise<Driven> {
  const startsS: number[] = [];
  const latenciesMs: number[] = [];
  const endMs = clock.now() + seconds * 1000;
  let badCount = 0;
  for (;;) {
    const permit = await limiter.acquire(host).catch(() => undefined);
    if (permit === undefined || permit.startedAtMs >= endMs) return { startsS, latenciesMs, badCount };
    const atS = permit.startedAtMs / 1000;
    const { outcome, afterMs } = site(atS);
    startsS.push(atS);
    latenciesMs.push(afterMs);
    if (outcome !== "success") badCount += 1;
    clock.setTimer(clock.now() + afterMs, () => permit.release(outcome));
  }
}

/** Starts per second from `fromS` up to `toS`. */
export function perSecond(startsS: readonly number[], fromS: number, toS: number): number {
  return startsS.filter((atS) => atS >= fromS && atS < toS).length / (toS - fromS);
}
