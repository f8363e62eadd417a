import { describe, expect, it } from "vitest";
import { exact, granted, rig, track } from "../verbs/support.js";

const global = { rate: "100/s", burst: 100 } as const;

describe("a lane that has waited longer than ageing reserves nothing for everybody", () => {
  it("while it waits for the gap of its own host", async () => {
    const { clock, limiter } = rig({ hosts: { "slow.example": { minDelay: "60s" } }, default: {}, global });
    const first = await limiter.acquire("slow.example");
    const waiting = track(limiter.acquire("slow.example"));
    await clock.advance(15_000);
    first.release("success");
    expect(limiter.tryAcquire("other.example")).toBeDefined();
    await clock.advance(45_000);
    expect(waiting.value?.startedAtMs).toBe(60_000);
  });

  it("while its host is held for an hour", async () => {
    const { clock, limiter } = rig({ default: { concurrency: 2 }, global });
    const [refused, plain] = [await limiter.acquire("slow.example"), await limiter.acquire("slow.example")];
    const waiting = track(limiter.acquire("slow.example"));
    await clock.advance(1_000);
    refused.release({ kind: "rate_limited", retryAfterMs: 3_600_000 });
    await clock.advance(15_000);
    plain.release();
    const other = track(limiter.acquire("other.example"));
    await clock.advance(7_200_000);
    expect(other.value?.startedAtMs).toBe(16_000);
    expect(exact(waiting.value?.startedAtMs ?? 0)).toBeGreaterThanOrEqual(3_601_000);
  });

  it("when the one who had waited so long is gone", async () => {
    const { clock, limiter } = rig({ default: {}, hosts: { "slow.example": { minDelay: "1h" } }, global });
    granted(limiter.tryAcquire("slow.example"));
    const controller = new AbortController();
    const old = track(limiter.acquire("slow.example", { signal: controller.signal }));
    await clock.advance(11_000);
    const young = track(limiter.acquire("slow.example"));
    controller.abort();
    expect(limiter.tryAcquire("other.example")).toBeDefined();
    await clock.settle();
    expect([old.state, young.state]).toEqual(["failed", "pending"]);
  });

  it("when a start recorded from outside has just been counted for its host", async () => {
    const { clock, limiter } = rig({ default: {}, hosts: { "slow.example": { minDelay: "60s" } }, global });
    granted(limiter.tryAcquire("slow.example"));
    await clock.advance(20_000);
    const waiting = track(limiter.acquire("slow.example"));
    await clock.advance(11_000);
    limiter.record("slow.example", { kind: "success" }, { startedAtMs: 0 });
    const other = track(limiter.acquire("other.example"));
    await clock.advance(1_000);
    expect([other.value?.startedAtMs, waiting.state]).toEqual([31_000, "pending"]);
  });
});
