import { describe, expect, it } from "vitest";
import { politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";

describe("tokens", () => {
  it("are 0 while more was recorded than the bucket holds, and the debt is in the wait", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { rate: "1/s", burst: 2 } }, { clock });
    for (let index = 0; index < 5; index++) limiter.record("a.example", "success");
    expect(limiter.stats("a.example")?.tokens).toBe(0);
    expect(limiter.stats()[0].tokens).toBe(0);
    expect(limiter.explain("a.example").waitMs).toBe(4000);
    await clock.advance(3000);
    expect(limiter.stats("a.example")?.tokens).toBe(0);
    await clock.advance(500);
    expect(limiter.stats("a.example")?.tokens).toBe(0.5);
  });

  it("are 0 after a correction of cost beyond the bucket", () => {
    const limiter = politely({ default: { rate: "1/s", burst: 2 } }, { clock: new VirtualClock() });
    limiter.tryAcquire("a.example")?.release("success", { cost: 9 });
    expect(limiter.stats("a.example")?.tokens).toBe(0);
  });
});
