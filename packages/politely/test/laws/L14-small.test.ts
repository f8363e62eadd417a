import { execFile } from "node:child_process";
import { getEventListeners } from "node:events";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { drained } from "../oracle/script.js";
import { anyEnding, anyScript } from "./arbitraries.js";
import { inFlightCalls, play, waitingCalls } from "./play.js";
import { seeded } from "./seeded.js";
import { anyWorld, toPolicy, worldCost, worldHosts, worldScopes } from "./worlds.js";

const built = new URL("../../dist/index.js", import.meta.url);

describe("L14 small", () => {
  it("has one timer at most for all keys and waiters, and none once nothing is pending", async () => {
    const scene = anyWorld({ quota: true }).chain((world) =>
      fc.tuple(
        fc.constant(world),
        anyScript({
          hosts: worldHosts,
          scopes: worldScopes,
          maxCost: worldCost(world),
          maxWaits: true,
          tries: true,
          cancels: true,
          stalls: true,
          outside: true,
          endings: anyEnding,
        }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([world, body]) => {
        const run = await play(drained(body, 12, 7_000_000), {
          policies: [toPolicy(world)],
          onStep: ({ clock }) => expect(clock.pendingTimers).toBeLessThanOrEqual(1),
        });
        if (waitingCalls(run).length > 0) run.limiter.cancelWaiting();
        await run.clock.settle();
        if (inFlightCalls(run).length === 0) expect(run.clock.pendingTimers).toBe(0);
      }),
      seeded(100),
    );
  });

  it("leaves no timer, listener, waiter or lane behind after 100,000 cancelled waits on many hosts", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { minDelay: 60_000 }, global: { minDelay: 1 } }, { clock, keepStats: 10 });
    const shared = new AbortController();
    let rejections = 0;
    const own: AbortController[] = [];
    for (let index = 0; index < 100_000; index++) {
      const abort = index % 2 === 0 ? shared : new AbortController();
      if (abort !== shared) own.push(abort);
      limiter.acquire(`h${index % 50}.example`, { signal: abort.signal }).catch(() => {
        rejections += 1;
      });
    }
    const granted = 1;
    expect(clock.pendingTimers).toBeLessThanOrEqual(1);
    for (const abort of own) abort.abort();
    shared.abort();
    await clock.settle();
    expect(rejections).toBe(100_000 - granted);
    expect(clock.pendingTimers).toBe(0);
    expect(getEventListeners(shared.signal, "abort")).toHaveLength(0);
    expect(own.every(({ signal }) => getEventListeners(signal, "abort").length === 0)).toBe(true);
    expect(limiter.stats().reduce((sum, row) => sum + row.waiting, 0)).toBe(0);
    await clock.advance(600_000);
    expect(limiter.stats().filter(({ host }) => host !== "*").length).toBeLessThanOrEqual(10 + 1);
  });

  it("removes its listener from a signal when the wait ends in any way", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { minDelay: 1000, maxQueue: 3 } }, { clock });
    const { signal } = new AbortController();
    const listeners = (): number => getEventListeners(signal, "abort").length;
    await limiter.acquire("a.example", { signal });
    expect(listeners()).toBe(0);
    const granted = limiter.acquire("a.example", { signal });
    const expired = limiter.acquire("a.example", { signal, maxWait: 2500 }).catch(() => "expired");
    const dropped = limiter.acquire("a.example", { signal }).catch(() => "dropped");
    await expect(limiter.acquire("a.example", { signal })).rejects.toMatchObject({ code: "POLITELY_QUEUE_FULL" });
    await expect(limiter.acquire("a.example", { signal, maxWait: 1 })).rejects.toBeDefined();
    await expect(limiter.acquire("", { signal })).rejects.toBeInstanceOf(TypeError);
    expect(listeners()).toBeGreaterThan(0);
    await clock.advance(1000);
    await granted;
    limiter.pause("a.example");
    await clock.advance(2000);
    expect(await expired).toBe("expired");
    limiter.cancelWaiting();
    expect(await dropped).toBe("dropped");
    expect(listeners()).toBe(0);
    const closing = limiter.acquire("a.example", { signal }).catch(() => "closed");
    await limiter.close();
    expect(await closing).toBe("closed");
    expect([listeners(), clock.pendingTimers]).toEqual([0, 0]);
  });

  it("keeps nothing of hosts that owe nothing any more", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { window: "3/1s", minDelay: 10, cooldown: 1000 } }, { clock, keepStats: 0 });
    for (let round = 0; round < 20; round++) {
      for (let index = 0; index < 500; index++) limiter.tryAcquire(`r${round}h${index}.example`)?.release("success");
      await clock.advance(5000);
      expect(limiter.stats().map(({ host }) => host)).toEqual(["*"]);
    }
    expect(limiter.stats()[0]).toMatchObject({ waiting: 0, inFlight: 0, totalRequests: 10_000 });
    expect(clock.pendingTimers).toBe(0);
  });

  it.skipIf(!existsSync(built))(
    "lets the process exit with nothing pending, and keeps it while somebody waits",
    async () => {
      const program = (body: string): Promise<{ stdout: string }> => {
        const source = `import { limit } from ${JSON.stringify(built.href)};\n${body}`;
        return promisify(execFile)(process.execPath, ["--input-type=module", "-e", source], { timeout: 20_000 });
      };
      const [idle, waiting] = await Promise.all([
        program(
          `const l = limit({ minDelay: "1h", concurrency: 3 }); await l.acquire(); l.tryAcquire(); console.log("end of program");`,
        ),
        program(
          `const l = limit({ minDelay: 300 }); await l.acquire(); l.acquire().then(() => console.log("started after all"));`,
        ),
      ]);
      expect(idle.stdout).toBe("end of program\n");
      expect(waiting.stdout).toBe("started after all\n");
    },
  );
});
