import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startHaproxy } from "./haproxy.js";
import type { LogRecord, Server } from "./server.js";
import { summarise } from "./summarise.js";

const count = 10;
const perMs = 200;
let server: Server;

beforeAll(async () => {
  server = await startHaproxy({ limits: [{ count: 20 }, { count, perMs }, { count: 1_000 }] });
});
afterAll(() => server.stop());

async function ask(hostIndex: number, path = "/", init?: RequestInit): Promise<Response> {
  const response = await fetch(`${server.hosts[hostIndex].origin}${path}`, init);
  await response.text();
  return response;
}

async function logOf(hostIndex: number): Promise<LogRecord[]> {
  const { address } = server.hosts[hostIndex];
  return (await server.log()).filter(({ host }) => host === address);
}

describe("haproxy", () => {
  it("refuses a naive loop with 429 and Retry-After, and its log shows each of them", async () => {
    const answers: Response[] = [];
    for (let index = 0; index < 60; index++) answers.push(await ask(0));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(new Set(refused.map(({ headers }) => headers.get("retry-after")))).toEqual(new Set(["2"]));
    expect(answers[0]?.status).toBe(200);
    expect(answers[0]?.headers.get("retry-after")).toBeNull();

    const log = await logOf(0);
    expect(log.map(({ status }) => status)).toEqual(answers.map(({ status }) => status));
    expect(summarise(log, server)[0]).toMatchObject({ requestCount: 60, refusedCount: refused.length });
  });

  it("writes down path and user agent as they were sent, and the time between sending and answer", async () => {
    const beforeMs = Date.now();
    await ask(2, "/a%20b?c=d/e", { headers: { "user-agent": 'Scout/1.0 "quoted" \\' } });
    const record = (await logOf(2)).at(-1);
    expect(record).toMatchObject({ path: "/a%20b?c=d/e", userAgent: 'Scout/1.0 "quoted" \\', status: 200 });
    expect(record?.atMs).toBeGreaterThanOrEqual(beforeMs - 1);
    expect(record?.atMs).toBeLessThanOrEqual(Date.now() + 1);
  });

  it("has the answer in its log as soon as it was read to the end", async () => {
    for (let sent = 1; sent <= 20; sent++) {
      await ask(2, "/flush");
      expect((await logOf(2)).filter(({ path }) => path === "/flush")).toHaveLength(sent);
    }
  });

  it("decides by this period's requests and the share of the last period's that is left", async () => {
    // Bursts in two periods in a row, then one after more than two empty periods, then more than a period may hold.
    for (const [requests, pauseMs] of [
      [10, 250],
      [6, 250],
      [3, 500],
      [14, 100],
      [3, 0],
    ] as const) {
      await Promise.all(Array.from({ length: requests }, () => ask(1)));
      await delay(pauseMs);
    }
    const log = await logOf(1);
    const found = estimates(log);
    // Within one request it depends on parts of a millisecond.
    const clear = log.map(({ status }, index) => ({ status, estimate: found[index] })).filter(isClear);
    expect(clear.length).toBeGreaterThan(10);
    expect(clear.map(({ status }) => status)).toEqual(clear.map(({ estimate }) => (estimate > count ? 429 : 200)));
    expect(new Set(log.map(({ status }) => status))).toEqual(new Set([200, 429]));
  });

  it.each([
    ["a count of 0", { count: 0 }],
    ["half a millisecond", { count: 1, perMs: 0.5 }],
  ])("does not start with %s", (_title, wrong) => {
    expect(() => startHaproxy({ limits: [wrong] })).toThrow(RangeError);
  });
});

function isClear({ estimate }: { readonly estimate: number }): boolean {
  return estimate <= count || estimate >= count + 2;
}

/** What haproxy believes with each request, that one included, before rounding. */
function estimates(log: readonly LogRecord[]): number[] {
  let beginMs = Number.NEGATIVE_INFINITY;
  let current = 0;
  let previous = 0;
  return log.map(({ atMs }) => {
    if (atMs - beginMs >= 2 * perMs) {
      beginMs = atMs;
      previous = 0;
      current = 0;
    } else if (atMs - beginMs >= perMs) {
      beginMs += perMs;
      previous = current;
      current = 0;
    }
    current += 1;
    return current + previous * (1 - (atMs - beginMs) / perMs);
  });
}
