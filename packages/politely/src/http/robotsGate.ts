import { ClosedError, RobotsError } from "../errors.js";
import type { RobotsRules } from "../policy/types.js";
import type { Errand, Exchange, Gate } from "./exchange.js";
import type { Send } from "./fetch.js";
import type { Flight } from "./flight.js";
import { Patience } from "./patience.js";
import { msUntilOpen } from "./robots/pace.js";
import { parseRobots } from "./robots/parseRobots.js";
import { robotsAction } from "./robots/robotsAction.js";
import { fetchRobots, type RobotsFetched } from "./robotsFetch.js";
import { type RobotsFile, RobotsPacer } from "./robotsPacer.js";
import { RobotsSites, type Site } from "./robotsSites.js";

/** After so many answers of "slow down" to one request for robots.txt, those waiting for it are told. */
const MAX_DEFERRALS = 5;
/** The least between two of these; doubles each time. */
const FIRST_DEFERRAL_MS = 1_000;
const FIRST_RETRY_MS = 60_000;
const LAST_RETRY_MS = 3_600_000;
const HOUR_MS = 3_600_000;

/** The last part of a copy's time in which it is asked for ahead, while several wait. */
const AHEAD_SHARE = 0.1;
/** Who has had his turn and gave it back stands before others, after robots.txt. */
const TURN_PRIORITY = 999_999;
/** So many of a site do at a time. Those beyond had a turn only since these gave way, and others who share a limit with the site go too. */
const MAX_KEPT_TURNS = 100;

/** One who waits for his turn. */
interface Turn {
  /** How often he has had it and could not use it. */
  readonly round: number;
  readonly askedMs: number;
  /** The renewal of the site's pace when he was let through to the queue; undefined when it asked for none. */
  readonly renewal: number | undefined;
}

/** Lets only those requests through that the site's robots.txt allows, and makes its pace the host's. */
export class RobotsGate implements Gate {
  readonly #sites: RobotsSites;
  readonly #pace: RobotsPacer;
  /** Aborts when those who wait here have reason to look again; then there is a new one. */
  #woken = new AbortController();
  #isClosed = false;

  constructor(
    readonly exchange: Exchange,
    readonly send: Send,
    /** How many sites are kept, those in use included if there is room. Default 10,000. */
    maxSites?: number,
  ) {
    this.#pace = new RobotsPacer(exchange.pacer);
    this.#sites = new RobotsSites((origin) => this.#pace.forget(origin, true), maxSites);
  }

  async enter(errand: Errand): Promise<Flight> {
    const { signal } = errand;
    if (signal?.aborted === true) throw signal.reason;
    const url = new URL(errand.url);
    if (url.pathname === "/robots.txt" && url.search === "") return errand.turn ?? this.exchange.enterUnasked(errand);
    const patience = new Patience(this.exchange.pacer, errand);
    const site = this.#sites.use(url.origin);
    try {
      return await this.#admit(url, site, patience);
    } catch (error) {
      errand.turn?.unused();
      throw error;
    } finally {
      this.#sites.leave(site);
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

  async #admit(url: URL, site: Site, patience: Patience): Promise<Flight> {
    const { clock } = this.exchange.pacer;
    const { turn: had } = patience.errand;
    let passing = this.#pass(url, site, patience);
    // Its place may be needed to ask for the file.
    if (clock.now() >= site.askAgainMs) had?.unused();
    for (let round = had?.isOver === true ? 1 : 0; ; round++) {
      const turn = { renewal: await passing, round, askedMs: clock.now() };
      const opensAtMs = turn.askedMs + this.#shutMs(site);
      const flight = round === 0 && had !== undefined ? had : await this.#queue(site, patience, round);
      if (this.#mayGo(url, site, patience, turn, flight)) return flight;
      // When the hours have ended in the queue, the host is held anew. One that is not paced is not held: the hours are waited for here.
      const shutMs = clock.now() < opensAtMs ? this.#shutMs(site) : 0;
      // A file that is too old is asked for before the place is given back: so the place is robots.txt's, and not that of the next who finds it too old.
      passing = shutMs > 0 ? this.#passLater(shutMs, url, site, patience) : this.#pass(url, site, patience);
      flight.unused();
    }
  }

  /** Waits for the limiter. */
  #queue(site: Site, patience: Patience, round: number): Flight | Promise<Flight> {
    const errand = patience.rest();
    if (round === 0 || site.keptTurns >= MAX_KEPT_TURNS) return this.exchange.enterUnasked(errand);
    const priority = Math.max(TURN_PRIORITY, errand.options?.priority ?? 0);
    const flight = this.exchange.enterUnasked({ ...errand, options: { ...errand.options, priority } });
    if (!(flight instanceof Promise)) return flight;
    site.keptTurns += 1;
    return flight.finally(() => {
      site.keptTurns -= 1;
    });
  }

  /** Whether one whose turn it is may still go: the file may have changed or become too old since it let him pass, and so may the time of the day. */
  #mayGo(url: URL, site: Site, patience: Patience, turn: Turn, { permit }: Flight): boolean {
    const { round, renewal, askedMs } = turn;
    const { pacer } = this.exchange;
    const rules = pacer.http().robots;
    if (rules === undefined) return true;
    const nowMs = pacer.clock.now();
    // Each time it may be older, so that nobody goes round for ever where a turn takes longer than a copy lasts.
    const graceMs = round === 0 ? 0 : HOUR_MS * 2 ** Math.min(round - 1, 10);
    if (permit.waitedMs > 0 && nowMs >= site.askAgainMs + graceMs) return false;
    if (this.#objection(url, site, rules) !== undefined) return false;
    const file = this.#fileOf(site, rules);
    const { url: asked } = patience.errand;
    if (this.#shutMs(site) > 0) {
      // Before the place is given back: then nobody else gets it.
      if (file !== undefined) this.#pace.set(site.origin, asked, file);
      return false;
    }
    const start = { renewal, startedMs: Math.min(nowMs, askedMs + permit.waitedMs) };
    if (file !== undefined && !this.#pace.start(site.origin, asked, file, start)) return false;
    // Ahead of time, so that those behind him need not give their turn back for it.
    const isDue = nowMs >= Math.max(site.askSoonMs, site.heldUntilMs) && nowMs < site.askAgainMs;
    if (isDue && site.users > 1) site.asking ??= this.#ask(site, rules, patience.errand);
    return true;
  }

  async #passLater(ms: number, url: URL, site: Site, patience: Patience): Promise<number | undefined> {
    await patience.pause(ms, "its robots.txt names hours to come in", this.#woken.signal);
    return this.#pass(url, site, patience);
  }

  #wake(): void {
    const woken = this.#woken;
    this.#woken = new AbortController();
    woken.abort();
  }

  /** Resolves once the URL may be asked for, or nobody minds robots.txt any more, to the renewal of the site's pace. Rejects with `RobotsError` when it may not be. */
  async #pass(url: URL, site: Site, patience: Patience): Promise<number | undefined> {
    await this.#learn(site, patience);
    const rules = this.exchange.pacer.http().robots;
    if (rules === undefined) return undefined;
    const { url: asked } = patience.errand;
    const objection = this.#objection(url, site, rules);
    if (objection !== undefined) throw this.#refusal(asked, objection);
    const file = this.#fileOf(site, rules);
    return file && this.#pace.set(site.origin, asked, file)?.renewal;
  }

  /** Why the URL may not be asked for; undefined when it may. */
  #objection(url: URL, { robots, isOpen, reason }: Site, { userAgent }: RobotsRules): string | undefined {
    if (robots === undefined) return isOpen ? undefined : reason;
    if (robots.isAllowed(userAgent, url)) return undefined;
    const line = robots.matchedRule(userAgent, url);
    return line === null ? "it does not say why" : `line ${line.line}, ${line.text}`;
  }

  #fileOf({ robots }: Site, { userAgent }: RobotsRules): RobotsFile | undefined {
    return robots && { robots, userAgent, maxGapMs: this.exchange.pacer.http().maxCrawlDelayMs };
  }

  /** Waits until the site's file is known and fresh enough. */
  async #learn(site: Site, patience: Patience): Promise<void> {
    const { pacer } = this.exchange;
    let wasRefused = false;
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
      const isJoining = site.asking !== undefined && !wasRefused;
      site.asking ??= this.#ask(site, rules, patience.errand);
      // What the limiter refuses to one, in his scopes say, it may grant to another, once.
      const refused = (): undefined => {
        wasRefused = true;
      };
      const asking = isJoining ? site.asking.catch(refused) : site.asking;
      const answer = await patience.waitFor(asking, "its robots.txt has not arrived yet", this.#woken.signal);
      if (answer === "answered") return;
      if (answer === "deferred") deferrals += 1;
      if (deferrals === MAX_DEFERRALS) {
        const times = `it answered ${deferrals} times that it wants to be left alone`;
        throw this.#refusal(url, `it could not be had (${times}), and is asked for again with a later request`);
      }
    }
  }

  /** How long the site's visiting hours are still to come; 0 when it is open, and when nobody minds. */
  #shutMs({ robots }: Site): number {
    const { pacer } = this.exchange;
    const rules = pacer.http().robots;
    if (rules === undefined || robots === undefined) return 0;
    return msUntilOpen(robots.visitTime(rules.userAgent), pacer.clock.wall());
  }

  /** Asks for the file, for everybody who waits for it, in the way of the one who was first. */
  #ask(site: Site, rules: RobotsRules, errand: Errand): Promise<"answered" | "deferred"> {
    this.#sites.use(site.origin);
    const asking = this.#askNow(site, rules, errand).finally(() => {
      site.asking = undefined;
      this.#sites.leave(site);
    });
    // Those who wait hear of a failure. That everybody has given up meanwhile is none.
    asking.catch(() => undefined);
    return asking;
  }

  async #askNow(site: Site, { maxAgeMs }: RobotsRules, errand: Errand): Promise<"answered" | "deferred"> {
    const { pacer } = this.exchange;
    const { clock } = pacer;
    const { origin } = site;
    const fetched = await fetchRobots(this.exchange, this.send, errand);
    const nowMs = clock.now();
    const { readMs, unreachableSinceMs = nowMs } = site;
    const action = robotsAction({
      ...fetched,
      cachedAgeHours: readMs === undefined ? undefined : (nowMs - readMs) / HOUR_MS,
      unreachableDays: (nowMs - unreachableSinceMs) / (24 * HOUR_MS),
    });
    if (action === "defer") {
      this.#hold(site, fetched);
      return "deferred";
    }
    site.deferrals = 0;
    const isAnswered = action === "parse" || (action === "allow-all" && fetched.networkError === undefined);
    site.failures = isAnswered ? 0 : site.failures + 1;
    site.unreachableSinceMs = isAnswered ? undefined : unreachableSinceMs;
    const retryMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(site.failures - 1, 10));
    site.askAgainMs = nowMs + (isAnswered ? maxAgeMs : Math.min(retryMs, maxAgeMs));
    site.askSoonMs = site.askAgainMs - (isAnswered ? maxAgeMs * AHEAD_SHARE : 0);
    if (action === "use-cached") return "answered";
    site.robots = action === "parse" ? parseRobots(fetched.body) : undefined;
    site.readMs = action === "parse" ? nowMs : undefined;
    site.isOpen = action === "allow-all";
    const trouble = fetched.networkError ?? `it answered ${fetched.status}`;
    site.reason = `it could not be had (${trouble}), and is asked for again in ${Math.round(retryMs / 1000)} s`;
    const rules = pacer.http().robots;
    const file = rules && this.#fileOf(site, rules);
    if (file === undefined) this.#pace.forget(origin);
    else this.#pace.replace(origin, file);
    return "answered";
  }

  /** Sees to it that a site which asked to be left alone is. A host that is paced is in a cooldown already. */
  #hold(site: Site, { status = 0, headers }: RobotsFetched): void {
    const { pacer } = this.exchange;
    const ownMs = Math.min(FIRST_RETRY_MS, FIRST_DEFERRAL_MS * 2 ** Math.min(site.deferrals, 10));
    site.deferrals += 1;
    site.askSoonMs = site.askAgainMs;
    if (pacer.coolingMs(`${site.origin}/robots.txt`) > 0) return;
    const asked = headers === undefined ? undefined : pacer.readOutcome({ status, headers }, pacer.keyOf(site.origin));
    const askedMs = (asked?.retryAfterUs ?? 0) / 1000;
    site.heldUntilMs = pacer.clock.now() + Math.max(ownMs, askedMs);
  }

  #refusal(url: string, reason: string): RobotsError {
    return new RobotsError(this.exchange.pacer.keyOf(url), url, reason);
  }
}
