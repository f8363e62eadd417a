import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startNginx } from "./nginx.js";
import type { LogRecord, Server } from "./server.js";
import { summarise } from "./summarise.js";

const limits = [
  { perSecond: 20 },
  { perSecond: 20, burst: 5 },
  { connections: 4, answerMs: 800 },
  {},
  { perSecond: 20, burst: 5 },
  { answerMs: 200 },
];
let server: Server;

beforeAll(async () => {
  server = await startNginx({ limits, retryAfterSec: 3 });
});
afterAll(() => server.stop());

/** Asks once, and reads the answer to its end. */
async function ask(hostIndex: number, path = "/", init?: RequestInit): Promise<{ status: number; retryAfter: string }> {
  const response = await fetch(`${server.hosts[hostIndex].origin}${path}`, init);
  await response.text();
  return { status: response.status, retryAfter: response.headers.get("retry-after") ?? "" };
}

function flood(hostIndex: number, count: number): ReturnType<typeof ask>[] {
  return Array.from({ length: count }, () => ask(hostIndex));
}

async function logOf(hostIndex: number): Promise<LogRecord[]> {
  const { address } = server.hosts[hostIndex];
  return (await server.log()).filter(({ host }) => host === address);
}

describe("nginx", () => {
  it("refuses a naive loop with 429 and Retry-After, and its log shows each of them", async () => {
    const answers: Awaited<ReturnType<typeof ask>>[] = [];
    for (let index = 0; index < 40; index++) answers.push(await ask(0));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(new Set(refused.map(({ retryAfter }) => retryAfter))).toEqual(new Set(["3"]));
    expect(answers[0]).toEqual({ status: 200, retryAfter: "" });

    const log = await logOf(0);
    expect(log.map(({ status }) => status)).toEqual(answers.map(({ status }) => status));
    expect(summarise(log, server)[0]).toMatchObject({ requestCount: 40, refusedCount: refused.length });
    expect(server.retryAfterMs).toBe(3_000);
  });

  it("lets a burst through at once, and each host has a count of its own", async () => {
    const statuses = (await Promise.all(flood(1, 30))).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(6);
    expect(statuses).toContain(429);
  });

  it("refuses more than four under way at once, until the body of one is complete", async () => {
    const { origin } = server.hosts[2];
    // Resolves with the headers; the end of each body takes 800 ms more.
    const first = await Promise.all(Array.from({ length: 4 }, () => fetch(`${origin}/`)));
    expect(first.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(await ask(2)).toEqual({ status: 429, retryAfter: "3" });
    await Promise.all(first.map((response) => response.text()));
    const next = await fetch(`${origin}/`);
    expect(next.status).toBe(200);
    await next.body?.cancel();
  });

  it("writes down path and user agent as they were sent", async () => {
    await ask(3, '/a%20b?c="d"', { headers: { "user-agent": 'Scout/1.0 "quoted" \\' } });
    const path = "/a%20b?c=%22d%22";
    expect((await logOf(3)).at(-1)).toMatchObject({ path, userAgent: 'Scout/1.0 "quoted" \\', status: 200 });
  });

  it("gives the time of arrival, not of the answer", async () => {
    const beforeMs = Date.now();
    await ask(5, "/slow");
    const afterMs = Date.now();
    const record = (await logOf(5)).find(({ path }) => path === "/slow");
    expect(record?.atMs).toBeGreaterThanOrEqual(beforeMs - 1);
    expect(record?.atMs).toBeLessThan(afterMs - 150);
  });

  it("has the answer in its log as soon as it was read to the end", async () => {
    for (let sent = 1; sent <= 20; sent++) {
      await ask(3, "/flush");
      expect((await logOf(3)).filter(({ path }) => path === "/flush")).toHaveLength(sent);
    }
  });

  it("has no robots.txt unless it is given one", async () => {
    expect((await ask(3, "/robots.txt")).status).toBe(404);
    await using other = await startNginx({ limits: [{}], robots: "User-agent: *\nCrawl-delay: 1\n" });
    const response = await fetch(`${other.hosts[0].origin}/robots.txt`);
    expect(await response.text()).toBe("User-agent: *\nCrawl-delay: 1\n");
  });

  it("decides by an excess that falls with the time between arrivals", async () => {
    // Bursts and pauses around the limit: some of these are refused, some are not.
    for (const [requests, pauseMs] of [
      [12, 60],
      [3, 30],
      [1, 30],
      [1, 160],
      [4, 50],
      [2, 25],
      [2, 0],
    ] as const) {
      await Promise.all(flood(4, requests));
      await delay(pauseMs);
    }
    const log = await logOf(4);
    const expected = excesses(log, 20);
    // The log is rounded to milliseconds, as is the server's clock: too close to call within 2 ms.
    const clear = log.map(({ status }, index) => ({ status, margin: expected[index] - 5_000 })).filter(isClear);
    expect(clear.length).toBeGreaterThan(10);
    expect(clear.map(({ status }) => status)).toEqual(clear.map(({ margin }) => (margin > 0 ? 429 : 200)));
    expect(new Set(log.map(({ status }) => status))).toEqual(new Set([200, 429]));
  });

  it.each([
    ["a rate of 0", { perSecond: 0 }],
    ["half a burst", { perSecond: 1, burst: 0.5 }],
    ["no connections", { connections: 0 }],
    ["an answer that takes too long", { answerMs: 1_001 }],
  ])("does not start with %s", (_title, wrong) => {
    expect(() => startNginx({ limits: [wrong] })).toThrow(RangeError);
  });

  it("does not start without hosts", async () => {
    await expect(startNginx({ limits: [] })).rejects.toThrow("1 to 200 hosts; got 0");
  });
});

function isClear({ margin }: { readonly margin: number }): boolean {
  return Math.abs(margin) > 40;
}

/** What nginx finds with each request, in thousandths, given what it let through before. */
function excesses(log: readonly LogRecord[], perSecond: number): number[] {
  let excess = 0;
  let seenAtMs = Number.NEGATIVE_INFINITY;
  return log.map(({ atMs, status }) => {
    const found = Math.max(0, excess - (atMs - seenAtMs) * perSecond + 1_000);
    if (status === 200) {
      excess = Number.isFinite(seenAtMs) ? found : 0;
      seenAtMs = atMs;
    }
    return found;
  });
}
