import fc from "fast-check";
import { expect, it } from "vitest";
import { seeded } from "../../../politely/test/laws/seeded.js";
import { readAll, Started, until } from "./started.js";

const routes = [
  ["POST", "/v1/check"],
  ["POST", "/v1/acquire"],
  ["POST", "/v1/renew"],
  ["POST", "/v1/release"],
  ["POST", "/v1/record"],
  ["POST", "/v1/pause"],
  ["POST", "/v1/resume"],
  ["PUT", "/v1/limits/x.org"],
  ["DELETE", "/v1/limits/x.org"],
  ["GET", "/v1/stats"],
  ["GET", "/v1/stats/x.org"],
  ["GET", "/v1/explain/x.org"],
  ["GET", "/v1/policy"],
  ["GET", "/v1/openapi.json"],
  ["GET", "/healthz"],
] as const;

/** A good value, and now and then any other. */
function mostly<Value>(good: fc.Arbitrary<Value>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 15, arbitrary: good }, { weight: 1, arbitrary: fc.jsonValue() });
}

const fields = {
  domain: mostly(fc.oneof(fc.constantFrom("x.org", "y.org", "https://x.org/a"), fc.webUrl(), fc.string())),
  intent: mostly(fc.constantFrom("search", "api")),
  maxWaitMs: mostly(fc.constantFrom(0, 5, 20)),
  priority: mostly(fc.integer({ min: -10, max: 10 })),
  cost: mostly(fc.integer({ min: 1, max: 200 })),
  ttlMs: mostly(fc.integer({ min: 60_000, max: 3_600_000 })),
  permit: mostly(fc.constantFrom("a permit", "AAAAAAAAAAAAAAAAAAAAAA")),
  outcome: mostly(fc.constantFrom("success", "rate_limited", "server_error", "timeout", "unused")),
  status: mostly(fc.constantFrom(200, 404, 429, 503)),
  headers: mostly(fc.oneof(fc.constant({ "retry-after": "1" }), fc.dictionary(fc.string(), fc.string()))),
  retryAfterMs: mostly(fc.integer({ min: 0, max: 100 })),
  durationMs: mostly(fc.integer({ min: 1, max: 50 })),
  rate: mostly(fc.constantFrom("5/s", "100/s", "0/s")),
};

type Field = keyof typeof fields;

/** Which fields each route must have, and which it may have. */
const known: Readonly<Record<string, { readonly must: readonly Field[]; readonly may: readonly Field[] }>> = {
  "/v1/check": { must: ["domain"], may: ["intent"] },
  "/v1/acquire": { must: ["domain", "maxWaitMs"], may: ["intent", "priority", "cost", "ttlMs"] },
  "/v1/renew": { must: ["permit"], may: ["ttlMs"] },
  "/v1/release": { must: ["permit"], may: ["outcome", "status", "headers", "retryAfterMs"] },
  "/v1/record": { must: ["domain", "outcome"], may: ["status", "retryAfterMs"] },
  "/v1/pause": { must: [], may: ["domain", "durationMs"] },
  "/v1/resume": { must: [], may: ["domain"] },
  "/v1/limits/x.org": { must: ["rate"], may: ["cost"] },
};

/** A request whose body is nearly right, or any JSON. */
const requests = fc.constantFrom(...routes).chain(([method, path]) => {
  const { must, may } = known[path] ?? { must: [], may: [] };
  const optional = may.map((name) => [name, fc.option(fields[name], { freq: 2, nil: undefined })] as const);
  const nearly = fc.record(
    Object.fromEntries<fc.Arbitrary<unknown>>([...must.map((name) => [name, fields[name]] as const), ...optional]),
  );
  const body = fc.oneof({ weight: 12, arbitrary: nearly }, { weight: 1, arbitrary: fc.jsonValue() });
  return fc.record({ method: fc.constant(method), path: fc.constant(path), body, isHeld: fc.boolean() });
});

interface Tally {
  granted: number;
  refused: number;
}

/** Compares the books with what the callers saw. */
async function settle(started: Started, tally: Tally): Promise<void> {
  await until(() => started.service.callers.size === 0, "nobody waits");
  const { stats } = (await started.get("/v1/stats")).body as { stats: Record<string, number>[] };
  const sum = (name: string): number => stats.reduce((total, row) => total + row[name], 0);
  for (const row of stats) {
    expect(row.asked).toBe(row.granted + row.refused + row.cancelled + row.expired + row.waiting);
    expect(row.granted).toBe(row.released + row.lapsed + row.in_flight);
  }
  expect({ granted: sum("granted"), refused: sum("refused") + sum("expired"), waiting: sum("waiting") }).toEqual({
    granted: tally.granted,
    refused: tally.refused,
    waiting: 0,
  });
  expect(sum("in_flight")).toBe(started.service.permits.size);
  expect(started.lines).toEqual([]);
}

it("answers every JSON as its document says, and keeps its books as its callers keep theirs", async () => {
  await using started = await Started.with({ isWritable: true, policy: { default: { rate: "50/s", burst: 5 } } });
  const tally: Tally = { granted: 0, refused: 0 };
  const permits: unknown[] = [];
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(requests, async ({ method, path, body, isHeld }) => {
      const sent = isHeld && permits.length > 0 && hasPermit(body) ? { ...body, permit: permits[0] } : body;
      const answer = await started.call(method, path, method === "GET" ? undefined : sent);
      expect(answer.status).not.toBe(500);
      if (path === "/v1/acquire" && answer.status === 200) permits.push(answer.body.permit);
      if (path === "/v1/release" && answer.status === 204) permits.shift();
      if ((path === "/v1/acquire" && answer.status === 200) || (path === "/v1/record" && answer.status === 204)) {
        tally.granted++;
      }
      if (path === "/v1/acquire" && answer.status === 429) tally.refused++;
      seen.add(`${path} ${answer.status}`);
    }),
    seeded(800),
  );
  await settle(started, tally);
  // All of this was tried; otherwise the books say little.
  const usual = ["acquire 200", "acquire 422", "acquire 429", "release 204", "release 404", "renew 200", "record 204"];
  expect(usual.filter((one) => !seen.has(`/v1/${one}`))).toEqual([]);
});

it("answers or closes whatever bytes it is sent, on every route, and goes on", async () => {
  await using started = await Started.with({ isWritable: true, server: { headersMs: 300, requestMs: 300 } });
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.json().map((text) => Buffer.from(text)),
  );
  const line = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...routes).map(([method, path]) => `${method} ${path} HTTP/1.1`) },
    { weight: 1, arbitrary: fc.string({ maxLength: 40 }) },
  );
  const header = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.constantFrom("content-type: application/json", "connection: close", "accept: */*", "x: y"),
    },
    { weight: 1, arbitrary: fc.constantFrom("transfer-encoding: chunked", "expect: 100-continue", "upgrade: h2c") },
    { weight: 1, arbitrary: fc.string({ maxLength: 40 }) },
  );
  const length = fc.option(fc.integer({ min: -3, max: 3 }), { nil: undefined });
  const starts = new Set<string>();
  await fc.assert(
    fc.asyncProperty(line, fc.array(header, { maxLength: 4 }), bytes, length, async (first, headers, rest, error) => {
      const told = error === undefined ? [] : [`content-length: ${Math.max(0, rest.length + error)}`];
      const socket = await started.connect();
      socket.write(`${[first, "host: localhost", ...headers, ...told].join("\r\n")}\r\n\r\n`);
      socket.write(rest);
      // Some end at once, others when they have been answered, or cut off.
      if (rest.length % 2 === 0) socket.end();
      else setTimeout(() => socket.end(), 20);
      const text = await readAll(socket);
      starts.add(text.slice(9, 12));
      for (const [, status, head] of text.matchAll(/HTTP\/1\.1 (\d{3}) [^\r]*\r\n((?:[^\r]+\r\n)*)\r\n/g)) {
        expect(Number(status) < 400 || /content-type: application\/problem\+json/i.test(head)).toBe(true);
        expect(status).not.toBe("500");
      }
      expect(text === "" || text.startsWith("HTTP/1.1 ")).toBe(true);
    }),
    seeded(400),
  );
  expect(["200", "400", "415", "422"].filter((status) => !starts.has(status))).toEqual([]);
  await started.post("/v1/resume", {});
  expect((await started.post("/v1/check", { domain: "x.org" })).status).toBe(200);
  await until(() => started.service.callers.size === 0, "nobody waits");
  expect(started.lines).toEqual([]);
});

function hasPermit(value: unknown): value is { readonly permit: unknown } {
  return typeof value === "object" && value !== null && "permit" in value;
}
