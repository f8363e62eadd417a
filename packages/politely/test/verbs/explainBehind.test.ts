import { expect, it } from "vitest";
import { granted, rig, track } from "./support.js";

it("a forecast behind a heavier request is never later than the start that follows it", async () => {
  const { clock, limiter } = rig({ default: { window: "10/100s" } });
  granted(limiter.tryAcquire("x.example", { cost: 8 }));
  const heavy = track(limiter.acquire("x.example", { cost: 5 }));
  await clock.advance(99_960);
  expect(limiter.explain("x.example")).toMatchObject({ proceed: false, waitMs: 40 });
  const light = track(limiter.acquire("x.example"));
  await clock.advance(40);
  expect([heavy.state, light.state]).toEqual(["done", "done"]);
});
