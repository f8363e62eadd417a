import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type HeardDate, ServerTime } from "../../src/stores/serverTime.js";
import { seeded } from "../laws/seeded.js";

const second = 1_000_000;
const day = 86_400 * second;

/** A server and a way to it, as nobody can see them: `atUs` is the server's true time at a local instant. */
interface World {
  readonly atUs: (localUs: number) => number;
}

/** One request: when it leaves, how long it takes to the server and back, and how far the clock of the machine that answers is off. */
interface Request {
  readonly afterUs: number;
  readonly thereUs: number;
  readonly backUs: number;
  readonly skewUs: number;
}

function worldWith(offsetUs: number, driftPpm: number): World {
  return { atUs: (localUs) => offsetUs + localUs * (1 + driftPpm / 1_000_000) };
}

/** What a client hears when the request leaves at `sentUs`. */
function heard(world: World, sentUs: number, { thereUs, backUs, skewUs }: Omit<Request, "afterUs">): HeardDate {
  const stampedMs = (world.atUs(sentUs + thereUs) + skewUs) / 1_000;
  return { dateMs: Math.floor(stampedMs / 1_000) * 1_000, sentUs, receivedUs: sentUs + thereUs + backUs };
}

const anyWay = {
  thereUs: fc.integer({ min: 0, max: 300_000 }),
  backUs: fc.integer({ min: 0, max: 300_000 }),
  skewUs: fc.integer({ min: -5_000, max: 5_000 }),
};
const anyRequest: fc.Arbitrary<Request> = fc.record({
  afterUs: fc.oneof(fc.integer({ min: 0, max: 50_000 }), fc.integer({ min: 0, max: 600 * second })),
  ...anyWay,
});
// From a clock that says 1970 up to one that is a century ahead, with fractions of a microsecond.
const anyWorld = fc
  .record({
    offsetUs: fc.double({ min: 0, max: 36_500 * day, noNaN: true }),
    driftPpm: fc.double({ min: -100, max: 100, noNaN: true }),
  })
  .map(({ offsetUs, driftPpm }) => worldWith(offsetUs, driftPpm));
/** Doubles of this size are a quarter of a microsecond apart, and the model rounds too. */
const roundingUs = 1;

describe("the bounds of a server's time", () => {
  it("hold the true time between them, whatever the offset, the latencies, the drift and the skew of hosts", () => {
    const anyStory = fc.array(anyRequest, { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(anyWorld, anyStory, fc.integer({ min: 0, max: 600 * second }), (world, story, laterUs) => {
        const time = new ServerTime();
        let localUs = 0;
        for (const request of story) {
          const answer = heard(world, localUs + request.afterUs, request);
          expect(time.hear(answer)).toBe(true);
          localUs = answer.receivedUs;
          for (const atUs of [localUs, localUs + laterUs, localUs - request.afterUs]) {
            const bounds = time.boundsUs(atUs);
            expect(bounds?.lowUs).toBeLessThanOrEqual(world.atUs(atUs) + roundingUs);
            expect(bounds?.highUs).toBeGreaterThanOrEqual(world.atUs(atUs) - roundingUs);
          }
        }
      }),
      seeded(300),
    );
  });

  it("hold it too when answers overlap and overtake each other", () => {
    const anyStory = fc.array(fc.record({ sentUs: fc.integer({ min: 0, max: 5 * second }), ...anyWay }), {
      minLength: 1,
      maxLength: 100,
    });
    fc.assert(
      fc.property(anyWorld, anyStory, (world, story) => {
        const answers = story.map(({ sentUs, ...way }) => heard(world, sentUs, way));
        const time = new ServerTime();
        for (const answer of answers.toSorted((a, b) => a.receivedUs - b.receivedUs)) {
          expect(time.hear(answer)).toBe(true);
          const bounds = time.boundsUs(answer.receivedUs);
          expect(bounds?.lowUs).toBeLessThanOrEqual(world.atUs(answer.receivedUs) + roundingUs);
          expect(bounds?.highUs).toBeGreaterThanOrEqual(world.atUs(answer.receivedUs) - roundingUs);
        }
      }),
      seeded(300),
    );
  });

  it("come as close as two round trips and the skew of the hosts, within one second of asking all the time", () => {
    fc.assert(
      fc.property(anyWorld, fc.integer({ min: 1_000, max: 100_000 }), fc.nat(100), (world, roundTripUs, share) => {
        const time = new ServerTime();
        const thereUs = Math.floor((roundTripUs * share) / 100);
        let localUs = 0;
        while (localUs < second + 2 * roundTripUs) {
          const answer = heard(world, localUs, { thereUs, backUs: roundTripUs - thereUs, skewUs: 0 });
          time.hear(answer);
          localUs = answer.receivedUs;
        }
        // 10 ms for hosts, and 200 ppm of the second and a bit that it took.
        expect(time.errorUs(localUs)).toBeLessThanOrEqual(2 * roundTripUs + 10_000 + 250);
      }),
      seeded(200),
    );
  });

  it("are a second and one round trip apart after one answer", () => {
    const time = new ServerTime({ driftPpm: 0, hostSkewUs: 0 });
    time.hear({ dateMs: 5_000, sentUs: 100, receivedUs: 350 });
    expect(time.boundsUs(350)).toEqual({ lowUs: 5_000_000, highUs: 6_000_250 });
    expect(time.errorUs(350)).toBe(1_000_250);
  });

  it("drift apart by 200 microseconds a second while nothing is heard", () => {
    const time = new ServerTime({ hostSkewUs: 0 });
    time.hear({ dateMs: 5_000, sentUs: 0, receivedUs: 0 });
    expect(time.errorUs(10 * second)).toBeCloseTo(second + 2_000, 3);
  });

  it("are unknown before the first answer", () => {
    const time = new ServerTime();
    expect(time.boundsUs(0)).toBe(undefined);
    expect(time.nowUs(0)).toBe(undefined);
    expect(time.errorUs(0)).toBe(Number.POSITIVE_INFINITY);
  });

  it("do not change with an answer that has no date or came before it was sent", () => {
    const time = new ServerTime();
    expect(time.hear({ dateMs: Number.NaN, sentUs: 0, receivedUs: 10 })).toBe(true);
    expect(time.hear({ dateMs: 5_000, sentUs: 10, receivedUs: 0 })).toBe(true);
    expect(time.boundsUs(10)).toBe(undefined);
  });
});

describe("the time told", () => {
  it("is a whole number, never ahead, behind by no more than the error, and never goes back", () => {
    fc.assert(
      fc.property(anyWorld, fc.array(anyRequest, { minLength: 1, maxLength: 60 }), (world, story) => {
        const time = new ServerTime();
        let localUs = 0;
        let lastUs = Number.NEGATIVE_INFINITY;
        for (const request of story) {
          const answer = heard(world, localUs + request.afterUs, request);
          time.hear(answer);
          localUs = answer.receivedUs;
          const nowUs = time.nowUs(localUs) ?? Number.NaN;
          expect(Number.isSafeInteger(nowUs)).toBe(true);
          expect(nowUs).toBeGreaterThanOrEqual(lastUs);
          expect(nowUs).toBeLessThanOrEqual(world.atUs(localUs) + roundingUs);
          expect(nowUs).toBeGreaterThanOrEqual(world.atUs(localUs) - time.errorUs(localUs) - roundingUs - 1);
          lastUs = nowUs;
        }
      }),
      seeded(300),
    );
  });

  it("is right again after the server's clock was set, once answers show it", () => {
    const anyJumpUs = fc.oneof(fc.integer({ min: 2 * second, max: day }), fc.integer({ min: -day, max: -2 * second }));
    fc.assert(
      fc.property(anyWorld, anyJumpUs, (world, jumpUs) => {
        const before = { atUs: (localUs: number) => world.atUs(localUs) + 2 * day };
        const after = { atUs: (localUs: number) => before.atUs(localUs) + jumpUs };
        const time = new ServerTime();
        const way = { thereUs: 1_000, backUs: 1_000, skewUs: 0 };
        for (let sentUs = 0; sentUs < 2 * second; sentUs += 50_000)
          expect(time.hear(heard(before, sentUs, way))).toBe(true);
        const toldUs = time.nowUs(2 * second) ?? Number.NaN;

        expect(time.hear(heard(after, 2 * second, way))).toBe(false);
        for (let sentUs = 2 * second + 50_000; sentUs < 4 * second; sentUs += 50_000) {
          expect(time.hear(heard(after, sentUs, way))).toBe(true);
        }
        const bounds = time.boundsUs(4 * second);
        expect(bounds?.lowUs).toBeLessThanOrEqual(after.atUs(4 * second) + roundingUs);
        expect(bounds?.highUs).toBeGreaterThanOrEqual(after.atUs(4 * second) - roundingUs);
        // It was set back: the time told stands still. It was set forward: it goes on from there.
        expect(time.nowUs(4 * second)).toBe(Math.max(toldUs, Math.floor(bounds?.lowUs ?? Number.NaN)));
      }),
      seeded(200),
    );
  });

  it("stands still when all was forgotten, until the next answer", () => {
    const time = new ServerTime({ hostSkewUs: 0 });
    time.hear({ dateMs: 5_000, sentUs: 0, receivedUs: 0 });
    expect(time.nowUs(0)).toBe(5_000_000);
    time.forget();
    expect(time.nowUs(second)).toBe(5_000_000);
    expect(time.errorUs(second)).toBe(Number.POSITIVE_INFINITY);
    time.hear({ dateMs: 9_000, sentUs: second, receivedUs: second });
    expect(time.nowUs(second)).toBe(9_000_000);
  });
});

describe("the instant of the next useful answer", () => {
  it("is now while the server's second may be changing, and else when that may begin", () => {
    const time = new ServerTime({ driftPpm: 0 });
    const world = worldWith(7.2 * second, 0);
    const way = { thereUs: 500, backUs: 500, skewUs: 0 };
    expect(time.uncertainInUs(0)).toBe(0);
    time.hear(heard(world, 0, way));
    // All of the second is possible.
    expect(time.uncertainInUs(1_000)).toBe(0);
    time.hear(heard(world, 780_000, way));
    time.hear(heard(world, 820_000, way));
    // The second changes 0.8 s after the start and 1 s after that; 41 ms of uncertainty lie around it.
    const inUs = time.uncertainInUs(821_000);
    expect(821_000 + inUs).toBeGreaterThan(1_780_000 - 1_000);
    expect(821_000 + inUs).toBeLessThan(1_800_000);
  });

  it("never passes over an answer that would have told more", () => {
    fc.assert(
      fc.property(
        anyWorld,
        fc.array(anyRequest, { minLength: 1, maxLength: 20 }),
        fc.nat(second),
        (world, story, aUs) => {
          const time = new ServerTime({ hostSkewUs: 0 });
          let localUs = 0;
          for (const request of story) {
            const answer = heard(world, localUs + request.afterUs, { ...request, skewUs: 0 });
            time.hear(answer);
            localUs = answer.receivedUs;
          }
          const waitUs = time.uncertainInUs(localUs);
          expect(waitUs).toBeLessThanOrEqual(second);
          if (waitUs < 2) return;
          // An answer that takes no time at all, at any instant before.
          const atUs = localUs + Math.floor((aUs / second) * (waitUs - 2) * 0.999);
          const errorUs = time.errorUs(atUs);
          time.hear(heard(world, atUs, { thereUs: 0, backUs: 0, skewUs: 0 }));
          expect(time.errorUs(atUs)).toBeGreaterThanOrEqual(errorUs - roundingUs);
        },
      ),
      seeded(300),
    );
  });
});
