import type { Limits, PolicyInput } from "../../src/policy/types.js";
import type { Outcome, Target } from "../../src/types.js";
import { Dice } from "./dice.js";

// What happens in one run, as data, so that a run that fails can be printed and made smaller. Times are whole milliseconds.

/** How the way between a process and the store is. */
export interface Way {
  /** One way, at least and at most. */
  readonly leastUs: number;
  readonly mostUs: number;
  /** Shares of requests and replies that are lost without a word, and that are cut with an error. */
  readonly lost: number;
  readonly cut: number;
  /** Share of requests that arrive twice. */
  readonly twice: number;
  /** Share of requests and replies that are held up for up to two seconds. */
  readonly heldUp: number;
  /** What is sent first arrives first. */
  readonly isInOrder: boolean;
}

/** A request, and what becomes of it. */
export interface Asked {
  readonly kind: "ask";
  readonly atMs: number;
  readonly process: number;
  readonly target: Target;
  readonly verb: "acquire" | "tryAcquire";
  readonly workMs: number;
  readonly outcome: Outcome | undefined;
  readonly cost: number;
  readonly spent: number | undefined;
  readonly maxWaitMs: number | undefined;
  /** It is cancelled so long after it was made, if it still waits. */
  readonly cancelMs: number | undefined;
}

/** What else happens. */
export type Act =
  | Asked
  /** A process begins. */
  | { readonly kind: "begin"; readonly atMs: number; readonly process: number }
  /** It stands still for a while: no timer of its is called, and nothing it is sent arrives. */
  | { readonly kind: "stop"; readonly atMs: number; readonly process: number; readonly forMs: number }
  | { readonly kind: "kill"; readonly atMs: number; readonly process: number }
  /** Its way to the store is cut: what it sends fails at once, or is lost. */
  | {
      readonly kind: "cut";
      readonly atMs: number;
      readonly process: number;
      readonly forMs: number;
      readonly isRefused: boolean;
    }
  /** The store is down, and comes back with what it knew or with nothing. */
  | {
      readonly kind: "down";
      readonly atMs: number;
      readonly forMs: number;
      readonly isRefused: boolean;
      readonly isEmptied: boolean;
    }
  /** The store's clock is set. */
  | { readonly kind: "jump"; readonly atMs: number; readonly byMs: number }
  | { readonly kind: "pause"; readonly atMs: number; readonly process: number; readonly forMs: number }
  | { readonly kind: "resume"; readonly atMs: number; readonly process: number }
  | { readonly kind: "configure"; readonly atMs: number; readonly process: number; readonly limits: Limits }
  | { readonly kind: "record"; readonly atMs: number; readonly process: number; readonly outcome: Outcome };

/** One run. */
export interface Scenario {
  readonly seed: number;
  readonly outage: "share" | "closed";
  readonly isBatch: boolean;
  readonly policy: PolicyInput;
  /** What bad answers do at every host, whatever a process changes. */
  readonly answers: Limits;
  /** Every process carries operations out over cells of its own way, as with PostgreSQL; else the store does, as Redis does. */
  readonly isCells: boolean;
  readonly way: Way;
  readonly processes: number;
  readonly acts: readonly Act[];
  readonly endMs: number;
}

/** The scenario of a seed. */
export function scenarioOf(seed: number): Scenario {
  const dice = new Dice(seed);
  const processes = dice.whole(1, 4);
  const endMs = dice.whole(1500, 6000);
  const limits = limitsOf(dice);
  const isCells = dice.chance(0.3);
  const isQuiet = dice.chance(0.3);
  const way = wayOf(dice, isCells);
  const targets = targetsOf(dice);
  const answers: Limits = {
    cooldown: dice.pick<Limits["cooldown"] & object>([[300, 600, 1200], [1000]]),
    backoff: { kind: "exponential", base: 200, max: 1500, jitter: 0.5 },
  };
  const policy = policyOf(dice, limits, answers);
  const acts: Act[] = [];
  for (let process = 0; process < processes; process++) {
    acts.push({ kind: "begin", atMs: dice.chance(0.7) ? 0 : dice.whole(0, endMs / 2), process });
  }
  const asked = dice.whole(5, 40);
  const burst = dice.chance(0.4);
  const hasAnswers = dice.chance(0.4);
  for (let index = 0; index < asked; index++) {
    acts.push({
      kind: "ask",
      atMs: burst ? dice.pick([0, 500, 1000]) + dice.whole(0, 20) : dice.whole(0, endMs),
      process: dice.whole(0, processes - 1),
      target: dice.pick(targets),
      verb: dice.chance(0.15) ? "tryAcquire" : "acquire",
      workMs: dice.pick([0, 1, 20, dice.whole(0, 300), 50]),
      outcome: outcomeOf(dice, hasAnswers),
      cost: 1,
      spent: undefined,
      maxWaitMs: dice.chance(0.25) ? dice.pick([0, 50, 500, 2000]) : undefined,
      cancelMs: dice.chance(0.1) ? dice.whole(0, 800) : undefined,
    });
  }
  if (!isQuiet)
    for (let count = dice.whole(1, 4); count > 0; count--) acts.push(faultOf(dice, processes, endMs, limits));
  acts.sort((a, b) => a.atMs - b.atMs);
  return {
    seed,
    outage: dice.chance(0.5) ? "closed" : "share",
    isBatch: dice.chance(0.15),
    policy,
    answers,
    isCells,
    way,
    processes,
    acts: withCosts(dice, acts, limits),
    endMs,
  };
}

function withCosts(dice: Dice, acts: readonly Act[], limits: Limits): Act[] {
  const most = largestCost(limits);
  if (most < 2 || !dice.chance(0.3)) return [...acts];
  return acts.map((act) => {
    if (act.kind !== "ask") return act;
    const cost = dice.whole(1, Math.min(3, most));
    return { ...act, cost, spent: dice.chance(0.4) ? dice.whole(0, 3) : undefined };
  });
}

/** The largest cost that any limit can take. */
function largestCost({ rate, burst = 1, window, quota }: Limits): number {
  const windows = [window].flat() as (undefined | string | { readonly count: number })[];
  const counts = windows.flatMap((one) => (typeof one === "object" ? [one.count] : []));
  if (rate !== undefined) counts.push(burst);
  if (quota !== undefined) counts.push(quota.count);
  return counts.length === 0 ? 1 : Math.min(...counts);
}

function limitsOf(dice: Dice): Limits {
  const gap = { minDelay: dice.whole(5, 150) };
  const rate = { rate: { count: dice.whole(1, 10), per: dice.whole(100, 600) }, burst: dice.whole(1, 5) };
  const window = { window: { count: dice.whole(1, 6), per: dice.whole(50, 800) } };
  const windows = {
    window: [
      { count: dice.whole(1, 4), per: dice.whole(20, 150) },
      { count: dice.whole(3, 10), per: dice.whole(300, 1500) },
    ],
  };
  const places = { concurrency: dice.whole(1, 3), permitTtl: dice.whole(1, 3) * 1000 };
  const quota = { quota: { count: dice.whole(10, 40), per: "hour" as const } };
  const fromAnswer = { countFrom: "answer" as const };
  return dice.pick<Limits>([
    gap,
    rate,
    window,
    windows,
    places,
    { ...gap, ...window },
    { ...rate, ...windows },
    { ...rate, ...places },
    { ...window, ...places },
    { ...quota, ...gap },
    { ...gap, ...fromAnswer },
    { ...window, ...places, ...fromAnswer },
  ]);
}

function policyOf(dice: Dice, limits: Limits, answers: Limits): PolicyInput {
  return {
    hosts: {
      "x.org": { ...limits, ...answers, intents: { search: { minDelay: dice.whole(10, 200) } } },
      "y.org": { ...limitsOf(dice), ...answers },
    },
    ...(dice.chance(0.3) ? { global: limitsOf(dice) } : {}),
    scopes: { "key:*": limitsOf(dice) },
  };
}

function targetsOf(dice: Dice): Target[] {
  const all: Target[] = ["x.org", "y.org", { host: "x.org", intent: "search" }, { host: "x.org", scopes: ["key:a"] }];
  if (dice.chance(0.5)) return ["x.org"];
  return Array.from({ length: dice.whole(1, 3) }, () => dice.pick(all));
}

function outcomeOf(dice: Dice, hasAnswers: boolean): Outcome | undefined {
  if (dice.chance(0.1)) return "unused";
  if (!hasAnswers || dice.chance(0.7)) return dice.pick([undefined, "success", { status: 200 }]);
  return dice.pick<Outcome>([
    { status: 429, headers: { "retry-after": "1" } },
    { status: 429 },
    { status: 503, headers: { "retry-after": "2" } },
    { status: 500 },
    "timeout",
    { status: 200, headers: { ratelimit: '"default";r=0;t=1' } },
    { status: 404 },
  ]);
}

function wayOf(dice: Dice, isCells: boolean): Way {
  const leastUs = dice.pick([50, 300, 3000, 20_000]);
  const isRough = dice.chance(0.4);
  const rough = (share: number): number => (isRough && dice.chance(0.6) ? share * dice.next() : 0);
  return {
    leastUs,
    mostUs: Math.round(leastUs * (1 + 2 * dice.next())),
    lost: rough(0.1),
    cut: rough(0.1),
    twice: isCells ? 0 : rough(0.2),
    heldUp: rough(0.1),
    isInOrder: dice.chance(0.5),
  };
}

function faultOf(dice: Dice, processes: number, endMs: number, limits: Limits): Act {
  const at = { atMs: dice.whole(0, endMs), process: dice.whole(0, processes - 1) };
  const forMs = dice.pick([dice.whole(10, 200), dice.whole(200, 2000), dice.whole(2000, 12_000)]);
  return dice.pick<Act>([
    { kind: "stop", ...at, forMs },
    { kind: "kill", ...at },
    { kind: "cut", ...at, forMs, isRefused: dice.chance(0.5) },
    { kind: "down", atMs: at.atMs, forMs, isRefused: dice.chance(0.5), isEmptied: dice.chance(0.4) },
    {
      kind: "jump",
      atMs: at.atMs,
      byMs: dice.pick([1, -1]) * dice.pick([dice.whole(1, 1900), dice.whole(2000, 400_000)]),
    },
    { kind: "pause", ...at, forMs: Math.min(forMs, 3000) },
    { kind: "configure", ...at, limits: dice.chance(0.5) ? limits : limitsOf(dice) },
    { kind: "record", ...at, outcome: dice.pick<Outcome>(["success", { status: 429 }]) },
  ]);
}
