import { inSnakeCase } from "../../engine/stats.js";
import type { Cause, FleetStats, Stats, WindowStats } from "../../observe/types.js";
import type { LookAtKey, SharedRule } from "../../shared/operation.js";
import { windowsOf } from "../../shared/windowLog.js";
import type { Demand } from "../demand.js";
import type { Engine } from "../engine.js";
import { describeCause, keyName } from "../forecast.js";
import type { Plan } from "./plan.js";
import { pauseEndUs, readStop } from "./stopWords.js";

/** How the keys of a target stand in a store. */
export interface Seen {
  readonly demand: Demand;
  readonly plan: Plan;
  readonly keys: readonly LookAtKey[];
  /** The limits that were looked at, for each key: those of the policy, or this process's parts of them. */
  readonly rules: readonly SharedRule[];
  /** The store's time. */
  readonly nowUs: number;
  /** The store's name when what stands in for it was looked at. */
  readonly awayFrom: string | undefined;
}

/** Everything that stands in the way in the store, as causes people read: with whose limit it is, where another process's binds. */
export function causesSeen(engine: Engine, { demand, plan, keys, nowUs, awayFrom }: Seen): Cause[] {
  const { slowdowns } = engine.ledger;
  return keys.flatMap(({ stops }, index) => {
    const { rule } = plan.keys[index];
    return stops.map(({ kind, readyUs, because }) => {
      const atUs = kind === "pause" ? pauseEndUs({ readyUs, because: String(readyUs) }) : readyUs;
      const told = readStop({ kind, atUs, because }, { rule, slot: demand.slots[index], slowdowns, awayFrom, nowUs });
      return describeCause(told, {
        scope: demand.scopeNames[index],
        key: keyName(demand, index),
        rule,
        because: told.because === "" ? undefined : told.because,
        words: told.words,
        nowUs,
      });
    });
  });
}

/** One list of what this process knows, the longest first, and what the store does: where both know the same cause, the one that lasts longer. The most binding first. */
export function mergeCauses(own: readonly Cause[], seen: readonly Cause[]): Cause[] {
  const isSame = (one: Cause, other: Cause): boolean => one.limit === other.limit && one.scope === other.scope;
  const isLonger = (one: Cause, others: readonly Cause[]): boolean =>
    others.every((other) => !isSame(one, other) || one.waitMs > other.waitMs);
  const isFirst = (cause: Cause, index: number): boolean => own.findIndex((other) => isSame(cause, other)) === index;
  const mine = own.filter((cause, index) => isFirst(cause, index) && isLonger(cause, seen));
  const theirs = seen.filter((cause) => mine.every((other) => !isSame(cause, other)));
  return [...mine, ...theirs].sort((a, b) => b.waitMs - a.waitMs);
}

/** What the store counts for everybody at the host: cooldown, windows, and the bucket. */
interface Limits {
  readonly cooldownMs: number;
  readonly windows: readonly WindowStats[];
  readonly window?: WindowStats;
  readonly tokens?: number;
}

/** This process's statistics, with bucket, windows and cooldown as the store knows them. */
export function statsSeen(own: Stats, seen: Seen): Stats {
  return Object.assign(Object.create(Object.getPrototypeOf(own) as object) as Stats, own, limitsSeen(seen));
}

/** What the store knows of a host, of all processes together; undefined when it knows nothing of it. */
export function fleetStats(engine: Engine, seen: Seen): FleetStats | undefined {
  const { starts, throttled, held, waiting, lastUs, cooldownUs } = seen.keys[0];
  const isKnown = starts > 0 || throttled > 0 || held > 0 || waiting > 0 || cooldownUs > 0 || lastUs >= 0;
  return isKnown ? fleetStatsNow(engine, seen) : undefined;
}

/** The same, zeros when it knows nothing. */
export function fleetStatsNow({ clock }: Engine, seen: Seen): FleetStats {
  const { starts, throttled, held, waiting, lastUs } = seen.keys[0];
  const { shared } = seen.plan.keys[0];
  const isFollowed = shared.concurrency > 0 || shared.fromAnswer || held > 0;
  return new FleetSnapshot({
    host: seen.demand.key,
    totalRequests: starts,
    throttledRequests: throttled,
    ...(lastUs < 0 ? {} : { lastRequestAt: new Date(clock.wall() - Math.max(0, seen.nowUs - lastUs) / 1000) }),
    ...(isFollowed ? { inFlight: held } : {}),
    waiting,
    ...limitsSeen(seen),
  });
}

function limitsSeen({ keys: [host], rules: [rule], nowUs }: Seen): Limits {
  const windows = windowsOf(rule.windows).map(({ count, perUs }, index): WindowStats => {
    const calls = host.windows[2 * index];
    const nextFreeMs = Math.max(0, host.windows[2 * index + 1] - nowUs) / 1000;
    return { calls, remaining: Math.max(0, count - calls), periodMs: perUs / 1000, nextFreeMs };
  });
  return {
    cooldownMs: host.cooldownUs / 1000,
    windows,
    ...(windows.length === 0 ? {} : { window: windows[0] }),
    ...(rule.rateCount === 0 ? {} : { tokens: Math.max(0, rule.burst - host.owed / rule.ratePerUs) }),
  };
}

type FleetFields = Omit<FleetStats, "toJSON">;

/** A fleet's statistics as they were when asked for. */
class FleetSnapshot implements FleetStats {
  declare readonly host: string;
  declare readonly totalRequests: number;
  declare readonly throttledRequests: number;
  declare readonly lastRequestAt?: Date;
  declare readonly inFlight?: number;
  declare readonly waiting: number;
  declare readonly cooldownMs: number;
  declare readonly tokens?: number;
  declare readonly window?: WindowStats;
  declare readonly windows: readonly WindowStats[];

  constructor(fields: FleetFields) {
    Object.assign(this, fields);
  }

  toJSON(): Record<string, unknown> {
    return {
      domain: this.host,
      total_requests: this.totalRequests,
      throttled_requests: this.throttledRequests,
      last_request_time: this.lastRequestAt?.toISOString() ?? null,
      ...(this.inFlight === undefined ? {} : { in_flight: this.inFlight }),
      waiting: this.waiting,
      cooldown_ms: this.cooldownMs,
      tokens: this.tokens ?? null,
      windows: this.windows.map(inSnakeCase),
    };
  }
}
