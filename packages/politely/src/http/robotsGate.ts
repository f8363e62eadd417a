import { DeadlineError, RobotsError } from "../errors.js";
import { durationUs } from "../policy/duration.js";
import type { HttpRules, RobotsRules } from "../policy/types.js";
import type { Errand, Exchange, Gate } from "./exchange.js";
import type { Send } from "./fetch.js";
import { parseRobots, type Robots } from "./robots/parseRobots.js";
import { robotsAction } from "./robots/robotsAction.js";
import { msUntilOpen } from "./robots/robotsPace.js";
import { fetchRobots } from "./robotsFetch.js";
import { RobotsPacer } from "./robotsPacer.js";
import { waitFor } from "./waitFor.js";

/** How many sites' files are kept; beyond that the longest unused one goes. */
const MAX_SITES = 10_000;
/** After so many answers of "slow down" to one request for robots.txt, those waiting for it are told. */
const MAX_DEFERRALS = 5;
const FIRST_RETRY_MS = 60_000;
const LAST_RETRY_MS = 3_600_000;
const HOUR_MS = 3_600_000;

/** What is known of one origin's robots.txt. */
interface Site {
  /** The rules in force; undefined when there are none: then `isOpen` decides. */
  robots: Robots | undefined;
  isOpen: boolean;
  /** Why nothing is allowed, for people. */
  reason: string;
  /** When `robots` was read. */
  readMs: number | undefined;
  /** When it is asked for again. */
  askAgainMs: number;
  failures: number;
  unreachableSinceMs: number | undefined;
  /** The question under way, shared by everybody who waits for it. */
  asking: Promise<"answered" | "deferred"> | undefined;
}

/** Lets only those requests through that the site's robots.txt allows, and makes its pace the host's. */
export class RobotsGate implements Gate {
  /** By origin, the longest unused first. */
  readonly #sites = new Map<string, Site>();
  readonly #pace: RobotsPacer;

  constructor(
    readonly exchange: Exchange,
    readonly send: Send,
  ) {
    this.#pace = new RobotsPacer(exchange.pacer);
  }

  async pass(errand: Errand, rules: RobotsRules, http: HttpRules): Promise<void> {
    const url = new URL(errand.url);
    if (url.pathname === "/robots.txt") return;
    const { origin } = url;
    const site = this.#site(origin);
    const { clock } = this.exchange.pacer;
    for (let deferrals = 0; clock.now() >= site.askAgainMs; ) {
      site.asking ??= this.#ask(origin, site, rules).finally(() => {
        site.asking = undefined;
      });
      if ((await this.#waitFor(site.asking, errand)) === "answered") break;
      deferrals += 1;
      if (deferrals === MAX_DEFERRALS) {
        throw this.#refusal(errand.url, `it answered ${deferrals} times that it wants to be left alone`);
      }
    }
    const { robots } = site;
    if (robots === undefined) {
      if (site.isOpen) return;
      throw this.#refusal(errand.url, site.reason);
    }
    if (!robots.isAllowed(rules.userAgent, url)) {
      const line = robots.matchedRule(rules.userAgent, url);
      throw this.#refusal(errand.url, line === null ? "it does not say why" : `line ${line.line}, ${line.text}`);
    }
    this.#pace.set(origin, errand.url, robots, rules.userAgent, http.maxCrawlDelayMs);
  }

  isShut(url: string, rules: RobotsRules): boolean {
    const robots = this.#sites.get(new URL(url).origin)?.robots;
    return robots !== undefined && msUntilOpen(robots.visitTime(rules.userAgent), this.exchange.pacer.clock.wall()) > 0;
  }

  relax(): void {
    this.#pace.clear();
  }

  #site(origin: string): Site {
    const known = this.#sites.get(origin);
    const site: Site = known ?? {
      robots: undefined,
      isOpen: false,
      reason: "",
      readMs: undefined,
      askAgainMs: Number.NEGATIVE_INFINITY,
      failures: 0,
      unreachableSinceMs: undefined,
      asking: undefined,
    };
    this.#sites.delete(origin);
    this.#sites.set(origin, site);
    if (this.#sites.size > MAX_SITES) {
      const oldest = this.#sites.keys().next();
      if (oldest.done !== true) this.#forget(oldest.value);
    }
    return site;
  }

  #forget(origin: string): void {
    this.#sites.delete(origin);
    this.#pace.forget(origin);
  }

  async #ask(origin: string, site: Site, { maxAgeMs }: RobotsRules): Promise<"answered" | "deferred"> {
    const { clock } = this.exchange.pacer;
    const fetched = await fetchRobots(this.exchange, this.send, origin);
    const nowMs = clock.now();
    const { readMs, unreachableSinceMs = nowMs } = site;
    const action = robotsAction({
      ...fetched,
      cachedAgeHours: readMs === undefined ? undefined : (nowMs - readMs) / HOUR_MS,
      unreachableDays: (nowMs - unreachableSinceMs) / (24 * HOUR_MS),
    });
    if (action === "defer") return "deferred";
    const isAnswered = action === "parse" || (action === "allow-all" && fetched.networkError === undefined);
    site.failures = isAnswered ? 0 : site.failures + 1;
    site.unreachableSinceMs = isAnswered ? undefined : unreachableSinceMs;
    const retryMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(site.failures - 1, 10));
    site.askAgainMs = nowMs + (isAnswered ? maxAgeMs : Math.min(retryMs, maxAgeMs));
    if (action === "use-cached") return "answered";
    site.robots = action === "parse" ? parseRobots(fetched.body) : undefined;
    site.readMs = action === "parse" ? nowMs : undefined;
    site.isOpen = action === "allow-all";
    const trouble = fetched.networkError ?? `it answered ${fetched.status}`;
    site.reason = `it could not be had (${trouble}), and is asked for again in ${Math.round(retryMs / 1000)} s`;
    if (site.robots === undefined) this.#pace.forget(origin);
    return "answered";
  }

  #waitFor<Value>(promise: Promise<Value>, { url, signal, options }: Errand): Promise<Value> {
    const { clock, pacer } = { clock: this.exchange.pacer.clock, pacer: this.exchange.pacer };
    const { maxWait } = options ?? {};
    const maxWaitMs =
      maxWait === undefined
        ? Number.POSITIVE_INFINITY
        : durationUs(maxWait, "maxWait", { allowZero: true, allowInfinity: true }) / 1000;
    return waitFor(promise, clock, {
      signal,
      maxWaitMs,
      late: () => new DeadlineError(pacer.keyOf(url), maxWaitMs, "its robots.txt has not arrived yet", maxWaitMs),
    });
  }

  #refusal(url: string, reason: string): RobotsError {
    return new RobotsError(this.exchange.pacer.keyOf(url), url, reason);
  }
}
