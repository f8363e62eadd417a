import { describe, expect, it } from "vitest";
import { type OriginBehaviour, type OriginLatency, VirtualClock, VirtualOrigin } from "../../src/testing/index.js";

/** When the answers to `count` requests at once come, in order. */
async function answersAt(behaviour: OriginBehaviour & { readonly seed?: number }, count: number): Promise<number[]> {
  const clock = new VirtualClock();
  const origin = new VirtualOrigin({ clock, ...behaviour });
  const atMs: number[] = [];
  for (let index = 0; index < count; index += 1)
    void origin.fetch("https://a.test/").then(() => atMs.push(clock.now()));
  await clock.runToEnd();
  return atMs;
}

describe("latency", () => {
  it("is none unless asked for, and needs no timer then", async () => {
    const clock = new VirtualClock();
    await new VirtualOrigin({ clock }).fetch("https://a.test/");
    expect([clock.now(), clock.pendingTimers]).toEqual([0, 0]);
  });

  it("may be fixed", async () => {
    expect(await answersAt({ latency: 40 }, 2)).toEqual([40, 40]);
    expect(await answersAt({ latency: 40.5 }, 1)).toEqual([40.5]);
  });

  it("may be uniform between two bounds", async () => {
    const atMs = await answersAt({ latency: { kind: "uniform", minMs: 100, maxMs: 200 } }, 1_000);
    expect(atMs[0]).toBeGreaterThanOrEqual(100);
    expect(atMs[0]).toBeLessThan(102);
    expect(atMs[999]).toBeLessThanOrEqual(200);
    expect(atMs[999]).toBeGreaterThan(198);
    expect(Math.abs(atMs[500] - 150)).toBeLessThan(10);
  });

  it("may be log-normal around a median, with an upper bound", async () => {
    const atMs = await answersAt({ latency: { kind: "log-normal", medianMs: 100, sigma: 0.5, maxMs: 400 } }, 2_000);
    expect(Math.abs(atMs[1_000] - 100)).toBeLessThan(8);
    // One deviation is a factor of e^0.5 = 1.65, with 16 % on either side.
    expect(Math.abs(atMs[320] - 100 / 1.6487)).toBeLessThan(6);
    expect(Math.abs(atMs[1_680] - 100 * 1.6487)).toBeLessThan(15);
    expect(atMs[1_999]).toBe(400);
  });

  it("may be a queue that grows with the load: two workers, 100 ms each", async () => {
    const latency: OriginLatency = { kind: "queue", service: 100, workers: 2 };
    expect(await answersAt({ latency }, 5)).toEqual([100, 100, 200, 200, 300]);
  });

  it("of a queue goes back to the time of one service when the load is gone", async () => {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({ clock, latency: { kind: "queue", service: 100, workers: 1 } });
    const atMs: number[] = [];
    for (const callMs of [0, 0, 150, 1_000]) {
      clock.setTimer(callMs, () => void origin.fetch("https://a.test/").then(() => atMs.push(clock.now())));
    }
    await clock.runToEnd();
    expect(atMs).toEqual([100, 200, 300, 1_100]);
  });

  it("of a queue begins after what nginx holds back, and does not keep others from a free worker", async () => {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({
      clock,
      latency: { kind: "queue", service: 100, workers: 1 },
      limits: [{ kind: "leaky-bucket", rate: "1/s", burst: 1, countBy: { header: "key" } }],
    });
    const atMs: string[] = [];
    for (const key of ["a", "a", "b"]) {
      void origin.fetch("https://a.test/", { headers: { key } }).then(() => atMs.push(`${key} ${clock.now()}`));
    }
    await clock.runToEnd();
    expect(atMs).toEqual(["a 100", "b 200", "a 1100"]);
  });

  it("of a refusal is the same, but none in a queue, and may be its own", async () => {
    const limits = [{ kind: "sliding-window", rate: "1/s" }] as const;
    expect(await answersAt({ limits, latency: 30 }, 2)).toEqual([30, 30]);
    expect(await answersAt({ limits, latency: { kind: "queue", service: 30, workers: 1 } }, 2)).toEqual([0, 30]);
    expect(await answersAt({ limits, latency: 30, refusal: { latency: 5 } }, 2)).toEqual([5, 30]);
  });

  it("is the same for the same seed, and another for another", async () => {
    const latency: OriginLatency = { kind: "log-normal", medianMs: 80, sigma: 1 };
    const first = await answersAt({ latency, seed: 3 }, 50);
    expect(await answersAt({ latency, seed: 3 }, 50)).toEqual(first);
    expect(await answersAt({ latency, seed: 4 }, 50)).not.toEqual(first);
    expect(new Set(first).size).toBeGreaterThan(45);
  });
});

describe("travel", () => {
  it("lets requests arrive later than they were sent, and pass each other", async () => {
    const clock = new VirtualClock();
    const origin = new VirtualOrigin({ clock, travel: { kind: "uniform", minMs: 0, maxMs: 50 } });
    for (let index = 0; index < 40; index += 1) void origin.fetch(`https://a.test/${index}`);
    expect(origin.total).toBe(0);
    await clock.runToEnd();
    const order = origin.requests.map(({ path }) => Number(path.slice(1)));
    expect(order).not.toEqual([...order].sort((a, b) => a - b));
    expect([...order].sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, index) => index));
    expect(origin.requests.every(({ atMs }) => atMs >= 0 && atMs <= 50)).toBe(true);
  });
});
