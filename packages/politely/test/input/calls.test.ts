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
import { failure, granted, keyRig, rig } from "../verbs/support.js";

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

  it.each(bad)("%s of %j is rejected at once, naming the field, and takes nothing", async (field, value) => {
    const { clock, limiter } = keyRig(limits);
    const promise = limiter.acquire({ [field]: value } as AcquireOptions);
    expect(promise).toBeInstanceOf(Promise);
    const error = await failure(promise);
    expect(isInputError(error)).toBe(true);
    expect(String(error)).toContain(field);
    expect(clock.pendingTimers).toBe(0);
    expectUntouched(limiter);
  });

  it.each(bad.filter(([field]) => field === "cost"))(
    "%s of %j makes tryAcquire throw, and takes nothing",
    (_field, value) => {
      const { limiter } = keyRig(limits);
      let error: unknown;
      try {
        limiter.tryAcquire({ cost: value } as AcquireOptions);
      } catch (thrown) {
        error = thrown;
      }
      expect(isInputError(error)).toBe(true);
      expectUntouched(limiter);
    },
  );

  it.each([4, 2.5, -7])("the message names the cost of %d", async (cost) => {
    const { limiter } = keyRig(limits);
    expect(String(await failure(limiter.acquire({ cost })))).toContain(String(cost));
  });

  it.each([null, 5, "fast", []])("options of %j are refused, or taken as none", async (options) => {
    const { limiter } = keyRig(limits);
    const outcome = await limiter.acquire(options as unknown as AcquireOptions).then(
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
  const bad = ["great", "", 200, true, {}, { kind: "splendid" }, { status: "429" }, { status: Number.NaN }, []];

  it.each(bad)("record of %j throws and counts nothing", (outcome) => {
    const { limiter } = keyRig(limits);
    let error: unknown;
    try {
      limiter.record(outcome as unknown as Outcome);
    } catch (thrown) {
      error = thrown;
    }
    expect(isInputError(error)).toBe(true);
    expectUntouched(limiter);
  });

  it("record without an outcome throws", () => {
    const { limiter } = keyRig(limits);
    expect(() => limiter.record(undefined as unknown as Outcome)).toThrow(TypeError);
    expectUntouched(limiter);
  });

  it.each([Number.NaN, Number.NEGATIVE_INFINITY, "yesterday", null])(
    "record started at %j throws and counts nothing",
    (startedAtMs) => {
      const { limiter } = keyRig(limits);
      let error: unknown;
      try {
        limiter.record("success", { startedAtMs } as unknown as RecordOptions);
      } catch (thrown) {
        error = thrown;
      }
      expect(isInputError(error)).toBe(true);
      expectUntouched(limiter);
    },
  );

  it.each(bad)("release with %j throws, and the permit is not lost", (outcome) => {
    const { limiter } = keyRig({ concurrency: 1 });
    const permit = granted(limiter.tryAcquire());
    let error: unknown;
    try {
      permit.release(outcome as unknown as Outcome);
    } catch (thrown) {
      error = thrown;
    }
    expect(isInputError(error)).toBe(true);
    permit.release();
    expect(limiter.stats()).toMatchObject({ inFlight: 0, released: 1, cooldownMs: 0 });
  });

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "2", { rate: -1 }, { nonsense: 1 }])(
    "release with a cost of %j throws, and the permit is not lost",
    (cost) => {
      const { limiter } = keyRig({ concurrency: 1, rate: "1/s", burst: 3 });
      const permit = granted(limiter.tryAcquire());
      let error: unknown;
      try {
        permit.release("success", { cost } as unknown as ReleaseOptions);
      } catch (thrown) {
        error = thrown;
      }
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
  it.each([-1, Number.NaN, "soon", "", {}, null])("pause for %j throws and pauses nothing", (duration) => {
    const { limiter } = keyRig(limits);
    expect(() => limiter.pause(duration as unknown as number)).toThrow();
    expectUntouched(limiter);
  });

  it.each(["everything", "", 1, null])("reset of %j throws and forgets nothing", (what) => {
    const { limiter } = keyRig(limits);
    granted(limiter.tryAcquire());
    expect(() => limiter.reset(what as unknown as ResetWhat)).toThrow(TypeError);
    expect(limiter.check().waitMs).toBe(1_000);
  });

  it.each([undefined, null, 42, {}])("subscribe of %j throws", (listener) => {
    const { limiter } = keyRig(limits);
    expect(() => limiter.subscribe(listener as unknown as () => void)).toThrow(TypeError);
  });

  it.each([undefined, null, "task"])("run of %j rejects and takes nothing", async (task) => {
    const { limiter } = keyRig(limits);
    expect(await failure(limiter.run(task as unknown as () => void))).toBeInstanceOf(TypeError);
    expectUntouched(limiter);
  });

  it.each([undefined, null, "task"])("wrap of %j throws", (fn) => {
    const { limiter } = keyRig(limits);
    expect(() => limiter.wrap(fn as unknown as () => void)).toThrow(TypeError);
  });

  it.each([
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
  ])("the option %s of %j throws when the limiter is made, naming it", (field, value) => {
    const options = { [field]: value } as unknown as LimiterOptions;
    for (const make of [() => politely({}, options), () => limit({}, options)]) {
      let error: unknown;
      try {
        make();
      } catch (thrown) {
        error = thrown;
      }
      expect(isInputError(error) || error instanceof PolicyError).toBe(true);
      expect(String(error)).toContain(field);
    }
  });
});
