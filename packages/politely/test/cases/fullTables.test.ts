import { expect, it } from "vitest";
import { CapacityError } from "../../src/index.js";
import { granted, keyRig, many, rig } from "../verbs/support.js";

it("refuses with a CapacityError and nothing else where new hosts come with new intents", async () => {
  const limits = { minDelay: 1000, intents: { search: { minDelay: "10s" } } } as const;
  const { clock, limiter } = rig({ hosts: { "*.x.example": limits } }, { maxKeys: 12_000 });
  const others: unknown[] = [];
  let refused = 0;
  for (let n = 0; n < 34_500; n++) {
    if (n % 115 === 0) await clock.advance(100);
    try {
      limiter.tryAcquire({ host: `h${n}.x.example`, intent: "search" })?.release();
    } catch (error) {
      if (error instanceof CapacityError) refused += 1;
      else others.push(error);
    }
  }
  expect(others.slice(0, 1)).toEqual([]);
  // 11,500 of 12,000 owe at any time.
  expect(refused).toBe(0);
});

it("a released permit counts as released whatever another host has lost", async () => {
  const policy = { default: { minDelay: 1 }, hosts: { "a.example": { minDelay: 1, maxHold: "1s" } } } as const;
  const { clock, limiter } = rig(policy);
  const permit = granted(limiter.tryAcquire("b.example"));
  await clock.advance(10);
  granted(limiter.tryAcquire("a.example"));
  await clock.advance(2000);
  limiter.stats();
  limiter.configure(policy);
  await clock.advance(10);
  permit.release();
  expect(limiter.stats("b.example")?.inFlight).toBe(0);
});
it("scopes that owe nothing make room for others", async () => {
  const { clock, limiter } = rig({ default: { minDelay: 1 }, scopes: { "key:*": { minDelay: 1 } } }, { maxKeys: 3 });
  for (let key = 0; key < 4; key++) {
    granted(limiter.tryAcquire({ host: "a.example", scopes: [`key:${key}`] })).release();
    await clock.advance(1000);
  }
});
it("places of permits never released are free again after maxHold, also where concurrency came later", async () => {
  const { clock, limiter } = keyRig({ minDelay: 0 });
  many(2, () => granted(limiter.tryAcquire()));
  limiter.configure({ concurrency: 3 });
  for (let i = 0; i < 120; i++) {
    await clock.advance(30_000);
    granted(limiter.tryAcquire()).release();
  }
  expect(many(3, () => limiter.tryAcquire()).filter(Boolean)).toHaveLength(3);
});
it("a start made by reset itself is counted, without statistics per host too", async () => {
  const { limiter } = keyRig({ rate: "1/s" }, { keepStats: 0 });
  granted(limiter.tryAcquire());
  const next = limiter.acquire();
  limiter.reset("all");
  await next;
  expect(limiter.stats().totalRequests).toBe(1);
});
