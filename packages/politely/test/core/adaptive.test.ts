import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ADAPTIVE_MEMORY_US, Adaptive, fitRule, learn } from "../../src/core/adaptive.js";
import type { BadAnswer, Heard } from "../../src/core/answer.js";
import type { AdaptiveRule } from "../../src/core/rule.js";
import { seeded } from "../laws/seeded.js";

const second = 1_000_000;
const onePerSecond: AdaptiveRule = { baseUs: second, slowestUs: 0 };
const tenPerSecond: AdaptiveRule = { baseUs: second / 10, slowestUs: 0 };

type Seen = Pick<Heard, "startedUs" | "nowUs"> & {
  readonly kind: "success" | BadAnswer;
  readonly latencyUs?: number | undefined;
};

function hear(rule: AdaptiveRule, state: Adaptive, seen: Seen): Adaptive {
  learn(rule, state, { retryAfterUs: 0, because: seen.kind, latencyUs: undefined, ...seen });
  return state;
}

/** Answers one after the other: each request starts when the one before was answered, and takes 0.1 s. */
class Talk {
  readonly state = new Adaptive();
  nowUs = 0;

  constructor(public rule: AdaptiveRule = onePerSecond) {}

  /** Time passes in which nothing is sent. */
  rest(us: number): this {
    this.nowUs += us;
    return this;
  }

  hear(kind: Seen["kind"], times = 1, latencyUs = second / 10): this {
    for (let index = 0; index < times; index++) {
      const startedUs = this.nowUs + 1;
      this.nowUs = startedUs + latencyUs;
      hear(this.rule, this.state, { kind, latencyUs, startedUs, nowUs: this.nowUs });
    }
    return this;
  }

  get gapUs(): number {
    return this.state.gapUs;
  }
}

describe("bad answers", () => {
  it("halve the pace when they say that it is too much, even a single one among many good ones", () => {
    expect(new Talk().hear("success", 100).hear("rate_limited").gapUs).toBe(2 * second);
    expect(new Talk().hear("rate_limited").hear("rate_limited").gapUs).toBe(4 * second);
  });

  it.each(["server_error", "timeout"] as const)("of the kind %s are put down to chance when they are few", (kind) => {
    expect(new Talk().hear("success", 40).hear(kind, 3).gapUs).toBe(0);
    const rare = new Talk();
    for (let index = 0; index < 100; index++) rare.hear("success", 99).hear(kind);
    expect(rare.gapUs).toBe(0);
  });

  it.each(["server_error", "timeout"] as const)("of the kind %s slow it down when they are a tenth", (kind) => {
    const talk = new Talk().hear("success", 40);
    for (let index = 0; index < 12; index++) talk.hear("success", 7).hear(kind);
    expect(talk.gapUs).toBeGreaterThan(second);
    expect(talk.gapUs).toBeLessThanOrEqual(8 * second);
  });

  it("slow it down by half their share, and by a quarter at least", () => {
    expect(new Talk().hear("server_error").gapUs).toBe(2 * second);
    expect(new Talk().hear("success", 2).hear("server_error").gapUs).toBe(Math.ceil(second / 0.75));
    expect(new Talk().hear("success", 9).hear("server_error").gapUs).toBe(Math.ceil(second / 0.75));
    expect(new Talk().hear("success", 10).hear("server_error").gapUs).toBe(0);
  });

  it("slow it down to the slowest when there are no others, and keep it there", () => {
    const talk = new Talk(tenPerSecond).hear("success", 40).hear("timeout", 12);
    expect(talk.gapUs).toBe(64 * tenPerSecond.baseUs);
    expect(talk.hear("timeout", 500).gapUs).toBe(64 * tenPerSecond.baseUs);
  });

  it("count once for all requests that were in flight together", () => {
    const state = new Adaptive();
    for (let index = 0; index < 50; index++) {
      hear(onePerSecond, state, { kind: "rate_limited", startedUs: index, nowUs: 10 * second + index * 1000 });
    }
    expect(state.gapUs).toBe(2 * second);
    const next = { kind: "rate_limited", startedUs: 11 * second, nowUs: 12 * second } as const;
    expect(hear(onePerSecond, state, next).gapUs).toBe(4 * second);
  });

  it("count when they answer requests from before a step up, since even the slower pace was too fast", () => {
    const talk = new Talk()
      .hear("rate_limited")
      .rest(2 * second)
      .hear("success", 2);
    const raised = talk.gapUs;
    expect(raised).toBeLessThan(2 * second);
    const late = { kind: "rate_limited", startedUs: 2 * second, nowUs: talk.nowUs + 1 } as const;
    expect(hear(onePerSecond, talk.state, late).gapUs).toBe(2 * raised);
  });

  it("are counted one by one for people", () => {
    const talk = new Talk().hear("success", 3).hear("timeout");
    expect(talk.state.because).toBe("1 of its last 4 answers was bad, the latest: timeout");
    talk.hear("server_error").hear("success");
    expect(talk.state.because).toBe("2 of its last 5 answers were bad, the latest: server_error");
    expect(talk.state.heardCount).toBe(6);
    const { because, heardCount } = new Talk().hear("timeout", 100).state;
    expect(because).toBe("32 of its last 32 answers were bad, the latest: timeout");
    expect(heardCount).toBe(32);
  });
});

describe("steps up", () => {
  it("take a 32nd of full speed and at most a quarter of the present one, once a second at most", () => {
    const talk = new Talk(tenPerSecond).hear("timeout", 20);
    let before = talk.gapUs;
    let beforeUs = Number.NEGATIVE_INFINITY;
    let count = 0;
    while (talk.gapUs > 0) {
      talk.hear("success");
      if (talk.gapUs === before) continue;
      const raisedBy = tenPerSecond.baseUs / Math.max(talk.gapUs, tenPerSecond.baseUs) - tenPerSecond.baseUs / before;
      expect(raisedBy).toBeLessThanOrEqual(1 / 32 + 1e-9);
      expect(before / Math.max(talk.gapUs, tenPerSecond.baseUs)).toBeLessThanOrEqual(1.25);
      expect(talk.nowUs - beforeUs).toBeGreaterThanOrEqual(second);
      before = talk.gapUs;
      beforeUs = talk.nowUs;
      count += 1;
    }
    expect(count).toBeGreaterThan(60);
    expect(count).toBeLessThan(120);
  });

  it("are small within an eighth of the pace at which the trouble came, and large beyond", () => {
    const talk = new Talk(tenPerSecond).hear("success", 40);
    while (talk.gapUs < 200_000) talk.hear("rate_limited").rest(second);
    talk.rest(second).hear("success", 2);
    // Trouble again, at a pace of its own this time.
    const troubleUs = talk.gapUs;
    talk.rest(second).hear("rate_limited");
    const steps: { readonly fromUs: number; readonly factor: number }[] = [];
    while (talk.gapUs > 0) {
      const fromUs = talk.gapUs;
      talk.rest(second).hear("success");
      if (talk.gapUs > 0 && talk.gapUs < fromUs) steps.push({ fromUs, factor: fromUs / talk.gapUs });
    }
    const near = steps.filter(({ fromUs }) => fromUs <= troubleUs * 1.12 && fromUs >= troubleUs * 0.88);
    expect(near.length).toBeGreaterThan(100);
    expect(Math.max(...near.map(({ factor }) => factor))).toBeLessThan(1.003);
    const beyond = steps.filter(({ fromUs }) => fromUs < troubleUs * 0.87);
    expect(Math.min(...beyond.map(({ factor }) => factor))).toBeGreaterThan(1.03);
  });

  it("need two good answers in a row, so that a host that fails every other time gets none", () => {
    const talk = new Talk(tenPerSecond).hear("timeout", 20);
    for (let index = 0; index < 200; index++) talk.rest(second).hear("success").rest(second).hear("timeout");
    expect(talk.gapUs).toBe(64 * tenPerSecond.baseUs);
  });

  it("come from answers alone: time without any changes nothing for an hour, and then all is forgotten", () => {
    const talk = new Talk().hear("rate_limited", 3);
    const { gapUs } = talk;
    talk.rest(ADAPTIVE_MEMORY_US - 2 * second).hear("success");
    expect(talk.gapUs).toBeGreaterThanOrEqual(gapUs / 1.25);
    talk.rest(ADAPTIVE_MEMORY_US + second).hear("success");
    expect(talk.gapUs).toBe(0);
    expect(talk.state.heardCount).toBe(1);
  });

  it("are not forgotten before two gaps have passed, where that is longer than an hour", () => {
    const daily: AdaptiveRule = { baseUs: 3600 * second, slowestUs: 86_400 * second };
    const { state, gapUs } = new Talk(daily).hear("rate_limited", 5);
    expect(gapUs).toBe(86_400 * second);
    expect(state.untilUs - state.heardUs).toBe(2 * 86_400 * second);
  });
});

describe("slow answers", () => {
  it("slow it down when they take over three times as long as usual, by three tenths a time and to an eighth at most", () => {
    const talk = new Talk(tenPerSecond).hear("success", 60);
    while (talk.gapUs === 0) talk.hear("success", 1, second / 2);
    expect(talk.gapUs).toBe(Math.ceil(tenPerSecond.baseUs / 0.7));
    // What comes after a cut is judged by itself.
    expect(talk.state.latency?.recentUs).toBe(talk.state.latency?.usualUs);
    talk.hear("success", 150, second / 2);
    expect(talk.gapUs).toBe(8 * tenPerSecond.baseUs);
    expect(talk.state.because).toMatch(/^answers take [34]\d\d ms, usually 1\d\d ms$/);
  });

  it("keep it from getting faster when they take twice as long as usual", () => {
    const talk = new Talk(tenPerSecond).hear("success", 60).hear("success", 30, 230_000).hear("rate_limited");
    const { gapUs } = talk;
    expect(talk.rest(second).hear("success", 1, 100_000).gapUs).toBe(gapUs);
    // The first answers after a cut are judged by themselves: these take more than twice as long as usual, too.
    talk.hear("success", 16, 250_000);
    const heldUs = talk.gapUs;
    expect(talk.hear("success", 20, 250_000).gapUs).toBe(heldUs);
    expect(talk.hear("success", 60).gapUs).toBeLessThan(heldUs);
  });
});

describe("without a pace in the policy", () => {
  const noPace: AdaptiveRule = { baseUs: 0, slowestUs: 0 };

  it("the time between starts seen before the trouble is full speed, and reaching it ends the slowdown", () => {
    const talk = new Talk(noPace).hear("success", 40).hear("rate_limited");
    expect(talk.gapUs).toBeGreaterThan(190_000);
    expect(talk.gapUs).toBeLessThan(210_000);
    for (let index = 0; index < 200; index++) talk.rest(second).hear("success");
    expect(talk.gapUs).toBe(0);
  });

  it("time in which nothing was in flight does not count", () => {
    const talk = new Talk(noPace);
    for (let index = 0; index < 40; index++) talk.rest(600 * second).hear("success");
    expect(talk.hear("rate_limited").gapUs).toBeLessThan(210_000);
  });

  it("full speed is a thousand starts a second when nothing else is known", () => {
    expect(hear(noPace, new Adaptive(), { kind: "rate_limited", startedUs: 5, nowUs: 5 }).gapUs).toBe(2_000);
  });
});

describe("another rule", () => {
  it("keeps the gap as far as it allows, and nothing shorter than its full speed", () => {
    const { state } = new Talk().hear("rate_limited", 3);
    const gapUnder = (rule: AdaptiveRule): number => {
      const known = structuredClone(state);
      fitRule(rule, known);
      return known.gapUs;
    };
    expect(gapUnder(onePerSecond)).toBe(8 * second);
    expect(gapUnder(tenPerSecond)).toBe(6_400_000);
    expect(gapUnder({ baseUs: 2 * second, slowestUs: 0 })).toBe(8 * second);
    expect(gapUnder({ baseUs: 9 * second, slowestUs: 0 })).toBe(0);
    expect(gapUnder({ baseUs: second, slowestUs: 3 * second })).toBe(3 * second);
    expect(gapUnder({ baseUs: second, slowestUs: second / 2 })).toBe(0);
  });

  it("whose slowest is no slower than full speed never slows down", () => {
    expect(new Talk({ baseUs: second, slowestUs: 1 }).hear("rate_limited", 20).gapUs).toBe(0);
  });

  it("goes by default to a 64th of full speed, to a start a minute at most, and no further than its own pace if that is slower", () => {
    const slowest = (baseUs: number): number => new Talk({ baseUs, slowestUs: 0 }).hear("rate_limited", 20).gapUs;
    expect(slowest(1_000)).toBe(64_000);
    expect(slowest(40 * second)).toBe(60 * second);
    expect(slowest(90 * second)).toBe(0);
  });
});

const anyLatency = fc.oneof(
  fc.integer({ min: 0, max: 100 * second }),
  fc.constantFrom(undefined, 0, -0, -1, -5e9, Number.POSITIVE_INFINITY, 1e300, Number.MIN_VALUE, 0.5),
);
const anyStory = fc.record({
  rule: fc.record({
    baseUs: fc.constantFrom(0, 1, 7, 1_000, 100_000, second, 90 * second),
    slowestUs: fc.constantFrom(0, 1, 5_000, 3 * second, 3600 * second),
  }),
  answers: fc.array(
    fc.record({
      kind: fc.constantFrom<Seen["kind"]>("success", "success", "success", "rate_limited", "server_error", "timeout"),
      latencyUs: anyLatency,
      sinceUs: fc.oneof(fc.nat({ max: 3 * second }), fc.constantFrom(0, 4000 * second)),
      agoUs: fc.nat({ max: 5 * second }),
    }),
    { maxLength: 120 },
  ),
});

/** Plays answers as they come, and shows each with the state before and after it. */
function playStory(
  {
    rule,
    answers,
  }: {
    readonly rule: AdaptiveRule;
    readonly answers: readonly (Pick<Seen, "kind" | "latencyUs"> & {
      readonly sinceUs: number;
      readonly agoUs: number;
    })[];
  },
  look: (seen: Seen, before: Pick<Adaptive, keyof Adaptive>, after: Adaptive) => void,
): void {
  const state = new Adaptive();
  let nowUs = 0;
  for (const { kind, latencyUs, sinceUs, agoUs } of answers) {
    nowUs += sinceUs;
    const seen = { kind, latencyUs, startedUs: nowUs - agoUs, nowUs };
    const before = structuredClone(state);
    look(seen, before, hear(rule, state, seen));
  }
}

describe("whatever is answered", () => {
  it("the gap is 0, or a whole number above full speed's and not above the slowest", () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        const { baseUs, slowestUs } = story.rule;
        playStory(story, (_, __, { gapUs, fullUs }) => {
          if (gapUs === 0) return;
          const full = baseUs > 0 ? baseUs : fullUs;
          const most = slowestUs > 0 ? slowestUs : Math.min(64 * full, 60 * second);
          expect(Number.isSafeInteger(gapUs)).toBe(true);
          expect(gapUs).toBeGreaterThan(full);
          expect(gapUs).toBeLessThanOrEqual(Math.max(full, most));
        });
      }),
      seeded(400),
    );
  });

  it("a bad answer never makes it faster, and only a success to a request of this round trip does, by a quarter at most", () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        playStory(story, (seen, before, after) => {
          if (seen.nowUs >= before.untilUs) return;
          if (after.gapUs >= before.gapUs) return;
          expect(seen.kind).toBe("success");
          expect(seen.startedUs).toBeGreaterThan(Math.max(before.slowedUs, before.raisedUs));
          expect(seen.nowUs - before.raisedUs).toBeGreaterThanOrEqual(second);
          if (after.gapUs > 0)
            expect(before.gapUs / after.gapUs).toBeLessThanOrEqual(Math.max(1.25, before.gapUs / (before.gapUs - 1)));
        });
      }),
      seeded(400),
    );
  });

  it("the pace gets slower at most once per round trip", () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        playStory(story, (seen, before, after) => {
          if (seen.nowUs >= before.untilUs) return;
          if (after.gapUs > before.gapUs) expect(seen.startedUs).toBeGreaterThan(before.slowedUs);
          const untilUs = seen.nowUs + Math.max(ADAPTIVE_MEMORY_US, 2 * before.gapUs);
          if (seen.startedUs <= before.slowedUs) expect(after).toEqual({ ...before, heardUs: seen.nowUs, untilUs });
        });
      }),
      seeded(400),
    );
  });

  it("what is remembered stays finite and of the same size", () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        playStory(story, (_, __, after) => {
          const { latency, because, ...rest } = after;
          const numbers = [...Object.values(rest), ...Object.values(latency ?? {})] as number[];
          expect(because.length).toBeLessThan(100);
          expect(numbers.some((value) => Number.isNaN(value) || value === Number.POSITIVE_INFINITY)).toBe(false);
          expect(numbers.length).toBeLessThanOrEqual(20);
        });
      }),
      seeded(200),
    );
  });
});
