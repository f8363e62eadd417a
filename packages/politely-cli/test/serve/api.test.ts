import { politely } from "politely";
import { VirtualClock } from "politely/testing";
import { expect, it } from "vitest";
import { FakeTicker } from "../view/fakeIo.js";
import { Started } from "./started.js";

const slow = { hosts: { "slow.org": { rate: "1/min" } } } as const;

it("checks without taking anything, and says why it would wait", async () => {
  await using started = await Started.with({ policy: slow });
  const domain = "https://slow.org/a?b";
  for (let asked = 0; asked < 3; asked++) {
    expect((await started.post("/v1/check", { domain })).body).toEqual({ proceed: true, waitMs: 0 });
  }
  await started.post("/v1/acquire", { domain });
  const { status, body } = await started.post("/v1/check", { domain, intent: "search" });
  expect(status).toBe(200);
  expect(body).toMatchObject({ proceed: false, reason: expect.stringContaining("1/min") as unknown });
  expect(body.waitMs).toBeGreaterThan(50_000);
});

it("grants in turn, holds a caller until its turn, and frees the place with release", async () => {
  await using started = await Started.with({ policy: { hosts: { "one.org": { concurrency: 1 } } } });
  const first = await started.post("/v1/acquire", { domain: "one.org", ttlMs: 5_000 });
  expect(first.body).toEqual({
    permit: expect.stringMatching(/^[\w-]{22}$/) as unknown,
    domain: "one.org",
    waitedMs: 0,
    ttlMs: 5_000,
  });
  const second = started.post("/v1/acquire", { domain: "ONE.org." });
  const early = await Promise.race([second, new Promise((resolve) => setTimeout(resolve, 50, "waits"))]);
  expect(early).toBe("waits");
  expect((await started.post("/v1/release", { permit: first.body.permit })).status).toBe(204);
  expect((await second).body).toMatchObject({ domain: "one.org", ttlMs: 60_000 });
});

it("refuses at once what cannot start within maxWaitMs, with the wait, the reason and Retry-After", async () => {
  await using started = await Started.with({ policy: slow });
  await started.post("/v1/acquire", { domain: "slow.org" });
  const { status, headers, body } = await started.post("/v1/acquire", { domain: "slow.org", maxWaitMs: 1_000 });
  expect(status).toBe(429);
  expect(body).toMatchObject({ code: "POLITELY_DEADLINE", reason: expect.stringContaining("1/min") as unknown });
  expect(Number(headers.get("retry-after"))).toBe(Math.ceil(Number(body.waitMs) / 1_000));
});

it("answers 503 with Retry-After when the lane of a domain is full", async () => {
  await using started = await Started.with({ policy: { default: { rate: "1/min", maxQueue: 0 } } });
  await started.post("/v1/acquire", { domain: "x.org" });
  const { status, headers, body } = await started.post("/v1/acquire", { domain: "x.org" });
  expect([status, body.code, headers.get("retry-after")]).toEqual([503, "POLITELY_QUEUE_FULL", "1"]);
});

it("tells a second release from a lapsed permit and from a foreign one", async () => {
  const ticker = new FakeTicker();
  await using started = await Started.with({ ticker });
  const [released, lapsed] = await Promise.all(
    [1, 2].map(async () => (await started.post("/v1/acquire", { domain: "x.org", ttlMs: 1_000 })).body.permit),
  );
  await started.post("/v1/release", { permit: released });
  ticker.advance(13_100);
  const answers = await Promise.all(
    [released, lapsed, "AAAAAAAAAAAAAAAAAAAAAA"].map((permit) => started.post("/v1/release", { permit })),
  );
  expect(answers.map(({ status, body }) => [status, body.code, body.detail])).toEqual([
    [404, "released", "The permit was released already, 13 s ago."],
    [404, "lapsed", expect.stringContaining("lapsed 12 s ago") as unknown],
    [404, "unknown", "The permit is not known here."],
  ]);
  for (const { body } of answers) expect(body.errors).toEqual([{ field: "permit", message: body.detail }]);
  const renewed = await started.post("/v1/renew", { permit: lapsed });
  expect([renewed.status, renewed.body.code]).toEqual([404, "lapsed"]);
});

it("frees the place of a permit at the end of its lifetime, gives nothing back and learns nothing; renew begins it anew", async () => {
  const ticker = new FakeTicker();
  await using started = await Started.with({ ticker, policy: { default: { concurrency: 1, window: "10/h" } } });
  const { body } = await started.post("/v1/acquire", { domain: "x.org", ttlMs: 1_000 });
  ticker.advance(900);
  expect((await started.post("/v1/renew", { permit: body.permit })).body).toEqual({ ttlMs: 1_000 });
  ticker.advance(900);
  expect((await started.post("/v1/check", { domain: "x.org" })).body.proceed).toBe(false);
  expect((await started.post("/v1/renew", { permit: body.permit, ttlMs: 200 })).body).toEqual({ ttlMs: 200 });
  ticker.advance(300);
  expect((await started.post("/v1/check", { domain: "x.org" })).body.proceed).toBe(true);
  const stats = (await started.get("/v1/stats/x.org")).body;
  expect(stats).toMatchObject({ in_flight: 0, granted: 1, released: 1, throttled_requests: 0, cooldown_ms: 0 });
  expect(stats.windows).toMatchObject([{ calls: 1, remaining: 9 }]);
});

it("hears how a request ended: a word, or a status with its headers", async () => {
  const clock = new VirtualClock();
  await using started = await Started.with({ limiter: politely({ default: { rate: "10/s", burst: 10 } }, { clock }) });
  const outcomes = {
    "a.org": { outcome: "rate_limited", retryAfterMs: 7_000 },
    "b.org": { status: 429, headers: { "Retry-After": "7" } },
    "c.org": { status: 503, retryAfterMs: 6_500 },
    "d.org": { status: 200, headers: { "content-length": 5, vary: ["a", "b"] }, latencyMs: 12 },
    "e.org": { outcome: "unused" },
  };
  for (const [domain, outcome] of Object.entries(outcomes)) {
    const { body } = await started.post("/v1/acquire", { domain });
    expect((await started.post("/v1/release", { permit: body.permit, ...outcome })).status).toBe(204);
  }
  const cooldowns = Object.keys(outcomes).map((domain) => started.limiter.stats(domain)?.cooldownMs);
  expect(cooldowns).toEqual([7_000, 7_000, 7_000, 0, 0]);
});

it.each([
  ["a status beyond 599, as LinkedIn's 999", '"status":999'],
  [
    "a header with a name that means something to JavaScript",
    '"status":200,"headers":{"__proto__":"x","constructor":"y"}',
  ],
])("takes a permit back whatever its site answered: %s", async (_name, answer) => {
  await using started = await Started.with({ policy: { default: { concurrency: 1 } } });
  const { body } = await started.post("/v1/acquire", { domain: "x.org" });
  const released = await started.post("/v1/release", `{"permit":"${String(body.permit)}",${answer}}`);
  expect([released.status, released.body]).toEqual([204, {}]);
  expect(started.limiter.stats("x.org")).toMatchObject({ released: 1, inFlight: 0 });
});

it("records a request that was made without a permit", async () => {
  await using started = await Started.with({ policy: slow });
  const domain = "slow.org";
  expect((await started.post("/v1/record", { domain, outcome: "success" })).status).toBe(204);
  expect((await started.post("/v1/check", { domain })).body.proceed).toBe(false);
  expect((await started.get("/v1/stats/slow.org")).body).toMatchObject({ total_requests: 1, in_flight: 0 });
});

it("gives the statistics of one domain, of all, or of so many; what was never asked for is not known", async () => {
  await using started = await Started.with();
  for (const domain of ["a.org", "b.org", "c.org"]) await started.post("/v1/acquire", { domain });
  expect((await started.get("/v1/stats")).body).toMatchObject({ total: 3, stats: [{}, {}, {}] });
  const { body } = await started.get("/v1/stats?limit=2");
  expect([body.total, (body.stats as unknown[]).length]).toEqual([3, 2]);
  expect((await started.get("/v1/stats/A.org")).body).toMatchObject({
    domain: "a.org",
    total_requests: 1,
    delay_rate: 0,
  });
  const unknown = await started.get("/v1/stats/z.org");
  expect([unknown.status, unknown.body.detail]).toEqual([404, '"z.org" is not known: nothing was asked for it yet.']);
});

it("explains a wait, and says that it is well", async () => {
  await using started = await Started.with({ policy: slow });
  await started.post("/v1/acquire", { domain: "slow.org" });
  const { body } = await started.get(`/v1/explain/${encodeURIComponent("https://slow.org/a/b")}`);
  expect(body).toMatchObject({
    key: "slow.org",
    proceed: false,
    origin: "hosts.slow.org",
    causes: [{ limit: "rate" }],
  });
  const health = await started.get("/healthz");
  expect(health.body).toMatchObject({ status: "ok", store: "memory", waiting: 0, permits: 1 });
  expect((await started.call("HEAD", "/healthz")).status).toBe(200);
});

it("says 404 for what it does not have, and 405 with Allow where another method would do", async () => {
  await using started = await Started.with();
  expect((await started.get("/v2/check")).status).toBe(404);
  const wrong = await started.get("/v1/check");
  expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "POST"]);
  const other = await started.call("PATCH", "/v1/limits/x.org", {});
  expect([other.status, other.headers.get("allow")]).toEqual([405, "DELETE, PUT"]);
});

it("pauses and resumes one domain or all, where changes are allowed", async () => {
  await using started = await Started.with({ isWritable: true });
  const proceeds = async (domain: string) => (await started.post("/v1/check", { domain })).body.proceed;
  await started.post("/v1/pause", { domain: "x.org", durationMs: 60_000 });
  expect([await proceeds("x.org"), await proceeds("y.org")]).toEqual([false, true]);
  await started.post("/v1/resume", { domain: "x.org" });
  expect(await proceeds("x.org")).toBe(true);
  await started.post("/v1/pause", {});
  const { body } = await started.post("/v1/check", { domain: "y.org" });
  expect(body).toMatchObject({ proceed: false, waitMs: null });
  await started.post("/v1/resume", {});
  expect(await proceeds("y.org")).toBe(true);
});

it("edits the limits of one domain while it runs, and puts the file's back", async () => {
  await using started = await Started.with({ isWritable: true, policy: { hosts: { "x.org": { rate: "5/s" } } } });
  expect((await started.call("PUT", "/v1/limits/x.org", { rate: "1/h" })).status).toBe(204);
  expect((await started.get("/v1/policy")).body).toEqual({
    policy: { hosts: { "x.org": { rate: "1/h" } } },
    edited: ["x.org"],
  });
  await started.post("/v1/acquire", { domain: "x.org" });
  expect(Number((await started.post("/v1/check", { domain: "x.org" })).body.waitMs)).toBeGreaterThan(3_500_000);

  const bad = await started.call("PUT", "/v1/limits/x.org", { rate: "0/s", burts: 2 });
  expect(bad.status).toBe(422);
  expect(bad.body.errors).toEqual([
    { field: "burts", message: expect.stringContaining("burst") as unknown },
    { field: "rate", message: expect.stringContaining("above 0") as unknown },
  ]);
  expect((await started.get("/v1/policy")).body.edited).toEqual(["x.org"]);

  expect((await started.call("DELETE", "/v1/limits/x.org")).status).toBe(204);
  expect((await started.get("/v1/policy")).body).toEqual({
    policy: { hosts: { "x.org": { rate: "5/s" } } },
    edited: [],
  });
  expect((await started.call("DELETE", "/v1/limits/x.org")).status).toBe(404);
});

it.each([
  ["X.Org", "x.org"],
  ["x.org.", "x.org"],
  ["münchen.de", "xn--mnchen-3ya.de"],
])("edits the limits of a domain that the file writes as %s", async (written, key) => {
  const hosts = { "*.org": { rate: "3/s" }, [written]: { rate: "5/s" } } as const;
  await using started = await Started.with({ isWritable: true, policy: { hosts } });
  const path = `/v1/limits/${encodeURIComponent(written)}`;
  expect((await started.call("PUT", path, { rate: "1/h" })).status).toBe(204);
  expect((await started.get("/v1/policy")).body).toEqual({
    policy: { hosts: { "*.org": { rate: "3/s" }, [key]: { rate: "1/h" } } },
    edited: [key],
  });
  expect((await started.call("DELETE", path)).status).toBe(204);
  expect((await started.get("/v1/policy")).body).toEqual({ policy: { hosts }, edited: [] });
});

it("changes nothing where neither changes are allowed nor a token is set", async () => {
  await using started = await Started.with();
  const answers = await Promise.all([
    started.post("/v1/pause", {}),
    started.post("/v1/resume", {}),
    started.call("PUT", "/v1/limits/x.org", {}),
    started.call("DELETE", "/v1/limits/x.org"),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
  expect(answers[0].body.detail).toContain("--allow-writes");
  expect((await started.post("/v1/check", { domain: "x.org" })).body.proceed).toBe(true);
});
