import { describe, expect, it } from "vitest";
import { isSlow, Latency, noteLatency } from "../../src/core/adaptive.js";
import { randomNumbers, variedMs } from "../engine/adaptive/randomNumbers.js";

const second = 1_000_000;

/** What is known after more answers, that come every `everyUs` and take `latencyUs` each. */
function listen(
  known: Latency | undefined,
  answers: { readonly fromUs: number; readonly everyUs: number; readonly count: number },
  latencyUs: number,
): Latency {
  const { fromUs, everyUs, count } = answers;
  const state = known === undefined ? new Latency(fromUs - latencyUs) : structuredClone(known);
  for (let nowUs = fromUs, left = count; left > 0; left--, nowUs += everyUs) {
    noteLatency(state, latencyUs, nowUs - latencyUs, nowUs);
  }
  return state;
}

/** Whether answers take more than `factor` times as long as usual. */
function areSlow(state: Latency, factor: number): boolean {
  return isSlow(state, state.recentUs, factor);
}

describe("the usual latency", () => {
  it("is what the first answers take, and those that come later do not soon change it", () => {
    const first = listen(undefined, { fromUs: second, everyUs: second / 10, count: 60 }, 200_000);
    expect(first.usualUs).toBe(200_000);
    const later = listen(first, { fromUs: 7 * second, everyUs: second / 10, count: 300 }, second);
    expect(later.recentUs).toBeGreaterThan(0.9 * second);
    expect(later.usualUs).toBeLessThan(220_000);
    expect(areSlow(later, 3)).toBe(true);
  });

  it("is not taken from the requests that are answered first, which are the fastest of many", () => {
    const random = randomNumbers(1);
    const answers = Array.from({ length: 5_000 }, (_, index) => {
      const latencyUs = Math.ceil(variedMs(300, 1, random) * 1000);
      const startedUs = index * 1000;
      return { latencyUs, startedUs, nowUs: startedUs + latencyUs };
    }).sort((a, b) => a.nowUs - b.nowUs);
    const state = new Latency(answers[0].startedUs);
    for (const { latencyUs, startedUs, nowUs } of answers) {
      noteLatency(state, latencyUs, startedUs, nowUs);
      expect(areSlow(state, 3)).toBe(false);
    }
    expect(state.usualUs).toBeGreaterThan(150_000);
    expect(state.usualUs).toBeLessThan(450_000);
  });

  it("doubles in five minutes at most, so that a lasting change becomes usual in the end", () => {
    const first = listen(undefined, { fromUs: second, everyUs: second, count: 60 }, 200_000);
    const half = listen(first, { fromUs: 61 * second, everyUs: second, count: 300 }, second);
    expect(half.usualUs).toBeGreaterThan(380_000);
    expect(half.usualUs).toBeLessThanOrEqual(401_000);
    const whole = listen(half, { fromUs: 361 * second, everyUs: second, count: 400 }, second);
    expect(whole.usualUs).toBeGreaterThan(900_000);
    expect(areSlow(whole, 2)).toBe(false);
  });

  it("rises by one minute's worth in a silence of any length", () => {
    const first = listen(undefined, { fromUs: second, everyUs: second, count: 60 }, 200_000);
    const slow = listen(first, { fromUs: 62 * second, everyUs: second, count: 16 }, second);
    const late = listen(slow, { fromUs: 50_000 * second, everyUs: second, count: 1 }, second);
    expect(late.usualUs / slow.usualUs).toBeLessThan(2 ** (1 / 5) + 0.001);
  });

  it("falls within seconds when answers get faster", () => {
    const first = listen(undefined, { fromUs: second, everyUs: second / 10, count: 60 }, second);
    const faster = listen(first, { fromUs: 8 * second, everyUs: second / 10, count: 150 }, 200_000);
    expect(faster.usualUs).toBeLessThan(300_000);
  });
});

describe("answers are slow", () => {
  it("only after enough of them, and never because of one", () => {
    const first = listen(undefined, { fromUs: second, everyUs: second / 10, count: 60 }, 100_000);
    const once = listen(first, { fromUs: 800 * second, everyUs: second / 10, count: 1 }, 500 * second);
    expect(areSlow(once, 3)).toBe(false);
    const often = listen(once, { fromUs: 801 * second, everyUs: second / 10, count: 30 }, 500_000);
    expect(areSlow(often, 3)).toBe(true);
  });

  it("never because our own program stood still and heard many at once", () => {
    const first = listen(undefined, { fromUs: second, everyUs: 10_000, count: 600 }, 100_000);
    const stalled = listen(first, { fromUs: 20 * second, everyUs: 0, count: 500 }, 5 * second);
    expect(areSlow(stalled, 3)).toBe(false);
  });

  it("when they take longer than 10 ms only, since shorter delays may be our own", () => {
    const first = listen(undefined, { fromUs: second, everyUs: second / 10, count: 60 }, 500);
    const slower = listen(first, { fromUs: 8 * second, everyUs: second / 10, count: 100 }, 9_000);
    expect(areSlow(slower, 1.01)).toBe(false);
    const slow = listen(first, { fromUs: 8 * second, everyUs: second / 10, count: 100 }, 40_000);
    expect(areSlow(slow, 3)).toBe(true);
  });
});
