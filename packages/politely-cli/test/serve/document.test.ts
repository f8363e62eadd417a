import { expect, it } from "vitest";
import { metricsRoutes } from "../../src/serve/api/metricsRoutes.js";
import { feedRoutes } from "../../src/serve/feed/feedRoutes.js";
import { Started, type StartOptions } from "./started.js";

const whole: StartOptions = {
  isWritable: true,
  addData: (app, parts) => {
    metricsRoutes(app, parts);
    feedRoutes(app, { limiter: parts.limiter, policy: () => parts.book.current(), isWritable: true });
  },
};

interface Document {
  readonly paths: Record<string, Record<string, { readonly parameters?: readonly { in: string; name: string }[] }>>;
}

it("declares every part of a path that stands for something", async () => {
  await using started = await Started.with(whole);
  const { paths } = (await started.get("/v1/openapi.json")).body as unknown as Document;
  const parts = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { parameters = [] }]) => ({
      at: `${method} ${path}`,
      named: [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
      declared: parameters.filter((each) => each.in === "path").map(({ name }) => name),
    })),
  );
  expect(parts.filter(({ named }) => named.length > 0).length).toBeGreaterThan(3);
  for (const { at, named, declared } of parts) expect([at, declared]).toEqual([at, named]);
});

it("names the first twenty fields that are wrong, and how many more there are", async () => {
  await using started = await Started.with(whole);
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`f${index}`, 1]));
  for (const [method, path] of [
    ["POST", "/v1/check"],
    ["PUT", "/v1/limits/a.org"],
  ]) {
    const { status, body, text } = await started.call(method, path, many);
    expect([status, text.length < 10_000]).toEqual([422, true]);
    expect(body.errors).toHaveLength(20);
    expect(body.detail).toMatch(/; and [\d,]+ more$/);
  }
  const { text } = await started.post("/v1/check", { domain: "a.org", ["x".repeat(60_000)]: 1 });
  expect(text.length).toBeLessThan(2_000);
});

it("gives a policy without a bound in a form that it takes back", async () => {
  const limits = { rate: "1/s" as const, maxWait: Number.POSITIVE_INFINITY, maxQueue: Number.POSITIVE_INFINITY };
  const policy = { hosts: { "a.org": limits } };
  await using started = await Started.with({ ...whole, policy });
  const { body } = await started.get("/v1/policy");
  const given = (body.policy as { hosts: Record<string, unknown> }).hosts["a.org"];
  expect(given).toEqual({ rate: "1/s", maxQueue: 1_000_000_000_000 });
  expect((await started.call("PUT", "/v1/limits/a.org", given)).status).toBe(204);
});

it("says which bound is reached when it is full", async () => {
  const policy = { default: { concurrency: 1 } } as const;
  await using held = await Started.with({ policy, maxPermits: 1 });
  await held.post("/v1/acquire", { domain: "a.org" });
  const full = await held.post("/v1/acquire", { domain: "b.org" });
  expect(full.status).toBe(503);
  expect(full.body.detail).toMatch(/1 permit.*held.*Release/);
  expect(full.body.detail).not.toContain("--max-waiting");
  await using crowded = await Started.with({ policy, maxWaiting: 0 });
  expect((await crowded.post("/v1/acquire", { domain: "a.org" })).body.detail).toContain("--max-waiting");
});
