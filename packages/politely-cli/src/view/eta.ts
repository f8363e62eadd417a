import type { PolicyInput } from "politely";
import type { PlanOptions } from "../plan/plan.js";
import { planSteps } from "../plan/planRun.js";
import { Pace } from "./pace.js";

/** What an estimate needs to know of a run. */
export interface EtaProgress {
  readonly total: number;
  readonly done: number;
  readonly policy: PolicyInput;
  /** Requests that may be in flight at once, over all hosts. Default: as many as the policy allows. */
  readonly concurrency?: number | undefined;
  left(): ReadonlyMap<string, number>;
}

/** A host as the run has known it so far. */
export interface HostPace {
  readonly key: string;
  /** URLs without an end yet. */
  readonly left: number;
  /** Time for each of those that ended lately; absent while there are too few. */
  readonly msEach?: number | undefined;
  /** Time until its next start at the earliest. Default 0. */
  readonly nextStartMs?: number;
}

/** The part of a plan that is used. */
interface Planned {
  readonly hosts: readonly PlannedHost[];
}

interface PlannedHost {
  readonly key: string;
  readonly requests: number;
  readonly endsAtMs: number;
  readonly binds?: { readonly scope: "host" | "global" } | undefined;
}

/** Plans a run in small steps. */
export type PlanInSteps = (
  counts: ReadonlyMap<string, number>,
  policy: PolicyInput,
  options: PlanOptions,
) => Generator<unknown, Planned>;

/** How much of the time may go into planning: one part in fifty. */
const TIMES_REST = 50;
const LEAST_REST_MS = 5_000;
const SLICE_MS = 5;
/** Beyond so many requests a plan is made for a part of them, and stretched. */
const MOST_PLANNED = 100_000;
/** Beyond so many hosts a plan is made for those with the most left: to look them all up would take longer than a slice. */
const MOST_HOSTS = 1_000;
const MOST_LATENCY_MS = 600_000;
const USUAL_LATENCY_MS = 200;
/** In the average of how long answers take. */
const NEWEST_WEIGHT = 0.1;
/** A plan that took answers for this much slower or faster than they are is made again soon. */
const FAR_OFF = 1.15;
const FAR_OFF_MS = 10;
const SHORT_REST_MS = 1_000;

/**
 * Says when a run will be over: what the planner says about the URLs that are left, which is made anew every five seconds at most, in
 * slices of 5 ms between the requests.
 *
 * The planner knows the policy, how many requests may be in flight, and how long answers took. It knows nothing of cooldowns, robots.txt or
 * what a host owes already. So the end is never before a host that is left alone or has to wait could be done, nor before the hosts on
 * show, and the run as a whole, are done at the pace they had lately.
 */
export class Eta {
  readonly #plan: PlanInSteps;
  readonly #nowMs: () => number;
  #steps: Generator<unknown, Planned> | undefined;
  #counts: ReadonlyMap<string, number> = new Map();
  #begunAtMs = 0;
  #spentMs = 0;
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #soonestAtMs = Number.NEGATIVE_INFINITY;
  #latencyMs: number | undefined;
  #tookCount = 0;
  #plannedLatencyMs = 0;
  readonly #pace = new Pace();
  #endsAtMs: number | undefined;
  #hostEnds: ReadonlyMap<string, number> = new Map();
  #plannedCounts: ReadonlyMap<string, number> = new Map();
  /** Hosts that wait for a budget of all hosts most. */
  #sharers: ReadonlySet<string> = new Set();
  #leftCount = 0;
  #concurrency: number | undefined;
  #plannedAtMs = 0;

  constructor(nowMs: () => number, plan: PlanInSteps = planSteps) {
    this.#nowMs = nowMs;
    this.#plan = plan;
  }

  /** A request took so long from its start to its last byte. */
  took(tookMs: number): void {
    if (!(tookMs >= 0)) return;
    this.#tookCount += 1;
    // The first one counts no more than the others: it had to connect.
    const weight = Math.max(1 / this.#tookCount, NEWEST_WEIGHT);
    this.#latencyMs = (this.#latencyMs ?? 0) * (1 - weight) + tookMs * weight;
  }

  /** Plans on for at most a slice. To be called a few times a second. */
  work(progress: EtaProgress): void {
    const beginMs = this.#nowMs();
    this.#pace.look(beginMs, progress.done);
    if (this.#steps === undefined) {
      const isTime = beginMs >= (this.#isFarOff() ? this.#soonestAtMs : this.#nextAtMs);
      if (!isTime || progress.done >= progress.total) return;
      this.#begin(progress, beginMs);
    }
    try {
      this.#workUntil(beginMs + SLICE_MS);
    } catch {
      // A policy that the planner cannot follow has no plan; the pace still tells something.
      this.#rest();
    }
    this.#spentMs += this.#nowMs() - beginMs;
  }

  /** Time until the end; undefined while nothing is known. `paces` are the hosts on show, `cooling` until when hosts are left alone. */
  leftMs(
    progress: Pick<EtaProgress, "total" | "done">,
    paces: Iterable<HostPace>,
    cooling: Iterable<readonly [key: string, untilMs: number]>,
  ): number | undefined {
    const nowMs = this.#nowMs();
    const ends = this.#endsAtMs === undefined ? [] : [this.#endsAtMs];
    for (const [key, untilMs] of cooling) if (untilMs > nowMs) ends.push(untilMs + this.#plannedMs(key));
    for (const { key, left, msEach, nextStartMs = 0 } of paces) {
      // A host that waits for what all share is faster once others are done; the pace of the whole run tells more.
      if (msEach !== undefined && !this.#sharers.has(key)) ends.push(nowMs + msEach * left);
      if (nextStartMs > 0) ends.push(nowMs + nextStartMs + this.#plannedMs(key, left));
    }
    const msEach = this.#pace.msEach(nowMs);
    if (msEach !== undefined) ends.push(nowMs + msEach * (progress.total - progress.done));
    if (ends.length === 0) return undefined;
    return Math.max(0, Math.max(...ends) - nowMs);
  }

  /** How long a host needs for what it had left when the plan was made, or for `left` of that. */
  #plannedMs(key: string, left?: number): number {
    const ms = Math.max(0, (this.#hostEnds.get(key) ?? 0) - this.#plannedAtMs);
    const planned = this.#plannedCounts.get(key) ?? 0;
    return left === undefined || planned === 0 ? ms : ms * Math.min(1, left / planned);
  }

  #begin(progress: EtaProgress, nowMs: number): void {
    this.#counts = progress.left();
    this.#leftCount = progress.total - progress.done;
    this.#concurrency = progress.concurrency;
    this.#begunAtMs = nowMs;
    this.#spentMs = 0;
    this.#plannedLatencyMs = Math.min(MOST_LATENCY_MS, this.#latencyMs ?? USUAL_LATENCY_MS);
    this.#steps = this.#plan(thinned(this.#counts), progress.policy, {
      latency: Math.round(this.#plannedLatencyMs),
      concurrency: progress.concurrency,
      hasWhatIf: false,
    });
  }

  /** Whether answers take much longer or shorter than the plan has it. */
  #isFarOff(): boolean {
    const [low, high] = [this.#plannedLatencyMs, this.#latencyMs ?? this.#plannedLatencyMs].sort((a, b) => a - b);
    return high - low > FAR_OFF_MS && high > low * FAR_OFF;
  }

  #workUntil(untilMs: number): void {
    while (this.#steps !== undefined) {
      const step = this.#steps.next();
      if (step.done === true) {
        this.#take(step.value);
        this.#rest();
      }
      if (this.#nowMs() >= untilMs) return;
    }
  }

  #take({ hosts }: Planned): void {
    const ends = new Map<string, number>();
    let last = this.#begunAtMs;
    for (const { key, requests, endsAtMs } of hosts) {
      const stretch = (this.#counts.get(key) ?? requests) / Math.max(1, requests);
      const atMs = this.#begunAtMs + endsAtMs * stretch;
      ends.set(key, atMs);
      last = Math.max(last, atMs);
    }
    this.#hostEnds = ends;
    this.#plannedCounts = this.#counts;
    this.#sharers = new Set(hosts.filter(({ binds }) => binds?.scope === "global").map(({ key }) => key));
    this.#plannedAtMs = this.#begunAtMs;
    this.#endsAtMs = Math.max(last, this.#begunAtMs + this.#sharedMs(hosts));
  }

  /** How long all that is left needs where hosts wait for what they share, those included that were not planned. */
  #sharedMs(hosts: readonly PlannedHost[]): number {
    const placesMs =
      this.#concurrency === undefined ? 0 : (this.#leftCount * this.#plannedLatencyMs) / this.#concurrency;
    if (this.#sharers.size === 0) return placesMs;
    const planned = hosts.reduce((sum, { requests }) => sum + requests, 0);
    const plannedMs = hosts.reduce((most, { endsAtMs }) => Math.max(most, endsAtMs), 0);
    return Math.max(placesMs, (plannedMs * this.#leftCount) / Math.max(1, planned));
  }

  #rest(): void {
    this.#steps = undefined;
    const nowMs = this.#nowMs();
    const longMs = this.#spentMs * TIMES_REST;
    this.#nextAtMs = nowMs + Math.max(LEAST_REST_MS, longMs);
    this.#soonestAtMs = nowMs + Math.max(SHORT_REST_MS, longMs);
  }
}

/** Those with the most left, with about `MOST_PLANNED` requests together, at least one each. */
function thinned(all: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const counts = all.size <= MOST_HOSTS ? all : new Map([...all].sort((a, b) => b[1] - a[1]).slice(0, MOST_HOSTS));
  let sum = 0;
  for (const count of counts.values()) sum += count;
  if (sum <= MOST_PLANNED) return counts;
  const factor = sum / MOST_PLANNED;
  return new Map([...counts].map(([key, count]) => [key, Math.ceil(count / factor)]));
}
