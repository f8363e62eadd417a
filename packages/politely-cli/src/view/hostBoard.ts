import type { HostProgress, HostWait } from "../get/observer.js";
import type { HostPace } from "./eta.js";
import type { LiveHost } from "./liveLines.js";
import { Pace } from "./pace.js";

/** What a run says about its hosts. */
export interface BoardSource {
  hosts(): readonly HostProgress[];
  waits(keys: readonly string[]): ReadonlyMap<string, HostWait>;
}

/** So many hosts at most are known by their starts. */
const MAX_KNOWN = 20_000;
/** The order stays for so long, or nobody could read it. */
const ORDER_MS = 2_000;
/** So often hosts are counted again, and with many of them so often. */
const COUNT_MS = 200;
const COUNT_MANY_MS = 1_000;
const MANY = 2_000;
/** A host without a start now is taken to do one in so many seconds. */
const IDLE_SEC = 20;

interface Known {
  starts: number;
  coolUntilMs: number;
  /** Of a host that was ever shown. */
  pace: Pace | undefined;
}

/**
 * Chooses which hosts are shown, and in which order: those at work before those not begun, and of these the one that needs longest
 * for what it has left first.
 *
 * The order is made anew every two seconds, so that lines do not jump.
 */
export class HostBoard {
  readonly #known = new Map<string, Known>();
  #hosts: readonly HostProgress[] = [];
  #countedAtMs = Number.NEGATIVE_INFINITY;
  #orderedAtMs = Number.NEGATIVE_INFINITY;
  #order: readonly string[] = [];
  #hasFreeLine = true;

  started(key: string): void {
    const known = this.#knownOf(key);
    if (known !== undefined) known.starts += 1;
  }

  cooling(key: string, untilMs: number): void {
    const known = this.#knownOf(key);
    if (known !== undefined) known.coolUntilMs = Math.max(known.coolUntilMs, untilMs);
  }

  /** Until when hosts are left alone, those only that still are. */
  *coolingHosts(nowMs: number): Iterable<readonly [key: string, untilMs: number]> {
    for (const [key, { coolUntilMs }] of this.#known) if (coolUntilMs > nowMs) yield [key, coolUntilMs];
  }

  /** The hosts to show, at most `count` of them, and how many with something left are not among them. */
  show(
    source: BoardSource,
    count: number,
    nowMs: number,
  ): { readonly hosts: readonly LiveHost[]; readonly more: number } {
    this.#count(source, count, nowMs);
    const wanted = new Set(this.#order);
    const found = new Map<string, HostProgress>();
    let unfinished = 0;
    for (const host of this.#hosts) {
      if (host.done < host.total) unfinished += 1;
      if (wanted.has(host.key)) found.set(host.key, host);
    }
    const shown = this.#order.slice(0, count).flatMap((key) => found.get(key) ?? []);
    const shownUnfinished = shown.filter(({ done, total }) => done < total).length;
    this.#hasFreeLine = shown.length < count && unfinished > shownUnfinished;
    for (const { key, done } of shown) this.#look(key, done, nowMs);
    const waits = source.waits(shown.map(({ key }) => key));
    return {
      hosts: shown.map((host): LiveHost => ({ ...host, wait: waits.get(host.key) })),
      more: unfinished - shownUnfinished,
    };
  }

  /** The hosts that `show` returned last, as the run has known them. */
  *paces(hosts: readonly LiveHost[], nowMs: number): Iterable<HostPace> {
    for (const { key, total, done, wait } of hosts) {
      if (done >= total) continue;
      const msEach = this.#known.get(key)?.pace?.msEach(nowMs);
      yield { key, left: total - done, msEach, nextStartMs: wait?.nextStartMs ?? 0 };
    }
  }

  #look(key: string, done: number, nowMs: number): void {
    const known = this.#knownOf(key);
    if (known === undefined) return;
    known.pace ??= new Pace();
    known.pace.look(nowMs, done);
  }

  #count(source: BoardSource, count: number, nowMs: number): void {
    if (nowMs - this.#countedAtMs < (this.#hosts.length > MANY ? COUNT_MANY_MS : COUNT_MS)) return;
    this.#countedAtMs = nowMs;
    this.#hosts = source.hosts();
    // A line that is free, and somebody could have, is given away at once.
    if (this.#hasFreeLine || nowMs - this.#orderedAtMs >= ORDER_MS) this.#reorder(count, nowMs);
  }

  /** Keeps the first `count` in one pass: there may be thousands of hosts, and few lines. */
  #reorder(count: number, nowMs: number): void {
    this.#orderedAtMs = nowMs;
    const best: { readonly key: string; readonly seconds: number }[] = [];
    for (const host of this.#hosts) {
      if (host.done >= host.total) continue;
      const seconds = this.#secondsLeft(host, nowMs);
      const place = best.findIndex(
        (each) => seconds > each.seconds || (seconds === each.seconds && host.key < each.key),
      );
      if (place === -1) {
        if (best.length < count) best.push({ key: host.key, seconds });
        continue;
      }
      best.splice(place, 0, { key: host.key, seconds });
      if (best.length > count) best.pop();
    }
    this.#order = best.map(({ key }) => key);
  }

  /** How long it needs for the rest at the speed it has; below 0 for one that is not at work, the nearer to 0 the more it has left. */
  #secondsLeft({ key, total, done, inFlight, startsPerSec }: HostProgress, nowMs: number): number {
    const known = this.#known.get(key);
    const coolSec = Math.max(0, (known?.coolUntilMs ?? 0) - nowMs) / 1_000;
    const isAtWork = inFlight > 0 || startsPerSec > 0 || (known?.starts ?? 0) > 0 || coolSec > 0;
    const left = total - done;
    return isAtWork ? coolSec + left / Math.max(startsPerSec, 1 / IDLE_SEC) : -1 / left;
  }

  #knownOf(key: string): Known | undefined {
    let known = this.#known.get(key);
    if (known === undefined && this.#known.size < MAX_KNOWN) {
      known = { starts: 0, coolUntilMs: Number.NEGATIVE_INFINITY, pace: undefined };
      this.#known.set(key, known);
    }
    return known;
  }
}
