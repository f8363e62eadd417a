import type { AuditReport } from "politely/testing";
import { describe, expect, it } from "vitest";
import { policyFile, runAudit } from "./runAudit.js";

const files = { "p.json": policyFile({ window: "1/s", concurrency: 1 }) };
const iso = (ms: number): string => new Date(Date.UTC(2026, 0, 31, 10) + ms).toISOString();
const json = (value: object): string => JSON.stringify(value);

interface Found extends AuditReport {
  readonly logs: readonly {
    readonly format: string;
    readonly requests: number;
    readonly skipped: number;
    readonly broken: number;
  }[];
}

/** What is found in a log that comes by stdin. */
async function found(lines: readonly string[], ...args: readonly string[]): Promise<Found> {
  const { stdout, stderr } = await runAudit(["-p", "p.json", "--json", ...args, "-"], {
    files,
    stdin: [lines.join("\n")],
  });
  if (stdout === "") throw new Error(stderr);
  return JSON.parse(stdout) as Found;
}

const access = (time: string, more = "", before = ""): string =>
  `${before}203.0.113.9 - - [31/Jan/2026:${time} +0000] "GET /a\\"b HTTP/1.1" 200 12 "-" "Bot/1.0"${more}`;

describe("formats of politely audit", () => {
  it("reads the index of politely get, with the requests before the last one", async () => {
    const start = Date.UTC(2026, 0, 31, 10);
    const line = {
      url: "http://a.example/x",
      finalUrl: "https://b.example/y",
      key: "a.example",
      outcome: "failed",
      status: 429,
      headers: { "retry-after": "Sat, 31 Jan 2026 09:00:30 GMT", date: "Sat, 31 Jan 2026 09:00:00 GMT" },
      startedAt: iso(5_000),
      startedAtMs: start + 5_000.125,
      tookMs: 100.5,
      attempt: 3,
      earlier: [
        { url: "http://a.example/x", startedAtMs: start, tookMs: 50, status: 503, retryAfter: "2" },
        { url: "http://a.example/x", startedAtMs: start + 1_000, tookMs: 50, status: 301 },
      ],
    };
    const late = { ...line, startedAtMs: start + 20_000, attempt: 1, earlier: undefined };
    const never = {
      url: "http://c.example/",
      finalUrl: "http://c.example/",
      key: "c.example",
      outcome: "refused",
      error: "robots",
    };
    const { keys, logs } = await found([json(line), json(late), json(never)]);
    expect(logs[0]).toMatchObject({ format: "index", requests: 4, skipped: 1, broken: 0 });
    expect(keys.map(({ key, requests, ignoredCount }) => [key, requests, ignoredCount])).toEqual([
      ["a.example", 2, 1],
      ["b.example", 2, 1],
    ]);
    expect(keys[1].ignoredRetryAfters[0].retryAfterMs).toBe(30_000);
  });

  it("judges a date of an earlier request by the Date beside it, and not at all without", async () => {
    const start = Date.parse(iso(0));
    const retryAfter = "Sat, 31 Jan 2026 09:02:00 GMT";
    const [url, key, outcome] = ["http://a.example/x", "a.example", "fetched"];
    const ignored = async (more: object): Promise<number> => {
      const earlier = [{ url, startedAtMs: start, tookMs: 50, status: 429, retryAfter, ...more }];
      const line = { url, finalUrl: url, key, outcome, startedAtMs: start + 5_000, tookMs: 50, attempt: 2, earlier };
      return (await found([json(line)])).keys[0].ignoredCount;
    };
    expect(await ignored({ date: "Sat, 31 Jan 2026 09:00:00 GMT" })).toBe(1);
    expect(await ignored({})).toBe(0);
  });

  it("reads headers that are pairs of name and value", async () => {
    const answered = { url: "https://a.example/", time: iso(0), status: 429, headers: [["Retry-After", "120"]] };
    const { keys } = await found([json(answered), json({ url: "https://a.example/", time: iso(5_000) })]);
    expect(keys[0].ignoredCount).toBe(1);
  });

  it.each([
    ["an ISO time", { url: "https://a.example/", time: iso(0) }, { url: "https://a.example/", time: iso(500) }],
    ["seconds", { url: "https://a.example/", ts: 1_769_853_600.25 }, { host: "A.example", ts: 1_769_853_600.5 }],
    [
      "milliseconds",
      { host: "a.example", timestamp: 1_769_853_600_000 },
      { host: "a.example", timestamp: 1_769_853_600_500 },
    ],
    [
      "text",
      { hostname: "a.example", "@timestamp": "2026-01-31 10:00:00.1" },
      { domain: "a.example", date: "1769853600500" },
    ],
    ["a clock of its own", { host: "a.example", startedAtMs: 12.5 }, { host: "a.example", startedAtMs: 900.25 }],
    [
      "a request inside",
      { request: { url: "https://a.example/" }, response: { status: 200 }, start: iso(0) },
      { req: { url: "/x", headers: { Host: "a.example" } }, time: iso(1) },
    ],
  ])("reads JSON Lines with %s", async (_, one, other) => {
    const { keys, logs } = await found([json(one), json(other)]);
    expect(logs[0]).toMatchObject({ format: "jsonl", requests: 2 });
    expect(keys.map(({ key }) => key)).toEqual(["a.example"]);
    expect(keys[0].violations.map(({ limit }) => limit)).toEqual(["window"]);
  });

  it("takes lengths of requests for concurrency, whatever they are called", async () => {
    const at = (ms: number, more: object): string => json({ host: "a.example", time: iso(ms), ...more });
    for (const length of [
      { durationMs: 2_000 },
      { request_time: "2.000" },
      { endedAt: iso(2_000) },
      { elapsed: 2_000 },
    ]) {
      const { keys } = await found([at(0, length), at(1_100, { tookMs: 10 })]);
      expect(keys[0].violations.map(({ limit }) => limit)).toEqual(["concurrency"]);
    }
    const { keys } = await found([at(0, { tookMs: 1_100 }), at(1_100, { tookMs: 10 })]);
    expect(keys[0].isClean).toBe(true);
  });

  it.each([undefined, 2])("reads a HAR file, in one line or many (indented by %s)", async (indent) => {
    const entry = (ms: number, more: object = {}): object => ({
      startedDateTime: iso(ms),
      time: 20.5,
      request: { method: "GET", url: "https://a.example/x" },
      response: { status: 429, headers: [{ name: "Retry-After", value: "5" }] },
      ...more,
    });
    const cached = entry(1, { _fromCache: "disk" });
    const inline = entry(2, { request: { url: "data:text/plain,x" } });
    const har = { log: { version: "1.2", entries: [entry(0), cached, inline, entry(3_000), { request: {} }] } };
    const { keys, logs } = await found(JSON.stringify(har, undefined, indent).split("\n"));
    expect(logs[0]).toMatchObject({ format: "har", requests: 2, skipped: 2, broken: 1 });
    expect(keys[0]).toMatchObject({ key: "a.example", ignoredCount: 1 });
    expect(keys[0].ignoredRetryAfters[0].start.line).toBe(4);
  });

  it("reads access logs: the host is told, or stands in front, or in the request", async () => {
    const told = await found([access("10:00:00"), access("10:00:00")], "--host", "A.example");
    expect(told.keys[0]).toMatchObject({ key: "a.example", isClean: false, statuses: [{ status: 200, count: 2 }] });
    const virtual = await found([access("10:00:00", "", "v.example:443 "), access("10:00:01", "", "w.example:443 ")]);
    expect(virtual.keys.map(({ key }) => key)).toEqual(["v.example", "w.example"]);
    const proxied = await found([access("10:00:00").replace("/a", "http://x.example:8080/a")]);
    expect(proxied.keys.map(({ key }) => key)).toEqual(["x.example"]);
    const common = await found(
      ['::1 - frank [31/Jan/2026:10:00:00 +0000] "GET / HTTP/1.0" 200 -'],
      "--host",
      "a.example",
    );
    expect(common.entries).toBe(1);
  });

  it("takes a whole second for any moment of it", async () => {
    const log = ["10:00:00", "10:00:00", "10:00:01"].map((time) => access(time));
    const { keys } = await found(log, "--host", "a.example");
    expect(keys[0].violations[0]).toMatchObject({ found: 2, allowed: 1, proof: [{ line: 1 }, { line: 2 }] });
    expect((await found(log.slice(1), "--host", "a.example")).isClean).toBe(true);
  });

  it("counts one client of a site's log only, if told so", async () => {
    const log = [access("10:00:00"), access("10:00:00").replace("Bot/1.0", "Other")];
    expect((await found(log, "--host", "a.example", "--only", "Bot/1.0")).isClean).toBe(true);
  });

  it("finds the format behind a first line that is torn, and lines that end as on Windows", async () => {
    const good = json({ host: "a.example", time: iso(0) });
    const { logs } = await found([`\uFEFF${good.slice(0, 20)}`, "", `${good}\r`, `${good}\r`]);
    expect(logs[0]).toMatchObject({ format: "jsonl", requests: 2, broken: 1 });
  });

  it("takes the format it is told", async () => {
    const { logs } = await found(
      [json({ host: "a.example", time: iso(0) }), access("10:00:00")],
      "--format",
      "access",
      "--host",
      "a.example",
    );
    expect(logs[0]).toMatchObject({ format: "access", requests: 1, broken: 1 });
  });
});
