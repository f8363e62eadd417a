import type { Slowdown } from "../core/key.js";
import type { Pacer } from "./pacer.js";
import { msUntilGapChanges, msUntilOpen, robotsGapMs } from "./robots/pace.js";
import type { Robots } from "./robots/parseRobots.js";

/** So many keys of one origin are slowed at a time. A `groupBy` that makes more has the one let go whose pace changed longest ago, until its next start. */
const MAX_KEYS_PER_ORIGIN = 1_000;

/** A robots.txt, and how it is taken. */
export interface RobotsFile {
  readonly robots: Robots;
  readonly userAgent: string;
  /** Crawl-delay and Request-rate count up to this. */
  readonly maxGapMs: number;
}

/** A start, and how it waited. */
export interface RobotsStart {
  /** Of the pace when it began to wait; undefined when there was none. */
  readonly renewal: number | undefined;
  readonly startedMs: number;
}

/** What one origin's robots.txt asks of a key for some time. */
export interface Asked {
  /** A URL of the origin, by which the limiter finds the key. */
  readonly url: string;
  readonly file: RobotsFile;
  readonly gapMs: number;
  readonly openAtMs: number;
  /** From here on it may ask for another gap. */
  readonly untilMs: number;
}

/** The pace of a key, by which somebody waits. */
class PacedKey {
  readonly origins = new Map<string, Asked>();
  slowdown: Slowdown | undefined = undefined;
  untilMs = Number.POSITIVE_INFINITY;
  /** Changes when the hours of a Request-rate have begun or ended, and the pace is another therefore. */
  renewal = 0;
  /** When the last renewal was noticed. Who started before, and waited already, may have started by the pace that was over. */
  renewedMs = Number.NEGATIVE_INFINITY;
  /** The last start that was counted. */
  startedMs = Number.NEGATIVE_INFINITY;
  /** When the pace was last asked for, which is not before its last start. */
  usedMs = Number.NEGATIVE_INFINITY;
}

/** Makes what robots.txt files ask of the pace a slowdown of their hosts. Origins that share a key count together: the slower one wins. */
export class RobotsPacer {
  readonly #keys = new Map<string, PacedKey>();
  /** The keys at which an origin asks for something, the one that changed longest ago first. */
  readonly #keysOf = new Map<string, Set<string>>();
  readonly #capped = new Set<string>();
  #renewals = 0;

  constructor(readonly pacer: Pacer) {}

  /**
   * Applies the file of an origin, as it is now, to the key of a URL. Undefined when it asks nothing of the pace.
   *
   * What it asks now holds until the hours of its Request-rate begin or end, and then nothing of it does until this or `start` is called.
   */
  set(origin: string, url: string, file: RobotsFile): PacedKey | undefined {
    const nowMs = this.pacer.clock.now();
    const key = this.pacer.keyOf(url);
    const known = this.#keys.get(key);
    const asked = known?.origins.get(origin);
    const now = this.#read(origin, key, url, file);
    if (known !== undefined && asked !== undefined && nowMs < known.untilMs && isSame(asked, now, nowMs)) {
      known.usedMs = nowMs;
      // The limiter may have forgotten a key that owes nothing.
      if (known.slowdown !== undefined) this.pacer.slowByRobots(url, known.slowdown);
      return known;
    }
    if (now.gapMs === 0 && now.openAtMs <= nowMs && now.untilMs === Number.POSITIVE_INFINITY) {
      this.#drop(origin, key);
      return undefined;
    }
    const paced = known ?? new PacedKey();
    const isOver =
      nowMs >= paced.untilMs || (asked !== undefined && isFile(asked.file, file) && asked.gapMs !== now.gapMs);
    this.#keys.set(key, paced);
    paced.origins.set(origin, now);
    paced.usedMs = nowMs;
    this.#noteKey(origin, key);
    if (isOver) this.#renew(paced, key, nowMs);
    this.#apply(paced, url, nowMs);
    return paced;
  }

  /**
   * Applies the file like `set`, and counts a start that the limiter has granted. `renewal` is that of the pace it waited by.
   *
   * False when the hours have begun or ended meanwhile, and the start was granted by no pace or by the one before and is too early for that
   * of now. It is not counted then; it may wait again.
   */
  start(origin: string, url: string, file: RobotsFile, { renewal, startedMs }: RobotsStart): boolean {
    const paced = this.set(origin, url, file);
    if (paced === undefined) return true;
    const gapMs = (paced.slowdown?.gapUs ?? 0) / 1000;
    const isByOld = paced.renewal !== renewal && startedMs <= paced.renewedMs;
    if (isByOld && startedMs < paced.startedMs + gapMs) return false;
    paced.startedMs = Math.max(paced.startedMs, startedMs);
    return true;
  }

  /** The origin has another file: it holds wherever the one before did. */
  replace(origin: string, file: RobotsFile): void {
    for (const key of Array.from(this.#keysOf.get(origin) ?? [])) {
      const url = this.#keys.get(key)?.origins.get(origin)?.url;
      if (url !== undefined) this.set(origin, url, file);
    }
  }

  /** The origin asks for nothing any more. `isOwed`: the gap after the last start is kept all the same. */
  forget(origin: string, isOwed = false): void {
    for (const key of Array.from(this.#keysOf.get(origin) ?? [])) this.#drop(origin, key, isOwed);
  }

  /** Nothing of any robots.txt counts any more. */
  clear(): void {
    for (const origin of Array.from(this.#keysOf.keys())) this.forget(origin);
  }

  #read(origin: string, key: string, url: string, file: RobotsFile): Asked {
    const { clock } = this.pacer;
    const { robots, userAgent, maxGapMs } = file;
    const pace = { crawlDelaySec: robots.crawlDelaySec(userAgent), requestRate: robots.requestRate(userAgent) };
    const wallMs = clock.wall();
    const shutMs = msUntilOpen(robots.visitTime(userAgent), wallMs);
    // While it is shut nobody starts, so that the pace to come counts.
    const askedMs = robotsGapMs(pace, wallMs + shutMs);
    const gapMs = Math.min(askedMs, maxGapMs);
    if (askedMs > gapMs) this.#tellOfCap(origin, key, askedMs, maxGapMs);
    const nowMs = clock.now();
    return {
      url,
      file,
      gapMs,
      openAtMs: shutMs === 0 ? Number.NEGATIVE_INFINITY : nowMs + shutMs,
      untilMs: nowMs + shutMs + msUntilGapChanges(pace, wallMs + shutMs),
    };
  }

  /** Reads anew what the others at a key ask, where the time of that is over as well. */
  #renew(paced: PacedKey, key: string, nowMs: number): void {
    for (const [origin, { url, file, untilMs }] of paced.origins) {
      if (untilMs > nowMs) continue;
      paced.origins.set(origin, this.#read(origin, key, url, file));
    }
    this.#renewals += 1;
    paced.renewal = this.#renewals;
    paced.renewedMs = nowMs;
  }

  /** Makes the slower one of all that origins ask of a key its slowdown. */
  #apply(paced: PacedKey, url: string, nowMs: number): void {
    const asked = [...paced.origins.values()];
    const slowest = asked.reduce((slow, each) => (each.gapMs > slow.gapMs ? each : slow));
    const openAtMs = Math.max(...asked.map((each) => each.openAtMs));
    paced.untilMs = Math.max(openAtMs, Math.min(...asked.map((each) => each.untilMs)));
    const pastUs = Math.floor(nowMs * 1000);
    // The limiter takes a slowdown of the same gap and hold for the one it has. What differs in anything else has another instant of the past.
    const freeUs = paced.slowdown?.holdUntilUs === pastUs ? pastUs - 1 : pastUs;
    const isFree = slowest.gapMs === 0 && openAtMs <= nowMs;
    paced.slowdown = isFree
      ? undefined
      : {
          gapUs: Math.ceil(slowest.gapMs * 1000),
          holdUntilUs: openAtMs > nowMs ? Math.ceil(openAtMs * 1000) : freeUs,
          untilUs: Math.ceil(paced.untilMs * 1000),
          because: this.#because(slowest, nowMs),
        };
    this.pacer.slowByRobots(url, paced.slowdown);
  }

  #noteKey(origin: string, key: string): void {
    const keys = this.#keysOf.get(origin) ?? new Set();
    keys.delete(key);
    this.#keysOf.set(origin, keys.add(key));
    const [longest] = keys.size > MAX_KEYS_PER_ORIGIN ? keys : [];
    if (longest !== undefined) this.#drop(origin, longest, true);
  }

  /** The origin asks nothing of the key any more. `isOwed`: the gap after the last start there is kept. */
  #drop(origin: string, key: string, isOwed = false): void {
    const keys = this.#keysOf.get(origin);
    keys?.delete(key);
    if (keys?.size === 0) this.#keysOf.delete(origin);
    const paced = this.#keys.get(key);
    const asked = paced?.origins.get(origin);
    if (paced === undefined || asked === undefined) return;
    const nowMs = this.pacer.clock.now();
    paced.origins.delete(origin);
    if (paced.origins.size > 0) {
      this.#apply(paced, asked.url, nowMs);
      return;
    }
    this.#keys.delete(key);
    const owedUs = Math.ceil((paced.usedMs + asked.gapMs) * 1000);
    const rest = { gapUs: 0, holdUntilUs: owedUs, untilUs: owedUs, because: this.#because(asked, nowMs) };
    this.pacer.slowByRobots(asked.url, isOwed && owedUs > nowMs * 1000 && asked.gapMs > 0 ? rest : undefined);
  }

  /** The line that makes it wait, for people. */
  #because({ file, openAtMs }: Asked, nowMs: number): string {
    const { robots, userAgent } = file;
    const wallMs = this.pacer.clock.wall();
    const crawlDelaySec = robots.crawlDelaySec(userAgent);
    const delayMs = robotsGapMs({ crawlDelaySec, requestRate: null }, wallMs);
    const isDelay = delayMs === robotsGapMs({ crawlDelaySec, requestRate: robots.requestRate(userAgent) }, wallMs);
    const field = openAtMs > nowMs ? "visitTime" : isDelay ? "crawlDelaySec" : "requestRate";
    const line = robots.pacingRule(userAgent, field);
    return line === null ? "so" : `"${line.text}" in line ${line.line}`;
  }

  #tellOfCap(origin: string, key: string, askedMs: number, maxGapMs: number): void {
    if (this.#capped.has(origin) || this.#capped.size >= 10_000) return;
    this.#capped.add(origin);
    const message = `robots.txt of ${origin} asks for ${askedMs / 1000} s between requests; ${maxGapMs / 1000} s are kept (maxCrawlDelay)`;
    this.pacer.tell({ type: "warn", key, message });
  }
}

function isFile(a: RobotsFile, b: RobotsFile): boolean {
  return a.robots === b.robots && a.userAgent === b.userAgent && a.maxGapMs === b.maxGapMs;
}

/** Whether an origin asks for what it asked for before. The instants may differ by what two clocks do. */
function isSame(before: Asked, now: Asked, nowMs: number): boolean {
  const isShut = now.openAtMs > nowMs;
  const isShutAlike = isShut ? before.openAtMs > nowMs : before.openAtMs === Number.NEGATIVE_INFINITY;
  return isShutAlike && isFile(before.file, now.file) && before.gapMs === now.gapMs;
}
