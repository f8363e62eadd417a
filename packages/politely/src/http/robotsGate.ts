import { ClosedError, RobotsError } from "../errors.js";
import type { RobotsRules } from "../policy/types.js";
import type { Errand, Exchange, Gate } from "./exchange.js";
import type { Send } from "./fetch.js";
import type { Flight } from "./flight.js";
import { Patience } from "./patience.js";
import { readAnswer } from "./readAnswer.js";
import { parseRobots, type Robots } from "./robots/parseRobots.js";
import { robotsAction } from "./robots/robotsAction.js";
import { msUntilOpen } from "./robots/robotsPace.js";
import { fetchRobots, type RobotsFetched } from "./robotsFetch.js";
import { RobotsPacer } from "./robotsPacer.js";

/** How many sites' files are kept; beyond that the longest unused one goes. */
const MAX_SITES = 10_000;
/** After so many answers of "slow down" to one request for robots.txt, those waiting for it are told. */
const MAX_DEFERRALS = 5;
/** The least between two of these; doubles each time. */
const FIRST_DEFERRAL_MS = 1_000;
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
  /** It is not asked for before, since it asked for that and no limit sees to it. */
  heldUntilMs: number;
  /** How many times in a row it asked to be left alone. */
  deferrals: number;
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
  /** Aborts when those who wait here have reason to look again; then there is a new one. */
  #woken = new AbortController();
  #isClosed = false;

  constructor(
    readonly exchange: Exchange,
    readonly send: Send,
  ) {
    this.#pace = new RobotsPacer(exchange.pacer);
  }

  async enter(errand: Errand): Promise<Flight> {
    const { signal } = errand;
    if (signal?.aborted === true) throw signal.reason;
    const url = new URL(errand.url);
    if (url.pathname === "/robots.txt") return this.exchange.enterUnasked(errand);
    const { clock } = this.exchange.pacer;
    const patience = new Patience(this.exchange.pacer, errand);
    for (;;) {
      await this.#pass(url, patience);
      const opensAtMs = clock.now() + this.#shutMs(url.origin);
      const flight = await this.exchange.enterUnasked(patience.rest());
      const shutMs = this.#shutMs(url.origin);
      if (shutMs === 0) return flight;
      flight.unused();
      // When the hours have ended in the queue, the host is held anew. One that is not paced is not held: the hours are waited for here.
      const isHeld = clock.now() >= opensAtMs;
      if (!isHeld) await patience.pause(shutMs, "its robots.txt names hours to come in", this.#woken.signal);
    }
  }

  configured(): void {
    if (this.exchange.pacer.http().robots === undefined) this.#pace.clear();
    this.#wake();
  }

  close(): void {
    this.#isClosed = true;
    this.#wake();
  }

  #wake(): void {
    const woken = this.#woken;
    this.#woken = new AbortController();
    woken.abort();
  }

  /** Resolves once the URL may be asked for, or nobody minds robots.txt any more. Rejects with `RobotsError` when it may not be. */
  async #pass(url: URL, patience: Patience): Promise<void> {
    const { pacer } = this.exchange;
    const { origin } = url;
    const site = this.#site(origin);
    await this.#learn(origin, site, patience);
    const { robots: rules, maxCrawlDelayMs } = pacer.http();
    if (rules === undefined) return;
    const { robots } = site;
    const { url: asked } = patience.errand;
    if (robots === undefined) {
      if (site.isOpen) return;
      throw this.#refusal(asked, site.reason);
    }
    if (!robots.isAllowed(rules.userAgent, url)) {
      const line = robots.matchedRule(rules.userAgent, url);
      throw this.#refusal(asked, line === null ? "it does not say why" : `line ${line.line}, ${line.text}`);
    }
    this.#pace.set(origin, asked, robots, rules.userAgent, maxCrawlDelayMs);
  }

  /** Waits until the site's file is known and fresh enough. */
  async #learn(origin: string, site: Site, patience: Patience): Promise<void> {
    const { pacer } = this.exchange;
    for (let deferrals = 0; pacer.clock.now() >= site.askAgainMs; ) {
      const rules = pacer.http().robots;
      if (rules === undefined) return;
      const { url } = patience.errand;
      if (this.#isClosed) throw new ClosedError(pacer.keyOf(url));
      const heldMs = site.heldUntilMs - pacer.clock.now();
      if (heldMs > 0) {
        await patience.pause(heldMs, "its robots.txt is to be asked for later", this.#woken.signal);
        continue;
      }
      site.asking ??= this.#ask(origin, site, rules);
      const answer = await patience.waitFor(site.asking, "its robots.txt has not arrived yet", this.#woken.signal);
      if (answer === "answered") return;
      if (answer === "deferred") deferrals += 1;
      if (deferrals === MAX_DEFERRALS) {
        throw this.#refusal(url, `it answered ${deferrals} times that it wants to be left alone`);
      }
    }
  }

  /** How long the site's visiting hours are still to come; 0 when it is open, and when nobody minds. */
  #shutMs(origin: string): number {
    const { pacer } = this.exchange;
    const rules = pacer.http().robots;
    const robots = this.#sites.get(origin)?.robots;
    if (rules === undefined || robots === undefined) return 0;
    return msUntilOpen(robots.visitTime(rules.userAgent), pacer.clock.wall());
  }

  #site(origin: string): Site {
    const known = this.#sites.get(origin);
    const site: Site = known ?? {
      robots: undefined,
      isOpen: false,
      reason: "",
      readMs: undefined,
      askAgainMs: Number.NEGATIVE_INFINITY,
      heldUntilMs: Number.NEGATIVE_INFINITY,
      deferrals: 0,
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

  /** Asks for the file, for everybody who waits for it. */
  #ask(origin: string, site: Site, rules: RobotsRules): Promise<"answered" | "deferred"> {
    const asking = this.#askNow(origin, site, rules).finally(() => {
      site.asking = undefined;
    });
    // Those who wait hear of a failure. That everybody has given up meanwhile is none.
    asking.catch(() => undefined);
    return asking;
  }

  async #askNow(origin: string, site: Site, { maxAgeMs }: RobotsRules): Promise<"answered" | "deferred"> {
    const { clock } = this.exchange.pacer;
    const fetched = await fetchRobots(this.exchange, this.send, origin);
    const nowMs = clock.now();
    const { readMs, unreachableSinceMs = nowMs } = site;
    const action = robotsAction({
      ...fetched,
      cachedAgeHours: readMs === undefined ? undefined : (nowMs - readMs) / HOUR_MS,
      unreachableDays: (nowMs - unreachableSinceMs) / (24 * HOUR_MS),
    });
    if (action === "defer") {
      this.#hold(origin, site, fetched);
      return "deferred";
    }
    site.deferrals = 0;
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

  /** Sees to it that a site which asked to be left alone is. A host that is paced is in a cooldown already. */
  #hold(origin: string, site: Site, { status = 0, headers }: RobotsFetched): void {
    const { pacer } = this.exchange;
    const ownMs = Math.min(FIRST_RETRY_MS, FIRST_DEFERRAL_MS * 2 ** Math.min(site.deferrals, 10));
    site.deferrals += 1;
    if (pacer.isCooling(`${origin}/robots.txt`)) return;
    const askedMs = headers === undefined ? 0 : readAnswer(headers, pacer.clock.wall(), status).retryAfterUs / 1000;
    site.heldUntilMs = pacer.clock.now() + Math.max(ownMs, askedMs);
  }

  #refusal(url: string, reason: string): RobotsError {
    return new RobotsError(this.exchange.pacer.keyOf(url), url, reason);
  }
}
