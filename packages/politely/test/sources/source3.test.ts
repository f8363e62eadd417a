import { describe, expect, it } from "vitest";
import { DeadlineError } from "../../src/index.js";
import { exclusive } from "../../src/lease.js";
import { memoryStore } from "../../src/stores/memory.js";
import { VirtualClock } from "../../src/testing/index.js";
import { expectBooks, failure, granted, keyRig, many, only, rig, startsOf, track } from "../verbs/support.js";

const tdnet = { rate: "0.5/s", burst: 5 } as const;

describe("source 3, the three layers of the collector", () => {
  it("S3.1 the bucket is full at the start: five go at once, then one each two seconds", async () => {
    const { clock, limiter } = keyRig(tdnet);
    const permits = many(8, () => limiter.acquire());
    await clock.advance(6_000);
    expect(await startsOf(permits)).toEqual([0, 0, 0, 0, 0, 2_000, 4_000, 6_000]);
  });

  it("S3.1 the tokens available can be read, parts of one too", async () => {
    const { clock, limiter } = keyRig(tdnet);
    expect(limiter.stats().tokens).toBe(5);
    await limiter.acquire();
    expect(limiter.stats().tokens).toBe(4);
    await clock.advance(1_000);
    expect(limiter.stats().tokens).toBeCloseTo(4.5, 6);
    await clock.advance(60_000);
    expect(limiter.stats().tokens).toBe(5);
  });

  it("S3.1 several tokens can be taken at once, and are waited for together", async () => {
    const { clock, limiter } = keyRig(tdnet);
    await limiter.acquire({ cost: 4 });
    const three = limiter.acquire({ cost: 3 });
    await clock.advance(3_999);
    expect(limiter.stats().waiting).toBe(1);
    await clock.advance(1);
    expect((await three).startedAtMs).toBe(4_000);
  });

  it("S3.1 waiters at the same moment never share a token", async () => {
    const { clock, limiter } = keyRig(tdnet);
    await limiter.acquire({ cost: 5 });
    const waiting = many(50, () => limiter.acquire());
    await clock.advance(100_000);
    expect(await startsOf(waiting)).toEqual(many(50, (index) => 2_000 * (index + 1)));
  });

  it("S3.2 with a concurrency of 1 a run begins when the one before it has ended", async () => {
    const { clock, limiter } = keyRig({ concurrency: 1 });
    let running = 0;
    let most = 0;
    const runs = many(5, () =>
      limiter.run(async () => {
        running += 1;
        most = Math.max(most, running);
        await new Promise<void>((resolve) => void clock.setTimer(clock.now() + 1_000, resolve));
        running -= 1;
        return clock.now();
      }),
    );
    await clock.advance(5_000);
    expect(await Promise.all(runs)).toEqual([1_000, 2_000, 3_000, 4_000, 5_000]);
    expect(most).toBe(1);
  });

  it("S3.3 of 100 simultaneous starts that may not wait, exactly 1 runs and 99 are refused, saying why", async () => {
    const { clock, limiter } = keyRig({ concurrency: 1, maxHold: "300s" });
    const starts = many(100, () => track(limiter.acquire({ maxWait: 0 })));
    await clock.settle();
    expect(starts.filter((start) => start.state === "done")).toHaveLength(1);
    const refused = starts.filter((start) => start.state === "failed");
    expect(refused).toHaveLength(99);
    expect(refused.every((start) => start.error instanceof DeadlineError && start.error.reason.length > 0)).toBe(true);
    expectBooks(limiter.stats());
  });

  it("S3.3 a run that never ends gives its place back after its lifetime", async () => {
    const { clock, limiter } = keyRig({ concurrency: 1, maxHold: "300s" });
    granted(limiter.tryAcquire());
    await clock.advance(299_999);
    expect(limiter.tryAcquire()).toBeUndefined();
    await clock.advance(1);
    expect(limiter.tryAcquire()).toBeDefined();
  });

  it("S3.3 the late end of a run whose lifetime had passed does not free the place of the one after it", async () => {
    const { clock, limiter } = keyRig({ concurrency: 1, maxHold: "300s" });
    const crashed = granted(limiter.tryAcquire());
    await clock.advance(300_000);
    granted(limiter.tryAcquire());
    crashed.release("success");
    expect(limiter.tryAcquire()).toBeUndefined();
    expect(limiter.stats()).toMatchObject({ inFlight: 1, lapsed: 1 });
  });

  it("S3.4 a scheduled run and a manual one that meet go one after the other", async () => {
    const { clock, limiter } = rig({ hosts: { "tdnet.example": { ...tdnet, concurrency: 1 } } });
    const scheduled = await limiter.acquire("tdnet.example");
    const manual = track(limiter.acquire("tdnet.example"));
    await clock.advance(30_000);
    expect(manual.state).toBe("pending");
    scheduled.release("success");
    await clock.advance(0);
    expect(manual.value?.startedAtMs).toBe(30_000);
  });

  it("S3.4 new limits that arrive during a run hold for those already waiting", async () => {
    const { clock, limiter } = rig({ hosts: { "tdnet.example": { minDelay: "1s" } } });
    const permits = many(3, () => limiter.acquire("tdnet.example"));
    await clock.advance(500);
    limiter.configure({ hosts: { "tdnet.example": { minDelay: "2s" } } });
    await clock.advance(3_500);
    expect(await startsOf(permits)).toEqual([0, 2_000, 4_000]);
  });

  it("S3.2 and S3.3 of 100 runs that start at once on any machines 1 runs, and 99 end at once with who is running and until when", async () => {
    const { start } = collector();
    const ended = await Promise.all(many(100, (index) => start(`machine ${index}`, 60_000)));
    const answers = ended.map(({ status }) => status);
    expect([answers.filter((status) => status === 202), answers.filter((status) => status === 409)]).toEqual([
      [202],
      many(99, () => 409),
    ]);
    expect(ended[99].body).toBe("already running: machine 0, for 300 s unless it ends before");
  });

  it("S3.3 a run that crashed frees its lease 300 s after its last sign of life, without a sweep", async () => {
    const { clock, store, start } = collector();
    // A crash: the clock of that machine stands still, so nothing renews.
    await exclusive(store, "tdnet", { ttl: "300s", clock: new VirtualClock() });
    await clock.advance(299_999);
    expect((await start("the next", 1_000)).status).toBe(409);
    await clock.advance(1);
    expect((await start("the next", 1_000)).status).toBe(202);
  });

  it("S3.3 a run of an hour keeps its lease of 300 s, and the late end of a crashed one does not take it away", async () => {
    const { clock, store, start } = collector();
    const crashedClock = new VirtualClock();
    const crashed = await exclusive(store, "tdnet", { ttl: "300s", clock: crashedClock });
    await clock.advance(300_000);
    expect((await start("long", 3_600_000)).status).toBe(202);
    crashedClock.stall(300_000);
    if (crashed.held) await crashed.release();
    await clock.advance(3_599_999);
    expect((await start("the next", 1_000)).status).toBe(409);
    await clock.advance(1);
    expect((await start("the next", 1_000)).status).toBe(202);
  });

  it("S3.4 a manual call during the scheduled run is told so, and one from the old deployment during the new one's too", async () => {
    const { clock, start } = collector();
    expect((await start("schedule, version 1", 30_000)).status).toBe(202);
    await clock.advance(10_000);
    expect(await start("manual, version 1", 30_000)).toMatchObject({ status: 409 });
    await clock.advance(20_000);
    expect((await start("manual, version 2", 30_000)).status).toBe(202);
    const { status, body } = await start("schedule, version 1", 30_000);
    expect([status, body]).toEqual([409, "already running: manual, version 2, for 300 s unless it ends before"]);
  });

  it("S3.5 a policy may say who is calling and how to reach them", () => {
    const { limiter } = rig({ http: { userAgent: "collector/1.0", contact: "mailto:ops@example.org" } });
    expect(limiter.check("tdnet.example").proceed).toBe(true);
  });

  it("S3.5 after an error the next request never goes at once, and each further error makes it later", async () => {
    const { clock, limiter } = keyRig({ ...tdnet, backoff: "exponential" });
    const waits: number[] = [];
    for (let index = 0; index < 4; index += 1) {
      const permit = await limiter.acquire();
      permit.release("server_error");
      waits.push(limiter.check().waitMs);
      await clock.advance(waits[index]);
    }
    expect(waits).toEqual([5_000, 10_000, 20_000, 40_000]);
  });

  it("S3.6 tokens, waits, intervals, refusals and the number in flight can be read", async () => {
    const { clock, limiter, events } = keyRig({ rate: "0.5/s", burst: 1, concurrency: 2 });
    const permits = many(3, () => limiter.acquire());
    await clock.advance(2_000);
    expect(limiter.stats()).toMatchObject({ inFlight: 2, waiting: 1, meanIntervalMs: 2_000 });
    (await permits[0]).release("success");
    await clock.advance(2_000);
    expect(only(events, "grant").map((event) => event.waitedMs)).toEqual([0, 2_000, 4_000]);
    expect(limiter.stats().tokens).toBe(0);
    await failure(limiter.acquire({ maxWait: 0 }));
    expect(only(events, "refuse")).toHaveLength(1);
    expect(limiter.stats().refused).toBe(1);
  });
});

/** The handler of source 3: one run at a time in the whole fleet, with a lease of 300 s around it. */
function collector() {
  const clock = new VirtualClock();
  const store = memoryStore(() => clock.now() * 1_000);
  const start = async (label: string, runMs: number): Promise<{ status: number; body: string }> => {
    const lease = await exclusive(store, "tdnet", { ttl: "300s", label, clock });
    if (!lease.held) {
      const seconds = Math.ceil(lease.remainingMs / 1_000);
      return { status: 409, body: `already running: ${lease.heldBy}, for ${seconds} s unless it ends before` };
    }
    clock.setTimer(clock.now() + runMs, () => void lease.release());
    return { status: 202, body: "started" };
  };
  return { clock, store, start };
}
