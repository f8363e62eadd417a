import { politely } from "politely";
import { describe, expect, it } from "vitest";
import { readEvents, type ServerEvent } from "../../../page/src/state/sse.js";
import { feedRoutes } from "../../../src/serve/feed/feedRoutes.js";
import { pageRoutes } from "../../../src/serve/feed/pageRoutes.js";
import type { HostRow } from "../../../src/serve/feed/row.js";
import { Started } from "../started.js";

const policy = { default: { rate: "1/10s" } } as const;

function start(): Promise<Started> {
  return Started.with({
    policy,
    limiter: politely(policy),
    addData: (app, { limiter, book, isWritable }) =>
      feedRoutes(app, { limiter, policy: () => book.current(), isWritable, version: "1.2.3" }),
    addPage: pageRoutes,
  });
}

/** Reads the feed until `isEnough`, then hangs up. */
async function readFeed(url: string, isEnough: (events: readonly ServerEvent[]) => boolean): Promise<ServerEvent[]> {
  const abort = new AbortController();
  const response = await fetch(`${url}/v1/feed`, { signal: abort.signal });
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  const events: ServerEvent[] = [];
  if (response.body === null) throw new Error("The feed has no body.");
  for await (const event of readEvents(response.body)) {
    events.push(event);
    if (isEnough(events)) break;
  }
  abort.abort();
  return events;
}

const rowsIn = (events: readonly ServerEvent[]): HostRow[] =>
  events.flatMap(({ event, data }) => {
    const content: unknown = JSON.parse(data);
    return event === "hello" ? (content as { rows: HostRow[] }).rows : event === "rows" ? (content as HostRow[]) : [];
  });

describe("the feed", () => {
  it("begins with a hello, and then tells only what changes", async () => {
    await using service = await start();
    (await service.limiter.acquire("before.example")).release("success");
    const feed = readFeed(service.url, (events) => rowsIn(events).some(({ domain }) => domain === "after.example"));
    setTimeout(() => service.limiter.record("after.example", "success"), 300);
    const events = await feed;
    expect(JSON.parse(events[0].data)).toMatchObject({ version: "1.2.3", isWritable: false, hostCount: 1 });
    expect(events.slice(0, 2).map(({ event }) => event)).toEqual(["hello", "totals"]);
    expect(rowsIn(events.slice(0, 1)).map(({ domain }) => domain)).toEqual(["before.example"]);
    const later = events.slice(1).filter(({ event }) => event === "rows");
    expect(rowsIn(later).filter(({ domain }) => domain === "after.example")).toHaveLength(1);
  });

  it("sends 5,000 hosts in parts of at most 2,000", async () => {
    await using service = await start();
    for (let index = 0; index < 5_000; index++) service.limiter.record(`h${index}.example`, "success");
    const events = await readFeed(
      service.url,
      (seen) => new Set(rowsIn(seen).map(({ domain }) => domain)).size === 5_000,
    );
    expect(JSON.parse(events[0].data)).toMatchObject({ hostCount: 5_000 });
    for (const event of events) expect(rowsIn([event]).length).toBeLessThanOrEqual(2_000);
  });

  it("has room for 64 readers, and again when one leaves", async () => {
    await using service = await start();
    const aborts = Array.from({ length: 64 }, () => new AbortController());
    const readers = await Promise.all(aborts.map(({ signal }) => fetch(`${service.url}/v1/feed`, { signal })));
    expect(readers.map(({ status }) => status)).toEqual(Array.from({ length: 64 }, () => 200));
    const refused = await service.get("/v1/feed");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "10"]);
    aborts[0].abort();
    await expect
      .poll(async () => (await fetch(`${service.url}/v1/feed`, { signal: AbortSignal.timeout(2_000) })).status)
      .toBe(200);
    for (const abort of aborts) abort.abort();
  });
});

describe("hosts and timelines", () => {
  it("answer one page of hosts that fit, the most interesting first", async () => {
    await using service = await start();
    for (const host of ["a.example", "b.example", "c.test"]) service.limiter.record(host, "success");
    service.limiter.pause("b.example");
    const all = await service.get("/v1/hosts");
    expect(all.body).toMatchObject({
      hostCount: 3,
      matched: 3,
      rows: [{ domain: "b.example", state: "paused" }, {}, {}],
    });
    expect((await service.get("/v1/hosts?q=EXAMPLE&state=flowing")).body).toMatchObject({
      matched: 1,
      rows: [{ domain: "a.example" }],
    });
    expect((await service.get("/v1/hosts?limit=1")).body).toMatchObject({
      matched: 3,
      rows: [{ domain: "b.example" }],
    });
    expect((await service.get("/v1/hosts?limit=0")).status).toBe(422);
    expect((await service.get("/v1/hosts?state=happy")).status).toBe(422);
    expect((await service.get("/v1/hosts?stat=idle")).body.errors).toMatchObject([{ field: "stat" }]);
  });

  it("take HEAD where they take GET", async () => {
    await using service = await start();
    service.limiter.record("a.example", "success");
    for (const path of ["/", "/v1/hosts", "/v1/timeline", "/v1/timeline/a.example"]) {
      const [{ status }, head] = [await fetch(service.url + path), await service.call("HEAD", path)];
      expect([path, head.status, head.text]).toEqual([path, status, ""]);
    }
  });

  it("answer the seconds of a host, by name or URL, and of all hosts", async () => {
    await using service = await start();
    for (const host of ["a.example", "a.example", "b.example"]) service.limiter.record(host, "success");
    const sum = (body: Record<string, unknown>) => (body.starts as number[]).reduce((all, count) => all + count, 0);
    expect(sum((await service.get("/v1/timeline")).body)).toBe(3);
    expect(sum((await service.get("/v1/timeline/a.example")).body)).toBe(2);
    const byUrl = await service.get(`/v1/timeline/${encodeURIComponent("https://A.example/path")}`);
    expect([sum(byUrl.body), byUrl.body.allowedPerSecond]).toEqual([2, 0.1]);
    expect((await service.get("/v1/timeline/never.example")).status).toBe(404);
    expect((await service.get(`/v1/timeline/${encodeURIComponent("no host")}`)).status).toBe(422);
  });
});
