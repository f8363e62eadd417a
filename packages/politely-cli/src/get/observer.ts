import type { PolicyInput } from "politely";
import type { IndexLine } from "./indexLine.js";

/**
 * Hears how a run goes. Every method returns at once and never throws; all of them run between the requests, so they must be quick.
 *
 * The order is `listed` for each host the list names (at most the first 10,000), `begin`, then the others in any order, and `end` last.
 * When a run fails before its first request, `begin` may be missing.
 */
export interface GetObserver {
  /** `count` URLs of the list are under `key`, those that are finished already included. */
  listed(key: string, count: number): void;
  /** Requests may start from now on. `progress` stays valid until `end`, and is asked whenever the picture is drawn. */
  begin(progress: GetProgress): void;
  /** A request for `url` starts: the first one, a repetition, or where a redirect leads. It waited `waitedMs` for that. */
  started(key: string, url: string, waitedMs: number): void;
  /** A URL is finished for this run, and stands in the index. */
  finished(result: IndexLine): void;
  /** `key` is to be left alone until `untilMs` of `performance.now()`. */
  cooling(key: string, untilMs: number, because: string): void;
  /** Something a person should read, in one line. */
  log(line: string): void;
  /** The run is over, one way or another. */
  end(summary: GetSummary): void;
}

/** How far a run is. Numbers are of this moment; reading them costs little. */
export interface GetProgress {
  /** URLs of the list, duplicates left out. With `--share`: of all machines together, as last heard. */
  readonly total: number;
  /** Those that need no further request: fetched, or failed. Includes those of earlier runs. */
  readonly done: number;
  /** Of `done`, those that were not fetched. */
  readonly failed: number;
  /** Requests under way in this process. */
  readonly inFlight: number;
  /** Bytes of bodies written by this run. */
  readonly bytes: number;
  /** When the first request could start, in milliseconds of `performance.now()`. */
  readonly beganAtMs: number;
  /** Starts of this run up to now, repetitions and redirects included. */
  readonly starts: number;
  /** The policy in force, with what the command line adds to it. */
  readonly policy: PolicyInput;
  /** Requests that may be in flight at once, over all hosts. Undefined with `--share`: nobody knows how many machines there are. */
  readonly concurrency: number | undefined;
  /** The first Ctrl-C came: nothing new starts. */
  readonly isStopping: boolean;
  /** Hosts with something left, at most 20,000, in no particular order. A host that has none left goes after a few seconds. */
  hosts(): readonly HostProgress[];
  /**
   * What stops each of these hosts now. It answers with what was known last, and asks the limiter again when that is older than 200 ms,
   * or a second for a host that waits for longer: so call it for the hosts that are shown, at most 50 of them, and again for each picture.
   */
  waits(keys: readonly string[]): ReadonlyMap<string, HostWait>;
  /** URLs left by host, for the planner; at most 20,000 hosts. Asked again every few seconds at most. */
  left(): ReadonlyMap<string, number>;
}

/** One host of a run. */
export interface HostProgress {
  readonly key: string;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  /** Requests under way. */
  readonly inFlight: number;
  /** Starts in the last five seconds, divided by five; by the time since the first where that is less. */
  readonly startsPerSec: number;
  /** The limits in words: `"2/s, concurrency 4"`; `"no limit"`. */
  readonly limit: string;
}

/** What a host waits for. */
export interface HostWait {
  /** Time until its next start at the earliest; 0 when nothing stops it. */
  readonly nextStartMs: number;
  /** Why, as a sentence; absent when nothing stops it. */
  readonly reason?: string;
  /** How long it is still to be left alone; 0 when it is not. */
  readonly cooldownMs: number;
  /** What was answered to cause that: `"429, Retry-After 30 s"`. */
  readonly because?: string;
}

/** How a run ended. `hosts` has at most 20,000 entries, those with the most requests. */
export interface GetSummary {
  readonly type: "summary";
  readonly total: number;
  /** Fetched, in this run or before: the file is there. */
  readonly fetched: number;
  /** Of those, answered with "not modified" in this run. */
  readonly unchanged: number;
  /** Finished without a page, for good or until the next run. */
  readonly failed: number;
  /** Not asked, or not to the end. */
  readonly left: number;
  /** Finished when the run began, and therefore not asked for in it. With `--share`: by whomever. */
  readonly finishedBefore: number;
  /** Requests of this run. */
  readonly requests: number;
  readonly bytes: number;
  /** From the first possible start to the end. */
  readonly tookMs: number;
  /** The first Ctrl-C, or something that went wrong, ended it early. */
  readonly isStopped: boolean;
  readonly hosts: readonly HostSummary[];
}

/** One host of a finished run, counts of this run only. */
export interface HostSummary {
  readonly key: string;
  readonly requests: number;
  /** Answers that said "too many requests". */
  readonly throttled: number;
  readonly failed: number;
  /** Waits of all its requests together. */
  readonly waitedMs: number;
  /** Starts divided by the time from the first to the last; 0 before the second. */
  readonly perSec: number;
  /** What its limits allow in the long run; absent where only concurrency or nothing limits it. */
  readonly limitPerSec?: number;
  /** The limits in words. */
  readonly limit: string;
}

/** An observer that looks away. */
export const silentObserver: GetObserver = {
  listed: () => undefined,
  begin: () => undefined,
  started: () => undefined,
  finished: () => undefined,
  cooling: () => undefined,
  log: () => undefined,
  end: () => undefined,
};
