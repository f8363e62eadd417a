import { durationUs } from "./duration.js";
import type { HttpPolicy, HttpRules, RetryRules, RobotsRules } from "./types.js";

const DAY_MS = 86_400_000;
/** Methods that ask and change nothing, so that sending one twice does no harm. */
const SAFE_METHODS: readonly string[] = ["GET", "HEAD", "OPTIONS", "TRACE"];

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
export function compileHttp(http: HttpPolicy | undefined): HttpRules {
  if (http === undefined) return plainHttp;
  return {
    userAgent: identityOf(http),
    contact: http.contact ?? contactIn(http.userAgent),
    robots: compileRobots(http),
    retry: http.retry === undefined ? undefined : compileRetry(http.retry),
    maxCrawlDelayMs:
      http.maxCrawlDelay === undefined ? plainHttp.maxCrawlDelayMs : ms(http.maxCrawlDelay, "maxCrawlDelay"),
    refusal: http.refusal ?? plainHttp.refusal,
  };
}

/** An address that a text such as a User-Agent gives, by mail or on the web; undefined when there is none. */
export function contactIn(text: string | undefined | null): string | undefined {
  return /[^\s@<>()]+@[^\s@<>()]+\.[^\s@<>()]+|https?:\/\/[^\s<>()]+/.exec(text ?? "")?.[0];
}

/** The User-Agent with the contact behind it, unless it is in there already. A contact alone is sent under our name. */
function identityOf({ userAgent, contact }: HttpPolicy): string | undefined {
  if (contact === undefined || userAgent?.includes(contact) === true) return userAgent;
  return `${userAgent ?? "politely"} (+${contact})`;
}

function compileRobots({ robots, userAgent }: HttpPolicy): RobotsRules | undefined {
  if (robots === undefined || robots === false) return undefined;
  const own = robots === true ? {} : robots;
  return {
    userAgent: own.userAgent ?? userAgent ?? "*",
    maxAgeMs: Math.min(own.maxAge === undefined ? DAY_MS : ms(own.maxAge, "robots.maxAge"), DAY_MS),
  };
}

function compileRetry(retry: NonNullable<HttpPolicy["retry"]>): RetryRules {
  return {
    attempts: retry.attempts,
    methods: (retry.methods ?? SAFE_METHODS).map((method) => method.toUpperCase()),
    maxWaitMs: retry.maxWait === undefined ? Number.POSITIVE_INFINITY : ms(retry.maxWait, "retry.maxWait"),
    delayMs: retry.delay === undefined ? 1_000 : ms(retry.delay, "retry.delay"),
    jitter: retry.jitter ?? 0.25,
    budgetShare: retry.budget?.share ?? 0.2,
    budgetPerMinute: retry.budget?.perMinute ?? 10,
  };
}

function ms(value: Parameters<typeof durationUs>[0], name: string): number {
  return durationUs(value, name, { allowZero: true, allowInfinity: true }) / 1000;
}
