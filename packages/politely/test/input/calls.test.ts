import { describe, expect, it } from "vitest";
import type {
  AcquireOptions,
  KeyLimiter,
  LimiterOptions,
  Outcome,
  RecordOptions,
  ReleaseOptions,
  ResetWhat,
} from "../../src/index.js";
import { limit, PolicyError, politely } from "../../src/index.js";
import { failure, granted, keyRig, rig, rows } from "../verbs/support.js";

/** Runs `act` and gives what it threw. */
function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
}

const isInputError = (error: unknown): boolean => error instanceof TypeError || error instanceof RangeError;

/** Fails unless the limiter is as if nobody had ever called it. */
function expectUntouched(limiter: KeyLimiter): void {
  expect(limiter.stats()).toMatchObject({ totalRequests: 0, waiting: 0, inFlight: 0, tokens: 3, window: { calls: 0 } });
  expect(limiter.check()).toEqual({ proceed: true, waitMs: 0 });
}

const limits = { minDelay: "1s", rate: "1/s", burst: 3, window: "4/min" } as const;

describe("options of acquire that make no sense", () => {
  const bad: readonly (readonly [string, unknown])[] = [
    ["cost", 0],
    ["cost", -1],
    ["cost", 1.5],
    ["cost", Number.NaN],
    ["cost", Number.POSITIVE_INFINITY],
    ["cost", 4],
    ["cost", 2 ** 53],
    ["cost", "2"],
    ["cost", null],
    ["cost", [1]],
    ["cost", { rate: 0 }],
    ["cost", { rate: 2.5 }],
    ["cost", { window: -1 }],
    ["cost", { window: "3" }],
    ["cost", { nonsense: 1 }],
    ["cost", { rate: 4 }],
    ["cost", { window: 5 }],
    ["maxWait", -1],
    ["maxWait", Number.NaN],
    ["maxWait", "5 parsecs"],
    ["maxWait", "-1s"],
    ["maxWait", ""],
    ["maxWait", {}],
    ["priority", Number.NaN],
    ["priority", Number.POSITIVE_INFINITY],
    ["priority", "high"],
    ["signal", {}],
    ["signal", "abort"],
  ];

  it.each(bad.map(([field, value]) => [field, ...rows([value])[0]] as const))(
    "%s of %s is rejected at once, naming the field, and takes nothing",
    async (field, _shown, value) => {
      const { clock, limiter } = keyRig(limits);
      const promise = limiter.acquire({ [field]: value });
      expect(promise).toBeInstanceOf(Promise);
      const error = await failure(promise);
      expect(isInputError(error)).toBe(true);
      expect(String(error)).toContain(field);
      expect(clock.pendingTimers).toBe(0);
      expectUntouched(limiter);
    },
  );

  it.each(rows(bad.filter(([field]) => field === "cost").map(([, value]) => value)))(
    "a cost of %s makes tryAcquire throw, and takes nothing",
    (_shown, value) => {
      const { limiter } = keyRig(limits);
      const error = thrownBy(() => limiter.tryAcquire({ cost: value } as AcquireOptions));
      expect(isInputError(error)).toBe(true);
      expectUntouched(limiter);
    },
  );

  it.each([4, 2.5, -7])("the message names the cost of %d", async (cost) => {
    const { limiter } = keyRig(limits);
    expect(String(await failure(limiter.acquire({ cost })))).toContain(String(cost));
  });

  it.each(rows([null, 5, "fast", []]))("options of %s are refused, or taken as none", async (_shown, options) => {
    const { limiter } = keyRig(limits);
    const outcome = await limiter.acquire(options as AcquireOptions).then(
      () => "granted",
      (error: unknown) => error,
    );
    expect(outcome === "granted" || isInputError(outcome)).toBe(true);
  });

  it("a cost above what fits is refused while others wait, too, and disturbs none of them", async () => {
    const { clock, limiter } = keyRig(limits);
    await limiter.acquire();
    const waiting = limiter.acquire();
    expect(await failure(limiter.acquire({ cost: 4 }))).toBeInstanceOf(RangeError);
    await clock.advance(1_000);
    expect((await waiting).startedAtMs).toBe(1_000);
  });

  it("a cost is not too much where the limits are off or there are none", async () => {
    expect((await keyRig({ minDelay: 1 }).limiter.acquire({ cost: 1_000_000 })).waitedMs).toBe(0);
    expect((await keyRig({ enabled: false, window: "1/s" }).limiter.acquire({ cost: 50 })).waitedMs).toBe(0);
  });
});

describe("outcomes that make no sense", () => {
  const bad = ["great", "", 200, true, null, {}, { kind: "splendid" }, { status: "429" }, { status: Number.NaN }, []];

  it.each(rows(bad))("record of %s throws and counts nothing", (_shown, outcome) => {
    const { limiter } = keyRig(limits);
    const error = thrownBy(() => limiter.record(outcome as Outcome));
    expect(isInputError(error)).toBe(true);
    expectUntouched(limiter);
  });

  it("record without an outcome throws", () => {
    const { limiter } = keyRig(limits);
    expect(() => limiter.record(undefined as unknown as Outcome)).toThrow(TypeError);
    expectUntouched(limiter);
  });

  it.each(rows([Number.NaN, Number.NEGATIVE_INFINITY, "yesterday", null]))(
    "record started at %s throws and counts nothing",
    (_shown, startedAtMs) => {
      const { limiter } = keyRig(limits);
      const error = thrownBy(() => limiter.record("success", { startedAtMs } as RecordOptions));
      expect(isInputError(error)).toBe(true);
      expectUntouched(limiter);
    },
  );

  it.each(rows(bad))("release with %s throws, and the permit is not lost", (_shown, outcome) => {
    const { limiter } = keyRig({ concurrency: 1 });
    const permit = granted(limiter.tryAcquire());
    const error = thrownBy(() => permit.release(outcome as Outcome));
    expect(isInputError(error)).toBe(true);
    permit.release();
    expect(limiter.stats()).toMatchObject({ inFlight: 0, released: 1, cooldownMs: 0 });
  });

  it.each(rows([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "2", { rate: -1 }, { nonsense: 1 }]))(
    "release with a cost of %s throws, and the permit is not lost",
    (_shown, cost) => {
      const { limiter } = keyRig({ concurrency: 1, rate: "1/s", burst: 3 });
      const permit = granted(limiter.tryAcquire());
      const error = thrownBy(() => permit.release("success", { cost } as ReleaseOptions));
      expect(isInputError(error)).toBe(true);
      expect(limiter.stats().tokens).toBe(2);
      permit.release();
      expect(limiter.stats()).toMatchObject({ inFlight: 0, released: 1 });
    },
  );

  it("an outcome whose scope the request did not take is an error", () => {
    const { limiter } = rig({ scopes: { "proxy:*": { minDelay: 1 } } });
    const permit = granted(limiter.tryAcquire({ host: "a.org", scopes: ["proxy:berlin"] }));
    expect(() => permit.release({ kind: "rate_limited", scope: "proxy:paris" })).toThrow(/proxy:paris/);
    permit.release();
    expect(limiter.stats("a.org")?.inFlight).toBe(0);
  });
});

describe("other arguments that make no sense", () => {
  it.each(rows([-1, Number.NaN, "soon", "", {}, null]))(
    "pause for %s throws and pauses nothing",
    (_shown, duration) => {
      const { limiter } = keyRig(limits);
      expect(isInputError(thrownBy(() => limiter.pause(duration as number)))).toBe(true);
      expectUntouched(limiter);
    },
  );

  it.each(rows(["everything", "", 1, null]))("reset of %s throws and forgets nothing", (_shown, what) => {
    const { limiter } = keyRig(limits);
    granted(limiter.tryAcquire());
    expect(isInputError(thrownBy(() => limiter.reset(what as ResetWhat)))).toBe(true);
    expect(limiter.check().waitMs).toBe(1_000);
  });

  it.each(rows([undefined, null, 42, {}]))("subscribe of %s throws", (_shown, listener) => {
    const { limiter } = keyRig(limits);
    expect(() => limiter.subscribe(listener as () => void)).toThrow(TypeError);
  });

  it.each(rows([undefined, null, "task"]))("run of %s rejects and takes nothing", async (_shown, task) => {
    const { limiter } = keyRig(limits);
    expect(await failure(limiter.run(task as () => void))).toBeInstanceOf(TypeError);
    expectUntouched(limiter);
  });

  it.each(rows([undefined, null, "task"]))("wrap of %s throws", (_shown, fn) => {
    const { limiter } = keyRig(limits);
    expect(() => limiter.wrap(fn as () => void)).toThrow(TypeError);
  });

  const badOptions: readonly (readonly [string, unknown])[] = [
    ["maxKeys", 0],
    ["maxKeys", -1],
    ["maxKeys", 1.5],
    ["maxKeys", Number.NaN],
    ["maxKeys", "many"],
    ["keepStats", -1],
    ["keepStats", 0.5],
    ["keepStats", Number.NaN],
    ["ageing", 0],
    ["ageing", -1],
    ["ageing", Number.NaN],
    ["ageing", "slowly"],
    ["random", 0.5],
    ["clock", {}],
    ["clock", Date],
    ["logger", "console"],
  ];

  it.each(badOptions.map(([field, value]) => [field, ...rows([value])[0]] as const))(
    "the option %s of %s throws when the limiter is made, naming it",
    (field, _shown, value) => {
      const options = { [field]: value } as LimiterOptions;
      for (const make of [() => politely({}, options), () => limit({}, options)]) {
        const error = thrownBy(make);
        expect(isInputError(error) || error instanceof PolicyError).toBe(true);
        expect(String(error)).toContain(field);
      }
    },
  );
});
