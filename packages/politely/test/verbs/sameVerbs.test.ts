import fc, { type Arbitrary } from "fast-check";
import { describe, expect, it } from "vitest";
import type { AcquireOptions, LimiterOptions, Limits, Outcome, Permit, Target } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { seeded } from "../laws/seeded.js";
import { anyLimits, anyOutcome, KEY, type Verbs, verbsOfLimit, verbsOfPolitely } from "./sameVerbs.js";

describe("limit and politely", () => {
  it("start, decide, count and tell the same for the same limits, however the host is written", async () => {
    const targets: readonly Target[] = [KEY, `https://${KEY}/a?b`, { host: `${KEY.toUpperCase()}.` }];
    const scene = fc.tuple(fc.array(anyLimits, { minLength: 3, maxLength: 3 }), anyScript, fc.constantFrom(...targets));
    await fc.assert(
      fc.asyncProperty(scene, async ([limits, script, target]) => {
        const ofKey = await play(script, limits, verbsOfLimit, true);
        const ofHost = await play(script, limits, (...made) => verbsOfPolitely(target, ...made), true);
        expect(ofHost).toEqual(ofKey);
        // Where nobody listens, shorter ways are taken.
        const unheard = await play(script, limits, (...made) => verbsOfPolitely(target, ...made), false);
        expect(unheard.log).toEqual(ofKey.log);
      }),
      seeded(80),
    );
  });
});

type Step =
  | { readonly kind: "acquire"; readonly ask: AcquireOptions; readonly hasSignal: boolean }
  | { readonly kind: "try"; readonly ask: Pick<AcquireOptions, "cost"> }
  | { readonly kind: "release" | "report"; readonly pick: number; readonly outcome: Outcome }
  | { readonly kind: "record"; readonly outcome: Outcome; readonly sinceMs: number }
  | { readonly kind: "pause"; readonly duration: number | undefined }
  | { readonly kind: "reset"; readonly what: "pacing" | "stats" | "all" }
  | { readonly kind: "configure"; readonly number: number }
  | { readonly kind: "close"; readonly drain: boolean }
  | { readonly kind: "abort" | "resume" | "cancel" | "idle" | "run" };

type Script = readonly { readonly afterMs: number; readonly step: Step }[];

const anyCost = fc.constantFrom(undefined, undefined, 1, 3, 0, { rate: 2 }, { host: 3 }, { nope: 1 }) as Arbitrary<
  AcquireOptions["cost"]
>;

const anyAsk = fc.record({
  cost: anyCost,
  priority: fc.constantFrom(undefined, undefined, 1, -2, Number.NaN),
  maxWait: fc.constantFrom(undefined, undefined, 0, "1s" as const, Number.POSITIVE_INFINITY, -1),
});

const anyStep: Arbitrary<Step> = fc.oneof(
  {
    weight: 14,
    arbitrary: fc.record({
      kind: fc.constant("acquire" as const),
      ask: anyAsk,
      hasSignal: fc.constantFrom(false, false, true),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("try" as const), ask: fc.record({ cost: anyCost }) }) },
  {
    weight: 9,
    arbitrary: fc.record({
      kind: fc.constantFrom("release" as const, "report" as const),
      pick: fc.nat(5),
      outcome: anyOutcome,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("record" as const),
      outcome: anyOutcome,
      sinceMs: fc.constantFrom(0, 500, -500, 100_000, Number.NaN),
    }),
  },
  fc.record({ kind: fc.constant("pause" as const), duration: fc.constantFrom(undefined, 500, 0) }),
  fc.record({ kind: fc.constant("reset" as const), what: fc.constantFrom("pacing", "stats", "all") }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("configure" as const), number: fc.nat(2) }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom("abort", "resume", "resume", "cancel", "idle", "run") }),
  },
);

const anyPause = fc.oneof(fc.constant(0), fc.nat({ max: 8000 }), fc.constantFrom(0.25, 3_600_000));

const anyScript: Arbitrary<Script> = fc
  .tuple(
    fc.array(fc.record({ afterMs: fc.oneof(fc.constant(0), anyPause), step: anyStep }), { maxLength: 40, size: "max" }),
    fc.boolean(),
  )
  .map(([script, drain]) => [...script, { afterMs: 0, step: { kind: "close", drain } }]);

interface Played {
  /** What every call gave, and how things were after each step. */
  readonly log: readonly string[];
  readonly events: readonly unknown[];
}

class Player {
  readonly clock = new VirtualClock();
  readonly log: string[] = [];
  readonly events: unknown[] = [];
  readonly #held: Permit[] = [];
  readonly #aborts: AbortController[] = [];
  readonly #verbs: Verbs;

  constructor(
    readonly limits: readonly Limits[],
    make: (limits: Limits, options: LimiterOptions) => Verbs,
    isHeard: boolean,
  ) {
    this.#verbs = make(limits[0], { clock: this.clock, random: () => 0.5 });
    if (isHeard) this.#verbs.subscribe((event) => this.events.push(event));
  }

  take(step: Step): unknown {
    const verbs = this.#verbs;
    switch (step.kind) {
      case "acquire":
        return verbs.acquire(this.#optionsOf(step)).then(this.#keep);
      case "try":
        return this.#keep(verbs.tryAcquire(step.ask.cost === undefined ? undefined : step.ask));
      case "release":
        return this.#held.splice(step.pick % (this.#held.length || 1), 1)[0]?.release(step.outcome);
      case "report":
        return this.#held[step.pick % (this.#held.length || 1)]?.report(step.outcome);
      case "record":
        return verbs.record(step.outcome, this.clock.now() - step.sinceMs);
      case "abort":
        return this.#aborts.shift()?.abort();
      case "pause":
        return verbs.pause(step.duration);
      case "resume":
        return verbs.resume();
      case "cancel":
        return verbs.cancelWaiting();
      case "reset":
        return verbs.reset(step.what);
      case "configure":
        return verbs.configure(this.limits[step.number]);
      case "idle":
        return verbs.idle();
      case "run":
        return verbs.run(() => ({ status: 429 }));
      case "close":
        return verbs.close(step.drain);
    }
  }

  /** Notes how things are. A host that was never asked for has no statistics, a single key has zeros. */
  look(): void {
    const stats = this.#verbs.stats();
    this.say(JSON.stringify([this.#verbs.look(), stats?.asked === 0 ? undefined : stats], finite));
  }

  say(line: string): void {
    this.log.push(`${this.clock.now()} ${line}`);
  }

  releaseAll(): void {
    for (const permit of this.#held.splice(0)) permit.release();
  }

  readonly #keep = (permit: Permit | undefined): Permit | undefined => {
    if (permit !== undefined) this.#held.push(permit);
    return permit;
  };

  /** Undefined where nothing is asked for: that may be decided in a shorter way. */
  #optionsOf({ ask, hasSignal }: Extract<Step, { kind: "acquire" }>): AcquireOptions | undefined {
    if (!hasSignal) return Object.values(ask).every((value) => value === undefined) ? undefined : ask;
    const abort = new AbortController();
    this.#aborts.push(abort);
    return { ...ask, signal: abort.signal };
  }
}

async function play(
  script: Script,
  limits: readonly Limits[],
  make: (limits: Limits, options: LimiterOptions) => Verbs,
  isHeard: boolean,
): Promise<Played> {
  const player = new Player(limits, make, isHeard);
  const { clock } = player;
  for (const [number, { afterMs, step }] of script.entries()) {
    await clock.advance(afterMs);
    const tell = (value: unknown): void => player.say(`${number} ${step.kind} ${JSON.stringify(value, finite)}`);
    void new Promise((resolve) => resolve(player.take(step))).then(tell, (error) => tell(String(error)));
    await clock.settle();
    player.look();
  }
  for (let round = 0; round < 5; round++) {
    await clock.advance(5000);
    player.releaseAll();
    player.look();
  }
  return { log: player.log, events: player.events };
}

/** Numbers that JSON has no words for. */
function finite(_: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}
