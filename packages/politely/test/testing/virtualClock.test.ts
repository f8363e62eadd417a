import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../src/testing/index.js";

/** Sets a timer for each instant; the returned list fills with the instants that were called and when. */
function record(clock: VirtualClock, ...instants: number[]): [number, number][] {
  const calls: [number, number][] = [];
  for (const atMs of instants) clock.setTimer(atMs, () => calls.push([atMs, clock.now()]));
  return calls;
}

describe("time", () => {
  it("starts at 0 and the first of January 2026 and stands still", async () => {
    const clock = new VirtualClock();
    await clock.settle();
    expect(clock.now()).toBe(0);
    expect(new Date(clock.wall()).toISOString()).toBe("2026-01-01T00:00:00.000Z");
  });

  it("starts where the options say", () => {
    const clock = new VirtualClock({ nowMs: 500, wallMs: 1_000_000 });
    expect([clock.now(), clock.wall()]).toEqual([500, 1_000_000]);
  });

  it("moves both clocks and ends exactly where told, with or without timers on the way", async () => {
    const clock = new VirtualClock({ wallMs: 1_000 });
    await clock.advance(12.5);
    record(clock, 13);
    await clock.advance(7.5);
    expect([clock.now(), clock.wall()]).toEqual([20, 1_020]);
  });

  it("sets and shifts the wall clock without the monotonic one", async () => {
    const clock = new VirtualClock({ nowMs: 100, wallMs: 5_000 });
    const calls = record(clock, 110);
    clock.shiftWall(-3_600_000);
    expect([clock.now(), clock.wall()]).toEqual([100, 5_000 - 3_600_000]);
    clock.setWall(9_000);
    await clock.advance(10);
    expect([clock.now(), clock.wall()]).toEqual([110, 9_010]);
    expect(calls).toEqual([[110, 110]]);
  });

  it.each([Number.NaN, -1, Number.POSITIVE_INFINITY])("refuses to move by %s and stays usable", async (ms) => {
    const clock = new VirtualClock();
    await expect(clock.advance(ms)).rejects.toThrow(RangeError);
    expect(() => clock.stall(ms)).toThrow(RangeError);
    await clock.advance(1);
    expect(clock.now()).toBe(1);
  });

  it("refuses options and instants that make no sense", () => {
    expect(() => new VirtualClock({ nowMs: Number.NaN })).toThrow("nowMs must be a finite number, got NaN");
    expect(() => new VirtualClock({ timersFireEarlyMs: -1 })).toThrow(RangeError);
    expect(() => new VirtualClock({ maxTimers: 0 })).toThrow(RangeError);
    expect(() => new VirtualClock({ maxTimersPerInstant: 1.5 })).toThrow(RangeError);
    expect(() => new VirtualClock().setTimer(Number.NaN, () => {})).toThrow(RangeError);
    expect(() => new VirtualClock().setTimer(Number.POSITIVE_INFINITY, () => {})).toThrow(RangeError);
  });
});

describe("timers", () => {
  it("are called in order of time, then of being set, each at its own time", async () => {
    const clock = new VirtualClock();
    const calls: string[] = [];
    const add = (atMs: number, name: string): void =>
      void clock.setTimer(atMs, () => calls.push(`${name}@${clock.now()}`));
    add(30, "d");
    add(10, "a");
    add(20, "b");
    add(20, "c");
    await clock.advance(30);
    expect(calls).toEqual(["a@10", "b@20", "c@20", "d@30"]);
  });

  it("are called exactly at the end of the move, and not after it", async () => {
    const clock = new VirtualClock();
    const calls = record(clock, 10, 10.001);
    await clock.advance(10);
    expect(calls).toEqual([[10, 10]]);
    expect(clock.pendingTimers).toBe(1);
  });

  it("that are set on the way count in the same move", async () => {
    const clock = new VirtualClock();
    const times: number[] = [];
    const tick = (): void => {
      times.push(clock.now());
      clock.setTimer(clock.now() + 4, tick);
    };
    clock.setTimer(4, tick);
    await clock.advance(13);
    expect(times).toEqual([4, 8, 12]);
  });

  it("for an instant that has passed wait for the next move, even by 0", async () => {
    const clock = new VirtualClock({ nowMs: 50 });
    const calls = record(clock, 20);
    await clock.settle();
    expect(calls).toEqual([]);
    await clock.advance(0);
    expect(calls).toEqual([[20, 50]]);
  });

  it("that are cleared are not called, wherever in the queue and whenever", async () => {
    const clock = new VirtualClock();
    const calls: number[] = [];
    const timers = Array.from({ length: 100 }, (_, index) => clock.setTimer(index, () => calls.push(index)));
    for (let index = 0; index < 100; index += 1) if (index % 3 !== 0) clock.clearTimer(timers[index]);
    clock.setTimer(9.5, () => clock.clearTimer(timers[12]));
    await clock.advance(100);
    expect(calls).toEqual(Array.from({ length: 34 }, (_, index) => index * 3).filter((index) => index !== 12));
    expect(clock.pendingTimers).toBe(0);
  });

  it("ignores clearing twice, after the call, from inside the call, of another clock and of nothing", async () => {
    const clock = new VirtualClock();
    const other = new VirtualClock();
    const calls = record(clock, 5);
    const foreign = other.setTimer(1, () => {});
    const own: unknown = clock.setTimer(1, () => clock.clearTimer(own));
    await clock.advance(2);
    for (const timer of [own, own, foreign, undefined, null, 7, {}]) clock.clearTimer(timer);
    expect([clock.pendingTimers, other.pendingTimers]).toEqual([1, 1]);
    await clock.advance(10);
    expect(calls).toEqual([[5, 5]]);
  });

  it("that throw reject the move and leave the clock usable", async () => {
    const clock = new VirtualClock();
    clock.setTimer(3, () => {
      throw new Error("from the timer");
    });
    const calls = record(clock, 4);
    await expect(clock.advance(10)).rejects.toThrow("from the timer");
    expect(clock.now()).toBe(3);
    await clock.advance(7);
    expect(calls).toEqual([[4, 4]]);
  });
});

describe("settling", () => {
  it("lets long promise chains run before moving and after each timer", async () => {
    const clock = new VirtualClock();
    const seen: string[] = [];
    const sleep = (ms: number): Promise<void> =>
      new Promise((resolve) => void clock.setTimer(clock.now() + ms, resolve));
    async function program(name: string): Promise<void> {
      for (let step = 0; step < 50; step += 1) await Promise.resolve();
      for (let round = 0; round < 3; round += 1) {
        await sleep(10);
        for (let step = 0; step < 50; step += 1) await Promise.resolve();
        seen.push(`${name}@${clock.now()}`);
      }
    }
    void program("a");
    void program("b");
    await clock.advance(25);
    expect(seen).toEqual(["a@10", "b@10", "a@20", "b@20"]);
    await clock.runToEnd();
    expect(seen.slice(4)).toEqual(["a@30", "b@30"]);
  });

  it("rejects a second move while one runs, also from a timer, and goes on with the first", async () => {
    const clock = new VirtualClock();
    let inner: Promise<void> | undefined;
    clock.setTimer(1, () => {
      inner = clock.advance(1);
      inner.catch(() => {});
    });
    const first = clock.advance(10);
    await expect(clock.runToEnd()).rejects.toThrow("already moving");
    await first;
    await expect(inner).rejects.toThrow("Await each advance()");
    expect(clock.now()).toBe(10);
  });
});

describe("runToEnd", () => {
  it("goes from timer to timer and stays at the last one", async () => {
    const clock = new VirtualClock();
    const calls = record(clock, 2 ** 40, 7);
    await clock.runToEnd();
    expect(calls).toEqual([
      [7, 7],
      [2 ** 40, 2 ** 40],
    ]);
    expect(clock.now()).toBe(2 ** 40);
  });

  it("does not move without timers", async () => {
    const clock = new VirtualClock({ nowMs: 3 });
    await clock.runToEnd();
    expect(clock.now()).toBe(3);
  });

  it("gives up on a timer that repeats for ever", async () => {
    const clock = new VirtualClock({ maxTimers: 1_000 });
    let called = 0;
    const tick = (): void => {
      called += 1;
      clock.setTimer(clock.now() + 1, tick);
    };
    tick();
    await expect(clock.runToEnd()).rejects.toThrow("1000 timers were called, at 1000 ms 1 are pending");
    expect(called).toBe(1_001);
  });
});

describe("a program that spins", () => {
  it("is stopped after so many timers at one instant", async () => {
    const clock = new VirtualClock({ maxTimersPerInstant: 500 });
    const spin = (): void => void clock.setTimer(clock.now(), spin);
    clock.setTimer(5, spin);
    await expect(clock.advance(10)).rejects.toThrow("500 timers were called without time moving");
    expect(clock.now()).toBe(5);
  });

  it("is not one that has as many timers at several instants", async () => {
    const clock = new VirtualClock({ maxTimersPerInstant: 500 });
    const instants = Array.from({ length: 1_000 }, (_, index) => index % 2);
    const calls = record(clock, ...instants);
    await clock.advance(1);
    expect(calls).toHaveLength(1_000);
  });
});

describe("stall", () => {
  it("jumps over timers, which are then called late and in order", async () => {
    const clock = new VirtualClock();
    const calls = record(clock, 30, 10, 20, 80);
    clock.stall(50);
    expect([clock.now(), calls.length]).toEqual([50, 0]);
    await clock.advance(0);
    expect(calls).toEqual([
      [10, 50],
      [20, 50],
      [30, 50],
    ]);
    await clock.advance(30);
    expect(calls[3]).toEqual([80, 80]);
  });

  it("inside a timer makes the later ones late; past the end of the move it stays there", async () => {
    const clock = new VirtualClock();
    clock.setTimer(5, () => clock.stall(20));
    const calls = record(clock, 6, 24, 26);
    await clock.advance(10);
    expect(calls).toEqual([
      [6, 25],
      [24, 25],
    ]);
    expect(clock.now()).toBe(25);
  });
});

describe("timersFireEarlyMs", () => {
  it("calls timers early by that much and shows the early time", async () => {
    const clock = new VirtualClock({ timersFireEarlyMs: 0.8 });
    const calls = record(clock, 10, 20);
    await clock.advance(10);
    expect(calls).toEqual([[10, 9.2]]);
    expect(clock.now()).toBe(10);
  });

  it("reaches the instant when the timer is set again for it", async () => {
    const clock = new VirtualClock({ timersFireEarlyMs: 0.8 });
    const times: number[] = [];
    const wake = (): void => {
      times.push(clock.now());
      if (clock.now() < 10) clock.setTimer(10, wake);
    };
    clock.setTimer(10, wake);
    await clock.runToEnd();
    expect(times).toEqual([9.2, 10]);
  });

  it("never calls before the timer was set", async () => {
    const clock = new VirtualClock({ nowMs: 100, timersFireEarlyMs: 5 });
    const calls = record(clock, 99, 103, 105, 106);
    await clock.runToEnd();
    expect(calls).toEqual([
      [99, 100],
      [106, 101],
      [103, 103],
      [105, 105],
    ]);
  });
});

it("calls 100,000 timers among 10,000 pending ones", async () => {
  const clock = new VirtualClock();
  let called = 0;
  let lastMs = 0;
  let isInOrder = true;
  const tick = (): void => {
    called += 1;
    isInOrder &&= clock.now() >= lastMs;
    lastMs = clock.now();
    clock.setTimer(clock.now() + 1_000, tick);
  };
  for (let index = 0; index < 10_000; index += 1) clock.setTimer(((index * 7_919) % 10_000) / 10 + 0.05, tick);
  await clock.advance(10_000);
  expect([called, isInOrder]).toEqual([100_000, true]);
  expect(clock.pendingTimers).toBe(10_000);
});
