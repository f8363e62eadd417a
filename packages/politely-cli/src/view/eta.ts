import type { PolicyInput } from "politely";
import type { PlanOptions } from "../plan/plan.js";
import { planSteps } from "../plan/planRun.js";

/** What an estimate needs to know of a run. */
export interface EtaProgress {
  readonly total: number;
  readonly done: number;
  readonly starts: number;
  readonly beganAtMs: number;
  readonly policy: PolicyInput;
  left(): ReadonlyMap<string, number>;
}

/** A host as the run has known it so far. */
export interface HostPace {
  readonly key: string;
  /** URLs without an end yet. */
  readonly left: number;
  readonly starts: number;
  readonly firstStartAtMs: number;
}

/** The part of a plan that is used. */
interface Planned {
  readonly hosts: readonly { readonly key: string; readonly requests: number; readonly endsAtMs: number }[];
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
/** So many starts make a pace. */
const STARTS_OF_A_PACE = 5;
const MOST_LATENCY_MS = 600_000;

/**
 * Says when a run will be over: what the planner says about the URLs that are left, which is made anew every five seconds at most, in
 * slices of 5 ms between the requests.
 *
 * The planner knows the policy, and nothing of cooldowns, robots.txt or a slow site. So the end is never before a cooling host could be done,
 * nor before the hosts on show, and the run as a whole, are done at the pace they had so far.
 */
export class Eta {
  readonly #plan: PlanInSteps;
  readonly #nowMs: () => number;
  #steps: Generator<unknown, Planned> | undefined;
  #counts: ReadonlyMap<string, number> = new Map();
  #begunAtMs = 0;
  #spentMs = 0;
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #latencyMs: number | undefined;
  #endsAtMs: number | undefined;
  #hostEnds: ReadonlyMap<string, number> = new Map();
  #plannedAtMs = 0;

  constructor(nowMs: () => number, plan: PlanInSteps = planSteps) {
    this.#nowMs = nowMs;
    this.#plan = plan;
  }

  /** A request took so long from its start to its last byte. */
  took(tookMs: number): void {
    if (!(tookMs >= 0)) return;
    this.#latencyMs = this.#latencyMs === undefined ? tookMs : this.#latencyMs * 0.9 + tookMs * 0.1;
  }

  /** Plans on for at most a slice. */
  work(progress: EtaProgress): void {
    const beginMs = this.#nowMs();
    if (this.#steps === undefined) {
      if (beginMs < this.#nextAtMs || progress.done >= progress.total) return;
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
    progress: EtaProgress,
    paces: Iterable<HostPace>,
    cooling: Iterable<readonly [key: string, untilMs: number]>,
  ): number | undefined {
    const nowMs = this.#nowMs();
    const ends = this.#endsAtMs === undefined ? [] : [this.#endsAtMs];
    for (const [key, untilMs] of cooling) {
      if (untilMs > nowMs) ends.push(untilMs + Math.max(0, (this.#hostEnds.get(key) ?? 0) - this.#plannedAtMs));
    }
    const runPace = {
      left: progress.total - progress.done,
      starts: progress.starts,
      firstStartAtMs: progress.beganAtMs,
    };
    for (const { left, starts, firstStartAtMs } of [runPace, ...paces]) {
      if (starts >= STARTS_OF_A_PACE) ends.push(nowMs + ((nowMs - firstStartAtMs) / starts) * left);
    }
    if (ends.length === 0) return undefined;
    return Math.max(0, Math.max(...ends) - nowMs);
  }

  #begin(progress: EtaProgress, nowMs: number): void {
    this.#counts = progress.left();
    this.#begunAtMs = nowMs;
    this.#spentMs = 0;
    const latency = Math.min(MOST_LATENCY_MS, Math.round(this.#latencyMs ?? 200));
    this.#steps = this.#plan(thinned(this.#counts), progress.policy, { latency, hasWhatIf: false });
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
    this.#plannedAtMs = this.#begunAtMs;
    this.#endsAtMs = last;
  }

  #rest(): void {
    this.#steps = undefined;
    this.#nextAtMs = this.#nowMs() + Math.max(LEAST_REST_MS, this.#spentMs * TIMES_REST);
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
