import { expect, it } from "vitest";
import { metricsRoutes } from "../../src/serve/api/metricsRoutes.js";
import { feedRoutes } from "../../src/serve/feed/feedRoutes.js";
import { openState } from "../../src/serve/state.js";
import { Place } from "../get/place.js";
import { FakeTicker } from "../view/fakeIo.js";
import { Started, type StartOptions, until } from "./started.js";

const policy = { default: { rate: "1/h", burst: 3 } } as const;

/** A service whose state is in a store. */
async function start(options: StartOptions = {}): Promise<Started> {
  const place = new Place();
  const state = await openState({ policy, cwd: place.path, data: "state.db" });
  const started = await Started.with({
    policy,
    wrap: () => state.limiter,
    store: state.store,
    addData: (app, parts) => {
      metricsRoutes(app, parts);
      feedRoutes(app, { limiter: parts.limiter, policy: () => parts.book.current(), isWritable: false });
    },
    ...options,
  });
  started.server.once("close", () => void state.close().finally(() => place[Symbol.dispose]()));
  return started;
}

/** Makes a request that is answered with 429. */
async function throttled(started: Started, domain: string, headers = { "retry-after": "30" }): Promise<void> {
  const { body } = await started.post("/v1/acquire", { domain });
  expect((await started.post("/v1/release", { permit: body.permit, status: 429, headers })).status).toBe(204);
}

async function metric(started: Started, name: string): Promise<number | undefined> {
  const { text } = await started.get("/metrics");
  const found = new RegExp(`^politely_${name}\\{host="a.org"\\} (.*)$`, "m").exec(text);
  return found === null ? undefined : Number(found[1]);
}

it("tells Prometheus of the cooldowns and tokens of a service with a store", async () => {
  const ticker = new FakeTicker();
  await using started = await start({ ticker });
  await throttled(started, "a.org");
  expect(await metric(started, "cooldown_seconds")).toBeGreaterThan(29);
  expect(await metric(started, "cooldown_seconds")).toBeLessThanOrEqual(30);
  expect(await metric(started, "tokens_available")).toBeCloseTo(2, 1);
  ticker.advance(29_000);
  expect(await metric(started, "cooldown_seconds")).toBeCloseTo(1, 1);
  ticker.advance(1_000);
  expect(await metric(started, "cooldown_seconds")).toBe(0);
});

it("says null for what it does not know of all hosts with a store, and what the store says of one", async () => {
  const ticker = new FakeTicker();
  await using started = await start({ ticker });
  await throttled(started, "a.org");
  await started.post("/v1/acquire", { domain: "b.org" });
  const { body } = await started.get("/v1/stats");
  expect(body.stats).toMatchObject([
    { domain: "a.org", cooldown_ms: expect.closeTo(30_000, -3) as number, tokens: null },
    { domain: "b.org", cooldown_ms: null, tokens: null },
  ]);
  ticker.advance(30_000);
  expect((await started.get("/v1/stats")).body.stats).toMatchObject([{ cooldown_ms: null }, { cooldown_ms: null }]);
  const { body: one } = await started.get("/v1/stats/b.org");
  expect(one).toMatchObject({ cooldown_ms: 0, tokens: expect.closeTo(2, 1) as number });
});

it("draws each 429 once in the timeline, though the store tells of its cooldown later than the release", async () => {
  await using started = await start();
  const cooldowns: string[] = [];
  const told = new AbortController();
  const events = await fetch(`${started.url}/v1/events?type=cooldown`, { signal: told.signal });
  void (async () => {
    for await (const chunk of events.body ?? [])
      cooldowns.push(...(String(Buffer.from(chunk)).match(/event: cooldown/g) ?? []));
  })().catch(() => undefined);
  for (const domain of ["a.org", "b.org", "c.org"]) await throttled(started, domain);
  await until(() => cooldowns.length === 3, "all cooldowns are told");
  const sum = async (path: string): Promise<number> =>
    ((await started.get(path)).body.throttled as number[]).reduce((whole, part) => whole + part, 0);
  expect(await sum("/v1/timeline")).toBe(3);
  expect(await sum("/v1/timeline/a.org")).toBe(1);
  // One that nobody had a permit for is told by its cooldown alone.
  await started.post("/v1/record", { domain: "d.org", status: 429 });
  await until(() => cooldowns.length === 4, "its cooldown is told");
  expect([await sum("/v1/timeline"), await sum("/v1/timeline/d.org")]).toEqual([4, 1]);
  told.abort();
});
