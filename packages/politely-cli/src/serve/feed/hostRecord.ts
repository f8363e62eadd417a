import type { Explanation, LimiterEvent, Stats } from "politely";
import type { Pace } from "./paces.js";
import type { HostRow, HostState } from "./row.js";
import { Seconds } from "./seconds.js";

/** What a row is made by: this moment on both clocks, and what holds every host. */
export interface Moment {
  /** The limiter's monotonic clock. */
  readonly nowMs: number;
  /** The same moment in milliseconds since 1970. */
  readonly wallMs: number;
  /** Until when everything is paused, on the limiter's clock. */
  readonly allPausedUntilMs: number;
}

/** A next start that differs by less is the same one. */
const SAME_START_MS = 50;
/** A host flows for so long after its last start. */
const FLOWING_MS = 10_000;
/** A store tells of the cooldown of a release within this time. */
const TELLING_MS = 5_000;
const NEVER = Number.NEGATIVE_INFINITY;

/** What is known of one host. Instants are of the limiter's clock. */
export class HostRecord {
  readonly seconds = new Seconds();
  pace: Pace | undefined;
  state: HostState = "idle";
  waiting = 0;
  inFlight = 0;
  total = 0;
  throttled = 0;
  lastAtMs = NEVER;
  pausedUntilMs = NEVER;
  coolingUntilMs = NEVER;
  /** When it was last put at the end of the line of those to be forgotten. */
  touchedSec = NEVER;
  /** The half second at which it is looked at again without an event; NEVER when it is not. */
  dueTurn = NEVER;
  #nextAtMs: number | undefined;
  #reason: string | undefined;
  #countedThrottleAtMs = NEVER;
  /** Releases that said "too many requests", and whose cooldowns are still to be told. */
  #untoldCooldowns = 0;
  #row: HostRow | undefined;
  #rowAtMs = NEVER;

  constructor(readonly domain: string) {}

  waits({ reason, ahead, atMs, waitMs }: LimiterEvent & { type: "wait" }): void {
    this.#reason = reason;
    if (ahead === 0) this.#nextAtMs = atMs + waitMs;
  }

  started(atMs: number): void {
    this.seconds.started(atMs);
    this.lastAtMs = Math.max(this.lastAtMs, atMs);
    // Who is next is known once the limiter was asked again.
    this.#nextAtMs = undefined;
  }

  /**
   * Counts an answer "too many requests" once, though a release and the cooldown it begins both tell of it: in memory the cooldown first and in the same instant,
   * with a store a little later. Returns whether it counted.
   */
  wasThrottled({ type, atMs }: LimiterEvent): boolean {
    if (this.#countedThrottleAtMs === atMs) return false;
    if (atMs - this.#countedThrottleAtMs > TELLING_MS) this.#untoldCooldowns = 0;
    if (type === "cooldown" && this.#untoldCooldowns > 0) {
      this.#untoldCooldowns -= 1;
      return false;
    }
    if (type === "release") this.#untoldCooldowns += 1;
    this.#countedThrottleAtMs = atMs;
    this.seconds.throttled(atMs);
    return true;
  }

  /** Takes over the limiter's own counts. Without any, those known stay: the limiter has folded the host away. */
  counted(stats: Stats | undefined): void {
    if (stats === undefined) return;
    this.waiting = stats.waiting;
    this.inFlight = stats.inFlight;
    this.total = stats.totalRequests;
    this.throttled = stats.throttledRequests;
    if (stats.waiting > 0) return;
    this.#nextAtMs = undefined;
    this.#reason = undefined;
  }

  /** Takes over what holds the next request, and for how long. A pause or cooldown that another process began is learned from here. */
  explained({ causes }: Explanation, headMs: number, nowMs: number): void {
    this.#nextAtMs = nowMs + headMs;
    this.#reason = causes[0]?.message;
    for (const { limit, scope, waitMs: heldMs } of causes) {
      if (scope !== "host") continue;
      if (limit === "cooldown") this.coolingUntilMs = Math.max(this.coolingUntilMs, nowMs + heldMs);
      if (limit === "pause") this.pausedUntilMs = Math.max(this.pausedUntilMs, nowMs + heldMs);
    }
  }

  /** Makes the row anew. Returns whether it says something else than before; time that went by is nothing else. */
  remake(moment: Moment): boolean {
    const before = this.#row;
    const sinceMs = moment.nowMs - this.#rowAtMs;
    this.#row = this.#make(moment);
    this.#rowAtMs = moment.nowMs;
    this.state = this.#row.state;
    return before === undefined || !isSame(before, this.#row, sinceMs);
  }

  /** The row as it is at this moment. What `remake` compares with stays: who asks here is one of several readers. */
  row(moment: Moment): HostRow {
    return this.#row !== undefined && this.#rowAtMs === moment.nowMs ? this.#row : this.#make(moment);
  }

  /** When the row changes by time alone, at the latest; Infinity when it does not. */
  changesAtMs({ nowMs, allPausedUntilMs }: Moment): number {
    const instants = [this.pausedUntilMs, this.coolingUntilMs, allPausedUntilMs, this.lastAtMs + FLOWING_MS];
    const ends = instants.filter((endMs) => endMs > nowMs);
    // Its rate changes while nothing starts, and a look every two seconds shows that well enough.
    if ((this.#row?.perSecond ?? 0) > 0 || nowMs - this.lastAtMs < 2_000) ends.push(nowMs + 2_000);
    return Math.min(...ends);
  }

  #make(moment: Moment): HostRow {
    const { nowMs, wallMs } = moment;
    const perSecond = this.seconds.perSecond(nowMs);
    const state = this.#stateAt(moment);
    const heldUntilMs =
      state === "cooling" ? this.coolingUntilMs : Math.max(this.pausedUntilMs, moment.allPausedUntilMs);
    const hasEnd = (state === "cooling" || state === "paused") && heldUntilMs < Number.MAX_SAFE_INTEGER / 1_000;
    const next = this.waiting > 0 ? this.#nextAtMs : undefined;
    return {
      domain: this.domain,
      state,
      waiting: this.waiting,
      inFlight: this.inFlight,
      total: this.total,
      throttled: this.throttled,
      perSecond: Math.round(perSecond * 100) / 100,
      allowedPerSecond: this.pace?.perSecond ?? null,
      nextStartMs: next === undefined || !Number.isFinite(next) ? null : Math.max(0, Math.round(next - nowMs)),
      reason: this.waiting > 0 ? (this.#reason ?? null) : null,
      until: hasEnd ? Math.round(wallMs + heldUntilMs - nowMs) : null,
      lastAt: this.lastAtMs === NEVER ? null : Math.round(wallMs + this.lastAtMs - nowMs),
      limits: this.pace?.words ?? "",
    };
  }

  #stateAt({ nowMs, allPausedUntilMs }: Moment): HostState {
    if (Math.max(this.pausedUntilMs, allPausedUntilMs) > nowMs) return "paused";
    if (this.coolingUntilMs > nowMs) return "cooling";
    if (this.waiting > 0) return "waiting";
    return nowMs - this.lastAtMs < FLOWING_MS || this.inFlight > 0 ? "flowing" : "idle";
  }
}

function isSame(before: HostRow, after: HostRow, sinceMs: number): boolean {
  const stays =
    before.state === after.state &&
    before.waiting === after.waiting &&
    before.inFlight === after.inFlight &&
    before.total === after.total &&
    before.throttled === after.throttled &&
    before.perSecond === after.perSecond &&
    before.allowedPerSecond === after.allowedPerSecond &&
    before.reason === after.reason &&
    before.limits === after.limits;
  return (
    stays && isNear(before.until, after.until) && isNear(leftAfter(before.nextStartMs, sinceMs), after.nextStartMs)
  );
}

function leftAfter(nextStartMs: number | null, sinceMs: number): number | null {
  return nextStartMs === null ? null : Math.max(0, nextStartMs - sinceMs);
}

function isNear(a: number | null, b: number | null): boolean {
  return a === null || b === null ? a === b : Math.abs(a - b) < SAME_START_MS;
}
