import { describe, expect, it } from "vitest";
import { granted, rig } from "../verbs/support.js";

describe("idle", () => {
  it("leaves no timer behind once everything has come back", async () => {
    const { clock, limiter } = rig({ default: { concurrency: 1 } });
    const permit = granted(limiter.tryAcquire("a.example"));
    const idle = limiter.idle();
    permit.release();
    await idle;
    expect(clock.pendingTimers).toBe(0);
  });
});
