import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { AnswerClock } from "../../../src/stores/dynamodb/answerClock.js";

const second = 1_000;
const day = 86_400 * second;
const askedUs = 100_000;
const contentUs = 1_100_000;

describe("what a client of DynamoDB puts up with", () => {
  let localMs = 0;
  let serverMs = 0;
  /** When the server last answered, by its own clock. */
  let stampedMs = 0;
  beforeEach(() => {
    localMs = 5 * second;
    // In the middle of a second.
    serverMs = 1_700_000_000_500;
    vi.spyOn(performance, "now").mockImplementation(() => localMs);
    vi.spyOn(Date, "now").mockImplementation(() => 3 * day + localMs);
  });
  afterEach(() => void vi.restoreAllMocks());

  const pass = (ms: number): void => {
    localMs += ms;
    serverMs += ms;
  };
  /** Lets the clock hear one answer that is half of `roundTripMs` under way in each direction. */
  const hear = (clock: AnswerClock, roundTripMs: number): void => {
    const sentMs = localMs;
    pass(roundTripMs / 2);
    stampedMs = serverMs;
    pass(roundTripMs / 2);
    clock.hear(new Date(stampedMs).toUTCString(), sentMs, localMs);
  };

  it("is nothing before the first answer", () => {
    const clock = new AnswerClock();
    expect([askedUs, contentUs].map((errorUs) => clock.isSettled(errorUs))).toEqual([false, false]);
    expect(() => clock.read()).toThrow(/not known yet/);
  });

  it.each([
    // One answer leaves 1,010 ms and the round trip. Four and a half round trips and 15 ms are less,
    [20, false, true],
    [200, false, true],
    [280, false, true],
    // and over a slower way they are not.
    [290, true, true],
    [600, true, true],
    [3_000, true, true],
  ])(
    "is one answer over a round trip of %d ms: %s where 100 ms were asked for, %s where 1,100 were",
    (roundTripMs, isEnough, isContent) => {
      const clock = new AnswerClock();
      hear(clock, roundTripMs);
      expect([askedUs, contentUs].map((errorUs) => clock.isSettled(errorUs))).toEqual([isEnough, isContent]);
    },
  );

  it("is not a time that has drifted for a day, however little was asked for", () => {
    const clock = new AnswerClock();
    hear(clock, 20);
    pass(day);
    expect(clock.isSettled(contentUs)).toBe(false);
    hear(clock, 20);
    expect(clock.isSettled(contentUs)).toBe(true);
  });

  it("is over a slow way no more than a second, one and a half round trips and 15 ms", () => {
    const clock = new AnswerClock();
    hear(clock, 600);
    // From 1,610 ms on, by 200 millionths of the time that passes.
    pass(1_500 * second);
    expect(clock.isSettled(askedUs)).toBe(true);
    pass(50 * second);
    expect(clock.isSettled(askedUs)).toBe(false);
  });

  it("is told with the time: the server's is between the two", () => {
    for (const roundTripMs of [0, 30, 700, 1_900]) {
      const clock = new AnswerClock();
      for (let answer = 0; answer < 20; answer++) {
        hear(clock, roundTripMs);
        // Nobody can have written a later instant into what the answer brought.
        expect(clock.read().nowUs).toBeGreaterThanOrEqual((stampedMs - 1_010) * 1_000);
        pass(137);
        const { nowUs, errorUs } = clock.read();
        expect(nowUs).toBeLessThanOrEqual(serverMs * 1_000);
        expect(nowUs + errorUs).toBeGreaterThanOrEqual(serverMs * 1_000);
        expect(errorUs).toBeLessThanOrEqual(1_011_000 + roundTripMs * 1_000);
      }
    }
  });

  it("is never ahead again once it has heard that the server's clock was set back", () => {
    const clock = new AnswerClock();
    hear(clock, 20);
    expect(clock.read().nowUs).toBeGreaterThan((serverMs - 2 * second) * 1_000);
    serverMs -= 3_600 * second;
    hear(clock, 20);
    expect(clock.read().nowUs).toBeLessThanOrEqual(serverMs * 1_000);
  });

  it("does not go back when the machine slept and all was forgotten", () => {
    const clock = new AnswerClock();
    for (let answer = 0; answer < 50; answer++) {
      hear(clock, 20);
      pass(17);
    }
    const { nowUs } = clock.read();
    // The wall clock goes on by a second more than the monotonic one.
    vi.mocked(Date.now).mockImplementation(() => 3 * day + localMs + second);
    expect(clock.isSettled(contentUs)).toBe(false);
    hear(clock, 20);
    hear(clock, 20);
    expect(clock.read().nowUs).toBeGreaterThanOrEqual(nowUs);
  });
});
