import { expect, it } from "vitest";
import { metricsRoutes } from "../../src/serve/api/metricsRoutes.js";
import { FakeTicker } from "../view/fakeIo.js";
import { Started } from "./started.js";

it("counts permits that lapsed and callers that were turned away where Prometheus sees them", async () => {
  const ticker = new FakeTicker();
  await using started = await Started.with({ ticker, maxPermits: 2, addData: metricsRoutes });
  const counts = async () => {
    const { text } = await started.get("/metrics");
    const found = [...text.matchAll(/^politely_service_(\w+) (\d+)$/gm)].map(([, name, count]) => [
      name,
      Number(count),
    ]);
    return Object.fromEntries(found) as Record<string, number>;
  };
  expect(await counts()).toMatchObject({ lapsed_permits_total: 0, turned_away_total: 0, permits: 0, waiting: 0 });
  for (const status of [200, 200, 503, 503, 503]) {
    expect((await started.post("/v1/acquire", { domain: "a.org", ttlMs: 1_000 })).status).toBe(status);
  }
  expect(await counts()).toMatchObject({ lapsed_permits_total: 0, turned_away_total: 3, permits: 2 });
  ticker.advance(2_000);
  expect(await counts()).toMatchObject({ lapsed_permits_total: 2, turned_away_total: 3, permits: 0 });
  const { text } = await started.get("/metrics");
  for (const name of ["lapsed_permits", "turned_away"]) {
    expect(text.match(new RegExp(`^# (HELP|TYPE) politely_service_${name}`, "gm"))).toHaveLength(2);
  }
  expect(text.endsWith("\n")).toBe(true);
});
