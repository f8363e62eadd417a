import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../src/testing/index.js";
import { granted, rig, track } from "../verbs/support.js";

const wallMs = Date.UTC(2026, 0, 1, 12);
const dayMs = 86_400_000;
const policy = { default: { quota: { count: 1, per: "day" } } } as const;

describe("somebody who waits for a quota", () => {
  it("starts within a minute of a wall clock that jumps to the next day, as after a laptop's sleep", async () => {
    const { clock, limiter } = rig(policy, { clock: new VirtualClock({ wallMs }) });
    granted(limiter.tryAcquire("a.example"));
    const waiting = track(limiter.acquire("a.example"));
    await clock.advance(1_000);
    clock.setWall(wallMs + dayMs);
    await clock.advance(60_000);
    expect(waiting.value?.startedAtMs).toBe(60_000);
  });

  it("starts at the first instant of the next day when nothing jumps, and never before", async () => {
    const { clock, limiter } = rig(policy, { clock: new VirtualClock({ wallMs: wallMs + 500 }) });
    granted(limiter.tryAcquire("a.example"));
    const waiting = track(limiter.acquire("a.example"));
    await clock.advance(dayMs / 2 - 501);
    expect(waiting.state).toBe("pending");
    await clock.advance(1);
    expect(waiting.value?.startedAtMs).toBe(dayMs / 2 - 500);
  });

  it("waits longer when the wall clock is set back", async () => {
    const { clock, limiter } = rig(policy, { clock: new VirtualClock({ wallMs }) });
    granted(limiter.tryAcquire("a.example"));
    const waiting = track(limiter.acquire("a.example"));
    await clock.advance(1_000);
    clock.setWall(wallMs - 3_600_000);
    await clock.advance(dayMs / 2);
    expect(waiting.state).toBe("pending");
    await clock.advance(3_600_000 + 1_000);
    expect(waiting.value?.startedAtMs).toBe(dayMs / 2 + 3_600_000 + 1_000);
  });

  it("does not lose sight of a longer stop at another key meanwhile", async () => {
    const { clock, limiter } = rig({ ...policy, global: { minDelay: "10m" } }, { clock: new VirtualClock({ wallMs }) });
    granted(limiter.tryAcquire("a.example"));
    const waiting = track(limiter.acquire("a.example"));
    clock.setWall(wallMs + dayMs);
    await clock.advance(599_999);
    expect(waiting.state).toBe("pending");
    await clock.advance(1);
    expect(waiting.value?.startedAtMs).toBe(600_000);
  });
});
