import type { Duration } from "../types.js";
import { durationUs } from "./duration.js";
import type { HttpPolicy, HttpRules, RetryRules, RobotsRules } from "./types.js";

const dayMs = 86_400_000;
/** Methods that ask and change nothing, so that sending one twice does no harm. */
const safeMethods: readonly string[] = ["GET", "HEAD", "OPTIONS", "TRACE"];

/** How HTTP requests are made where a policy says nothing about it. */
export const plainHttp: HttpRules = {
  userAgent: undefined,
  contact: undefined,
  robots: undefined,
  retry: undefined,
  maxCrawlDelayMs: 60_000,
  refusal: "error",
};

/** Makes the `http` part of a policy that was found valid ready: milliseconds, every default filled in. */
export function compileHttp(http: HttpPolicy = {}): HttpRules {
  const { userAgent, contact, robots, retry, maxCrawlDelay } = http;
  // A contact alone is sent under our name; one that is in the User-Agent already is not said twice.
  const isKnown = contact === undefined || userAgent?.includes(contact) === true;
  return {
    userAgent: isKnown ? userAgent : `${userAgent ?? "politely"} (+${contact})`,
    contact: contact ?? contactIn(userAgent),
    robots: compileRobots(robots, userAgent),
    retry: retry === undefined ? undefined : compileRetry(retry),
    maxCrawlDelayMs: ms(maxCrawlDelay, plainHttp.maxCrawlDelayMs),
    refusal: http.refusal ?? plainHttp.refusal,
  };
}

/** An address that a text such as a User-Agent gives, by mail or on the web; undefined when there is none. */
export function contactIn(text: string | undefined | null): string | undefined {
  return /[^\s@<>()]+@[^\s@<>()]+\.[^\s@<>()]+|https?:\/\/[^\s<>()]+/.exec(text ?? "")?.[0];
}

function compileRobots(robots: HttpPolicy["robots"], name = "*"): RobotsRules | undefined {
  if (robots === undefined || robots === false) return undefined;
  const { userAgent = name, maxAge } = robots === true ? {} : robots;
  return { userAgent, maxAgeMs: Math.min(ms(maxAge, dayMs), dayMs) };
}

function compileRetry(retry: NonNullable<HttpPolicy["retry"]>): RetryRules {
  return {
    attempts: retry.attempts,
    methods: (retry.methods ?? safeMethods).map((method) => method.toUpperCase()),
    maxWaitMs: ms(retry.maxWait, Number.POSITIVE_INFINITY),
    delayMs: ms(retry.delay, 1_000),
    jitter: retry.jitter ?? 0.25,
    budgetShare: retry.budget?.share ?? 0.2,
    budgetPerMinute: retry.budget?.perMinute ?? 10,
  };
}

function ms(value: Duration | undefined, otherwise: number): number {
  return durationUs(value ?? otherwise, "http", { allowZero: true, allowInfinity: true }) / 1000;
}
