import {
  type Cause,
  type KeyLimiter,
  type Limiter,
  type Limits,
  limit,
  type Permit,
  type PolicyInput,
  politely,
  type Target,
} from "politely";
import type { ScopeRule } from "../policy/rules.js";
import type { Assumptions } from "./alone.js";
import { Flight, isEven, isFollowed, takesUs } from "./flight.js";
import { InstantHeap } from "./instantHeap.js";
import { HORIZON_US, PlanClock } from "./planClock.js";
import { limitText, WAITS, waitNumber } from "./waits.js";

/** One host among those that share a budget. */
export interface Sharer {
  /** Hosts with the same number have the same limits. */
  readonly rule: number;
  readonly requests: number;
}

/** What hosts with one number have. */
export interface SharerRule {
  readonly limits: Limits;
  /** A budget that they have together, beside that of all hosts. */
  readonly scope: ScopeRule | undefined;
}

/** Numbers that a host's waits take: those for its own limits by `WAITS`, then those for its scope's. */
export const WAITS_OF_SHARER = 2 * WAITS.length;

/** When hosts that share a budget start their requests. */
export interface TogetherPlan {
  /** The starts of each host, in milliseconds from the beginning. Shorter than asked where the horizon comes first. */
  readonly starts: readonly Float64Array[];
  /** How long each host waited for each of its own limits and its scope's: `WAITS_OF_SHARER` numbers a host, in milliseconds. */
  readonly ownWaits: Float64Array;
  /** How long each host waited for what all share, in milliseconds. */
  readonly sharedWaits: Float64Array;
  /** A rule's limits in words, by the same numbers. */
  readonly texts: readonly (readonly string[])[];
  /** The limit of the shared budget that held back most, in words; empty when none did. */
  readonly sharedText: string;
  /** Where the plan stopped short of the end; Infinity when it did not. */
  readonly nextMs: number;
}

const STEP = 4096;
/** What is told of an answer that frees a place of the shared budget, and of no host. */
const NOBODY = -1;

/**
 * Plans hosts that share a budget. Yields the number of starts found since the last time.
 *
 * The engine decides whether a start is possible, at the host and in the shared budget, and takes both. Among those that could start,
 * the one whose last start is longest ago goes first, as the engine's own queue has it.
 */
export function* planTogether(
  sharers: readonly Sharer[],
  rules: readonly SharerRule[],
  shared: Limits,
  assumed: Assumptions,
): Generator<number, TogetherPlan> {
  const run = new Together(sharers, rules, shared, assumed);
  yield* run.run();
  return run.plan();
}

class Together {
  readonly #clock: PlanClock;
  readonly #hosts: Limiter;
  readonly #shared: KeyLimiter;
  readonly #targets: readonly Target[];
  /** Hosts that wait for their own limits, by when they are over. An entry counts while its rank is the host's latest. */
  readonly #waiting = new InstantHeap();
  /** Hosts that wait for their turn at the shared budget, by their last start. */
  readonly #ready = new InstantHeap();
  readonly #flights = new Map<number, Flight>();
  readonly #starts: Float64Array;
  readonly #offsets: Float64Array;
  readonly #started: Float64Array;
  readonly #sinceUs: Float64Array;
  readonly #waitsFor: Int8Array;
  readonly #ranks: Float64Array;
  readonly #turnUs: Float64Array;
  readonly #turns: Float64Array;
  readonly #ownWaits: Float64Array;
  readonly #sharedWaits: Float64Array;
  readonly #texts: string[][];
  readonly #sharedByLimit = WAITS.map(() => 0);
  readonly #sharedTexts = WAITS.map(() => "");
  readonly #isFollowed: readonly boolean[];
  readonly #takesUs: readonly number[];
  readonly #isEven: readonly boolean[];
  /** By scope: hosts that wait for an answer to a request in it, whoever made that. */
  readonly #unanswered = new Map<string, Set<number>>();
  /** What every start of a host under an even rule comes after the one before, and the limit; 0 until it is known. */
  readonly #gapsUs: Float64Array;
  readonly #gapLimits: Int8Array;
  #sharedWaitsFor = 0;
  #rank = 0;
  #left = 0;
  #found = 0;
  #nextUs = Number.POSITIVE_INFINITY;

  constructor(
    readonly sharers: readonly Sharer[],
    readonly rules: readonly SharerRule[],
    readonly shared: Limits,
    { latencyMs, wallMs }: Assumptions,
  ) {
    const count = sharers.length;
    this.#clock = new PlanClock(wallMs);
    this.#hosts = politely(policyOf(rules), { clock: this.#clock, keepStats: 0, maxKeys: 100_000_000 });
    this.#shared = limit(shared, { clock: this.#clock, keepStats: 0 });
    this.#targets = sharers.map(({ rule }, host) => targetOf(`h${host}.r${rule}`, rules[rule]));
    this.#offsets = new Float64Array(count);
    sharers.forEach(({ requests }, host) => {
      this.#offsets[host] = this.#left;
      this.#left += requests;
    });
    this.#starts = new Float64Array(this.#left);
    this.#started = new Float64Array(count);
    this.#sinceUs = new Float64Array(count);
    this.#waitsFor = new Int8Array(count).fill(NOBODY);
    this.#ranks = new Float64Array(count);
    this.#turnUs = new Float64Array(count);
    this.#turns = Float64Array.from(sharers, (_, host) => host - count);
    this.#ownWaits = new Float64Array(count * WAITS_OF_SHARER);
    this.#sharedWaits = new Float64Array(count);
    this.#texts = rules.map(() => [...WAITS, ...WAITS].map(() => ""));
    this.#isFollowed = [...rules.map(isEndFollowed), isFollowed(shared)];
    this.#isEven = rules.map(({ limits, scope }) => scope === undefined && isEven(limits));
    this.#gapsUs = new Float64Array(rules.length);
    this.#gapLimits = new Int8Array(rules.length);
    this.#takesUs = [...rules.map(({ limits }) => limits), shared].map((limits) => takesUs(limits, latencyMs));
  }

  *run(): Generator<number> {
    this.sharers.forEach(({ requests }, host) => {
      if (requests > 0) this.#enter(host);
    });
    while (this.#left > 0) {
      const nowUs = this.#clock.nowUs;
      for (const flight of this.#flights.values()) flight.land(nowUs, this.#answered);
      while (this.#waiting.firstAt <= nowUs) this.#woken(this.#waiting.firstRank, this.#waiting.take());
      yield* this.#startReady();
      if (this.#left === 0 || this.#nextLandingUs() <= nowUs) continue;
      if (!this.#move()) break;
    }
    yield this.#found;
  }

  plan(): TogetherPlan {
    const most = this.#sharedByLimit.indexOf(Math.max(...this.#sharedByLimit));
    return {
      starts: this.sharers.map((_, host) => {
        const from = this.#offsets[host];
        return this.#starts.subarray(from, from + this.#started[host]);
      }),
      ownWaits: this.#ownWaits,
      sharedWaits: this.#sharedWaits,
      texts: this.#texts,
      sharedText: this.#sharedTexts[most],
      nextMs: this.#nextUs / 1000,
    };
  }

  /** Starts hosts in turn for as long as the shared budget lasts. */
  *#startReady(): Generator<number> {
    let permit: Permit | undefined;
    while (this.#ready.size > 0) {
      permit ??= this.#shared.tryAcquire();
      if (permit === undefined) return;
      if (!this.#start(this.#ready.take())) continue;
      this.#follow(permit, this.#isFollowed.length - 1, NOBODY);
      permit = undefined;
      if (this.#found < STEP) continue;
      yield this.#found;
      this.#found = 0;
    }
    // Nobody could use it. It is the latest start at this very moment, so all of it goes back.
    permit?.release("unused");
  }

  /** Starts a host whose turn it is, or finds out what it waits for. */
  #start(host: number): boolean {
    const { rule, requests } = this.sharers[host];
    const gapUs = this.#started[host] === 0 ? 0 : this.#gapsUs[rule];
    if (this.#turnUs[host] + gapUs > this.#clock.nowUs) {
      this.#waitFor(host, this.#gapLimits[rule], this.#turnUs[host] + gapUs);
      return false;
    }
    const permit = this.#hosts.tryAcquire(this.#targets[host]);
    if (permit === undefined) {
      this.#wait(host);
      return false;
    }
    this.#follow(permit, rule, host);
    const { nowUs } = this.#clock;
    this.#starts[this.#offsets[host] + this.#started[host]] = this.#clock.now();
    this.#started[host] += 1;
    this.#sharedWaits[host] += (nowUs - this.#sinceUs[host]) / 1000;
    this.#turnUs[host] = nowUs;
    this.#turns[host] = this.#rank++;
    this.#left -= 1;
    this.#found += 1;
    // Whether its own limits hold it back is asked when its turn comes: by then they often do not.
    if (this.#started[host] < requests) this.#enter(host);
    return true;
  }

  #enter(host: number): void {
    this.#sinceUs[host] = this.#clock.nowUs;
    this.#waitsFor[host] = NOBODY;
    this.#ready.add(host, this.#turnUs[host], this.#turns[host]);
  }

  #follow(permit: Permit, rule: number, host: number): void {
    if (!this.#isFollowed[rule]) return;
    const us = this.#takesUs[rule];
    let flight = this.#flights.get(us);
    if (flight === undefined) {
      flight = new Flight(us);
      this.#flights.set(us, flight);
    }
    flight.add(permit, host, this.#clock.nowUs);
  }

  /** Finds out which of its own limits a host waits for. */
  #wait(host: number): void {
    const { rule } = this.sharers[host];
    const { causes, waitMs, isEstimate } = this.#hosts.explain(this.#targets[host]);
    const place = causes.find(({ limit: kind }) => kind === "concurrency");
    const cause = place ?? causes[0];
    const { scope } = this.rules[rule];
    const isOfScope = scope !== undefined && cause?.key === scope.name;
    const number = noted(cause, this.#texts[rule], isOfScope ? WAITS.length : 0);
    // A place, or what counts from the answer: only an answer tells, and it may be another host's.
    if (isEstimate && scope !== undefined && causes.some(({ key }) => key === scope.name)) {
      this.#waitForAnswer(host, scope.name);
    }
    const readyUs = this.#clock.nowUs + Math.round(waitMs * 1000);
    if (this.#isEven[rule]) {
      this.#gapsUs[rule] = readyUs - this.#turnUs[host];
      this.#gapLimits[rule] = number;
    }
    // For a place it waits until one of its own requests is answered, or one of its scope's.
    this.#waitFor(host, number, place === undefined ? readyUs : Number.POSITIVE_INFINITY);
  }

  /** Lets a host wait. What it waited until now counts as a wait for the same: its turn had come. */
  #waitFor(host: number, number: number, readyUs: number): void {
    this.#waitsFor[host] = number;
    this.#ranks[host] = this.#rank++;
    if (readyUs !== Number.POSITIVE_INFINITY) this.#waiting.add(host, readyUs, this.#ranks[host]);
  }

  #waitForAnswer(host: number, scope: string): void {
    const others = this.#unanswered.get(scope) ?? new Set();
    this.#unanswered.set(scope, others.add(host));
  }

  /** A request is answered: whoever waits for an answer in the same scope looks again. */
  readonly #answered = (host: number): void => {
    this.#landed(host);
    const name = host === NOBODY ? undefined : this.rules[this.sharers[host].rule].scope?.name;
    const unanswered = name === undefined ? undefined : this.#unanswered.get(name);
    if (unanswered === undefined) return;
    for (const other of unanswered) this.#landed(other);
    unanswered.clear();
  };

  /** A wait for its own limits is over, unless it ended otherwise. */
  #woken(rank: number, host: number): void {
    if (this.#ranks[host] === rank) this.#landed(host);
  }

  readonly #landed = (host: number): void => {
    if (host === NOBODY || this.#waitsFor[host] === NOBODY) return;
    const waited = (this.#clock.nowUs - this.#sinceUs[host]) / 1000;
    this.#ownWaits[host * WAITS_OF_SHARER + this.#waitsFor[host]] += waited;
    this.#ranks[host] = NOBODY;
    this.#enter(host);
  };

  /** Moves to the next instant at which something may change. False when that is beyond the horizon. */
  #move(): boolean {
    const { nowUs } = this.#clock;
    let nextUs = Math.min(this.#waiting.firstAt, this.#nextLandingUs());
    if (this.#ready.size > 0) nextUs = Math.min(nextUs, this.#sharedNextUs());
    this.#clock.moveTo(Math.max(nowUs + 1, nextUs));
    if (this.#ready.size > 0) this.#sharedByLimit[this.#sharedWaitsFor] += this.#clock.nowUs - nowUs;
    if (this.#clock.nowUs <= HORIZON_US) return true;
    this.#nextUs = this.#clock.nowUs;
    return false;
  }

  /** When the shared budget may have room again. */
  #sharedNextUs(): number {
    const { causes, waitMs } = this.#shared.explain();
    const place = causes.find(({ limit: kind }) => kind === "concurrency");
    this.#sharedWaitsFor = noted(place ?? causes[0], this.#sharedTexts);
    return place === undefined ? this.#clock.nowUs + Math.round(waitMs * 1000) : Number.POSITIVE_INFINITY;
  }

  #nextLandingUs(): number {
    let nextUs = Number.POSITIVE_INFINITY;
    for (const flight of this.#flights.values()) nextUs = Math.min(nextUs, flight.nextUs);
    return nextUs;
  }
}

/** The number of a cause's limit, counted from `first`; its words are kept. */
function noted(cause: Cause | undefined, texts: string[], first = 0): number {
  if (cause === undefined) return 0;
  const number = first + waitNumber(cause.limit);
  if (texts[number] === "") texts[number] = limitText(cause);
  return number;
}

function targetOf(host: string, { scope }: SharerRule): Target {
  return scope === undefined ? host : { host, scopes: [scope.name] };
}

/** Whether a rule needs to know when an answer came. */
function isEndFollowed({ limits, scope }: SharerRule): boolean {
  return isFollowed(limits) || (scope !== undefined && isFollowed(scope.limits));
}

/** A policy in which `h0.r3` is a host under the rule with number 3. */
function policyOf(rules: readonly SharerRule[]): PolicyInput {
  const scopes = rules.flatMap(({ scope }) => (scope === undefined ? [] : [[scope.name, scope.limits] as const]));
  return {
    hosts: Object.fromEntries(rules.map(({ limits }, rule) => [`*.r${rule}`, limits])),
    scopes: Object.fromEntries(scopes),
  };
}
