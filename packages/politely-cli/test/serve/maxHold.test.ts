import { politely } from "politely";
import { type ChangeCells, cellStore } from "politely/store";
import { VirtualClock } from "politely/testing";
import { expect, it } from "vitest";
import { metricsRoutes } from "../../src/serve/api/metricsRoutes.js";
import type { ServiceLimiter } from "../../src/serve/serviceLimiter.js";
import { Started } from "./started.js";

const policy = { default: { concurrency: 1, maxHold: "2s" } } as const;

/** A service whose permit at x.org was held for longer than `maxHold`, and its place given to another caller. */
async function overtaken(clock: VirtualClock): Promise<{ started: Started; first: unknown; second: unknown }> {
  const started = await Started.with({ limiter: politely(policy, { clock }), policy, addData: metricsRoutes });
  const ask = async (): Promise<unknown> => (await started.post("/v1/acquire", { domain: "x.org" })).body.permit;
  const first = await ask();
  await clock.advance(2_000);
  return { started, first, second: await ask() };
}

it.each(["renew", "release"])("answers a %s with 404 once the place has gone to another caller", async (verb) => {
  const { started: service, first, second } = await overtaken(new VirtualClock());
  await using started = service;
  const refused = await started.post(`/v1/${verb}`, { permit: first });
  expect([refused.status, refused.body.code]).toEqual([404, "lapsed"]);
  expect(refused.body.detail).toContain("maxHold");
  expect((await started.post("/v1/renew", { permit: first })).body.code).toBe("lapsed");
  expect((await started.post("/v1/renew", { permit: second })).status).toBe(200);
  expect((await started.post("/v1/release", { permit: second })).status).toBe(204);
  expect(started.limiter.stats("x.org")).toMatchObject({ granted: 2, lapsed: 1, released: 1, inFlight: 0 });
  // The limiter has counted it, and once is enough.
  expect((await started.get("/metrics")).text).toContain("politely_service_lapsed_permits_total 0\n");
  expect(started.service.permits.size).toBe(0);
});

/** A limiter whose places are in a store that lives in virtual time, too. */
function limiterWithStore(clock: VirtualClock): ServiceLimiter {
  const cells = new Map<string, string>();
  const store = cellStore({
    name: "cells",
    timeline: "machine",
    async change<Answer>(keys: readonly string[], change: ChangeCells<Answer>): Promise<Answer> {
      const values = keys.map((key) => cells.get(key));
      const { writes, answer } = change(values, Math.floor(clock.now() * 1_000));
      for (const { index, value } of writes) cells.set(keys[index], value);
      return answer;
    },
  });
  return politely(policy, { clock, store });
}

it.each(["renew", "release"])("answers a %s with 404 at maxHold with a store, too", async (verb) => {
  const clock = new VirtualClock();
  const limiter = limiterWithStore(clock);
  const ticker = { nowMs: () => clock.now(), every: () => () => undefined };
  const wrap = (): ServiceLimiter => limiter;
  await using started = await Started.with({ wrap, store: "sqlite", policy, ticker, addData: metricsRoutes });
  const { body } = await started.post("/v1/acquire", { domain: "x.org" });
  await clock.advance(1_000);
  expect((await started.post("/v1/renew", { permit: body.permit })).status).toBe(200);
  // A process looks at its places three times in each permitTtl.
  await clock.advance(10_000);
  const refused = await started.post(`/v1/${verb}`, { permit: body.permit });
  expect([refused.status, refused.body.code]).toEqual([404, "lapsed"]);
  expect(refused.body.detail).toMatch(/lapsed 9 s ago.*maxHold/);
  expect(await limiter.stats("x.org")).toMatchObject({ granted: 1, lapsed: 1, released: 0, inFlight: 0 });
  // The limiter has counted it, and once is enough.
  expect((await started.get("/metrics")).text).toContain("politely_service_lapsed_permits_total 0\n");
  expect(started.service.permits.size).toBe(0);
  await limiter.close();
});
