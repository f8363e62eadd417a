import type { Slowdown } from "../scheduler/slowdowns.js";
import type { Pacer } from "./pacer.js";
import type { Robots } from "./robots/parseRobots.js";
import { msUntilOpen, robotsGapMs } from "./robots/robotsPace.js";

/** What one origin's robots.txt asks for at the moment. */
interface Asked {
  readonly key: string;
  /** A URL of the origin, by which the limiter finds its host. */
  readonly url: string;
  readonly gapMs: number;
  readonly openAtMs: number;
  readonly because: string;
}

/** Makes what robots.txt files ask of the pace a slowdown of their hosts. Origins that share a key count together: the slower one wins. */
export class RobotsPacer {
  readonly #asked = new Map<string, Asked>();
  readonly #origins = new Map<string, Set<string>>();
  readonly #capped = new Set<string>();

  constructor(readonly pacer: Pacer) {}

  /** Applies the file of an origin as it is now. Crawl-delay and Request-rate count up to `maxGapMs`, and a warning says so. */
  set(origin: string, url: string, robots: Robots, userAgent: string, maxGapMs: number): void {
    const { clock } = this.pacer;
    const crawlDelaySec = robots.crawlDelaySec(userAgent);
    const requestRate = robots.requestRate(userAgent);
    const askedMs = robotsGapMs({ crawlDelaySec, requestRate }, clock.wall());
    const gapMs = Math.min(askedMs, maxGapMs);
    const shutMs = msUntilOpen(robots.visitTime(userAgent), clock.wall());
    const openAtMs = shutMs === 0 ? Number.NEGATIVE_INFINITY : clock.now() + shutMs;
    const key = this.pacer.keyOf(url);
    if (askedMs > gapMs) this.#tellOfCap(origin, key, askedMs, maxGapMs);
    if (gapMs === 0 && shutMs === 0) {
      this.forget(origin);
      return;
    }
    const isDelay = askedMs === robotsGapMs({ crawlDelaySec, requestRate: null }, clock.wall());
    const field = shutMs > 0 ? "visitTime" : isDelay ? "crawlDelaySec" : "requestRate";
    const line = robots.pacingRule(userAgent, field);
    const because = line === null ? "so" : `"${line.text}" in line ${line.line}`;
    this.#asked.set(origin, { key, url, gapMs, openAtMs, because });
    const origins = this.#origins.get(key) ?? new Set();
    this.#origins.set(key, origins.add(origin));
    this.#apply(key, url);
  }

  /** The origin asks for nothing any more. */
  forget(origin: string): void {
    const asked = this.#asked.get(origin);
    if (asked === undefined) return;
    const { key, url } = asked;
    this.#asked.delete(origin);
    const origins = this.#origins.get(key);
    origins?.delete(origin);
    if (origins?.size === 0) this.#origins.delete(key);
    this.#apply(key, url);
  }

  /** Nothing of any robots.txt counts any more. */
  clear(): void {
    for (const origin of Array.from(this.#asked.keys())) this.forget(origin);
  }

  #apply(key: string, url: string): void {
    let slowest: Asked | undefined;
    let openAtMs = Number.NEGATIVE_INFINITY;
    for (const origin of this.#origins.get(key) ?? []) {
      const asked = this.#asked.get(origin);
      if (asked === undefined) continue;
      openAtMs = Math.max(openAtMs, asked.openAtMs);
      if (slowest === undefined || asked.gapMs > slowest.gapMs) slowest = asked;
    }
    this.pacer.slowByRobots(url, slowest === undefined ? undefined : slowdownOf(slowest, openAtMs));
  }

  #tellOfCap(origin: string, key: string, askedMs: number, maxGapMs: number): void {
    if (this.#capped.has(origin) || this.#capped.size >= 10_000) return;
    this.#capped.add(origin);
    const message = `robots.txt of ${origin} asks for ${askedMs / 1000} s between requests; ${maxGapMs / 1000} s are kept (maxCrawlDelay)`;
    this.pacer.tell({ type: "warn", key, message });
  }
}

function slowdownOf({ gapMs, because }: Asked, openAtMs: number): Slowdown {
  return {
    gapUs: Math.ceil(gapMs * 1000),
    holdUntilUs: Math.ceil(openAtMs * 1000),
    untilUs: Number.POSITIVE_INFINITY,
    because,
  };
}
