import type { Robots } from "./robots/parseRobots.js";

/** How many sites' files are kept; beyond that the longest unused one goes. */
const MAX_SITES = 10_000;

/** What is known of one origin's robots.txt. */
export class Site {
  /** The rules in force; undefined when there are none: then `isOpen` decides. */
  robots: Robots | undefined = undefined;
  isOpen = false;
  /** Why nothing is allowed, for people. */
  reason = "";
  /** When `robots` was read. */
  readMs: number | undefined = undefined;
  /** When it is asked for again. */
  askAgainMs = Number.NEGATIVE_INFINITY;
  /** From here on it may be asked for ahead of time, while several wait. */
  askSoonMs = Number.NEGATIVE_INFINITY;
  /** It is not asked for before, since it asked for that and no limit sees to it. */
  heldUntilMs = Number.NEGATIVE_INFINITY;
  /** How many times in a row it asked to be left alone. */
  deferrals = 0;
  failures = 0;
  unreachableSinceMs: number | undefined = undefined;
  /** The question under way, shared by everybody who waits for it. */
  asking: Promise<"answered" | "deferred"> | undefined = undefined;
  /** How many wait for it or for their turn there, the question included. */
  users = 0;
  /** How many of them have had their turn, and stand before the others therefore. */
  keptTurns = 0;

  constructor(readonly origin: string) {}
}

/**
 * The sites whose robots.txt is known or wanted.
 *
 * One that somebody uses is never forgotten, since its pace and hours hold those who wait. So there are more than `maxSites` only while as
 * many are in use, each with a request of its own in the limiter's queues, which have a bound.
 */
export class RobotsSites {
  readonly #used = new Map<string, Site>();
  /** The longest unused first. */
  readonly #unused = new Map<string, Site>();

  constructor(
    /** Told the origin of each site that is forgotten. */
    readonly onForget: (origin: string) => void,
    readonly maxSites = MAX_SITES,
  ) {}

  get size(): number {
    return this.#used.size + this.#unused.size;
  }

  /** The site of an origin, which is kept until `leave` has been called as often. */
  use(origin: string): Site {
    const site = this.#used.get(origin) ?? this.#unused.get(origin) ?? new Site(origin);
    site.users += 1;
    if (site.users > 1) return site;
    this.#unused.delete(origin);
    this.#used.set(origin, site);
    this.#keepBound();
    return site;
  }

  leave(site: Site): void {
    site.users -= 1;
    if (site.users > 0) return;
    this.#used.delete(site.origin);
    this.#unused.set(site.origin, site);
    this.#keepBound();
  }

  #keepBound(): void {
    if (this.size <= this.maxSites) return;
    const longest = this.#unused.keys().next();
    if (longest.done === true) return;
    this.#unused.delete(longest.value);
    this.onForget(longest.value);
  }
}
