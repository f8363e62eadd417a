import type { HeadersLike } from "../../types.js";
import { statusMeaning } from "../statusMeaning.js";

/** What came of asking for a robots.txt. Give what is known; the rest may be absent. */
export interface RobotsFetchOutcome {
  /** The status of the answer, when there was one. */
  readonly status?: number | undefined;
  /** Why there was no whole answer: a code or a message. It outweighs the status. */
  readonly networkError?: string | undefined;
  /** How many redirects were followed. Default 0. */
  readonly redirects?: number | undefined;
  /** The status after the last redirect. It takes the place of `status`. */
  readonly finalStatus?: number | undefined;
  /** A redirect led to another host. It changes nothing: the file counts for the host that was asked. */
  readonly crossHost?: boolean | undefined;
  /** The age of a copy that was parsed before; absent when there is none. */
  readonly cachedAgeHours?: number | undefined;
  /** For how long the file has been out of reach, without a break. Default 0. */
  readonly unreachableDays?: number | undefined;
  /** The size of the body. It changes nothing: of a large file `parseRobots` reads the first 500 KiB. */
  readonly bodyBytes?: number | undefined;
  /** The headers of the answer. Only `Retry-After` is looked at. */
  readonly headers?: HeadersLike | undefined;
}

/**
 * What to do about a site's robots.txt: parse the body, go on as if the site had none, leave the site alone, keep to the copy
 * from before, or wait and ask again while nothing else is sent.
 */
export type RobotsAction = "parse" | "allow-all" | "disallow-all" | "use-cached" | "defer";

const maxRedirects = 5;
const giveUpDays = 30;

/**
 * Says what to do with the outcome of fetching a robots.txt, by RFC 9309. Never throws on an object.
 *
 * A success is parsed. A client error, more than five redirects and a redirect that leads nowhere mean that the site has no rules. A site
 * that asks to slow down, with a 429 say, or with a 503 or 403 that has a Retry-After, is asked again later. With other server errors and
 * without an answer the copy from before stays in force, however old; without a copy nothing may be fetched for 30 days, and then
 * everything. Whether a copy is fresh enough not to ask at all, by RFC 9309 for a day, is up to the caller.
 */
export function robotsAction(outcome: RobotsFetchOutcome): RobotsAction {
  const { networkError, redirects = 0 } = outcome;
  const status = outcome.finalStatus ?? outcome.status;
  if (isGiven(networkError)) return withoutAnswer(outcome);
  if (redirects > maxRedirects) return "allow-all";
  if (!isGiven(status)) return withoutAnswer(outcome);

  if (status >= 200 && status < 300) return "parse";
  if (statusMeaning(status, hasRetryAfter(outcome.headers), false) === "rate_limited") return "defer";
  // A 304 has no body because the copy is still right.
  return status >= 300 && status < 500 && status !== 304 ? "allow-all" : withoutAnswer(outcome);
}

function withoutAnswer({ cachedAgeHours, unreachableDays = 0 }: RobotsFetchOutcome): RobotsAction {
  if (isGiven(cachedAgeHours)) return "use-cached";
  return unreachableDays >= giveUpDays ? "allow-all" : "disallow-all";
}

/** Whether there is a `Retry-After` that could be a time: neither zero nor negative nor without any number. */
function hasRetryAfter(headers: HeadersLike | undefined): boolean {
  try {
    return isGiven(headers) && /^[^-]*[1-9]/.test(String(retryAfterOf(headers)));
  } catch {
    // Headers are the client's own object. One that fails must not take the answer it came with down as well.
    return false;
  }
}

function retryAfterOf(headers: HeadersLike): unknown {
  if ("get" in headers && typeof headers.get === "function") return headers.get("retry-after");
  return Object.entries(headers).find(([name]) => name.toLowerCase() === "retry-after")?.[1];
}

/** JSON has null for what is absent. */
function isGiven<Value>(value: Value | null | undefined): value is Value {
  return value !== undefined && value !== null;
}
