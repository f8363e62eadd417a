import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { GetProgress } from "../../src/get/observer.js";
import { Place, run } from "./place.js";
import { Crowd, pages, startSite } from "./site.js";

it("saves each body, and writes a line for it with what was asked and answered", async () => {
  using place = new Place();
  await using site = await startSite();
  const [url] = pages(site, 1);
  const { summary, error } = await run(place, [url]);
  expect(error).toBeUndefined();
  expect(summary).toMatchObject({ total: 1, fetched: 1, failed: 0, left: 0, requests: 1 });
  const [line] = place.index();
  const body = "page /p/0.html";
  expect(line).toMatchObject({ url, finalUrl: url, status: 200, outcome: "fetched", bytes: body.length, attempt: 1 });
  expect(line.headers).toMatchObject({ "content-type": "text/plain" });
  expect(line.sha256).toBe(createHash("sha256").update(body).digest("hex"));
  expect(place.read(join("out", line.file ?? ""))).toBe(body);
  expect(Date.parse(line.startedAt ?? "")).toBeGreaterThan(Date.now() - 60_000);
});

it("streams a body of 5 MB to disk, whole, and leaves nothing unfinished behind", async () => {
  using place = new Place();
  const body = Buffer.alloc(5_000_000, "politely ");
  await using site = await startSite({ answer: (_, response) => Boolean(response.end(body)) });
  expect((await run(place, pages(site, 3))).error).toBeUndefined();
  for (const { file = "", sha256 } of place.index()) {
    expect(sha256).toBe(createHash("sha256").update(body).digest("hex"));
    expect(Buffer.from(place.read(join("out", file))).equals(body)).toBe(true);
  }
  expect(readdirSync(join(place.path, "out")).filter((name) => name.startsWith("."))).toEqual([]);
});

it("asks a second time only for what has changed, once everything was fetched", async () => {
  using place = new Place();
  await using site = await startSite({
    answer(request, response) {
      const isSame = request.headers["if-none-match"] === '"1"' && request.url === "/p/0.html";
      response.writeHead(isSame ? 304 : 200, { etag: '"1"', "last-modified": "Mon, 01 Jan 2024 00:00:00 GMT" });
      response.end(isSame ? undefined : "new");
      return true;
    },
  });
  const urls = pages(site, 2);
  await run(place, urls);
  const { summary, error } = await run(place, urls);
  expect(error).toBeUndefined();
  expect(summary).toMatchObject({ total: 2, fetched: 2, unchanged: 1, requests: 2 });
  expect(site.seen[2].headers).toMatchObject({
    "if-none-match": '"1"',
    "if-modified-since": "Mon, 01 Jan 2024 00:00:00 GMT",
  });
  const again = place.index().slice(2);
  expect(again.find(({ status }) => status === 304)).toMatchObject({ outcome: "unchanged", bytes: 3 });
  expect(again.every(({ file = "" }) => place.read(join("out", file)) === "new")).toBe(true);
});

it("counts a 404 as finished, and tries a 500 and a broken connection again on the next run", async () => {
  using place = new Place();
  let isMended = false;
  await using site = await startSite({
    answer(request, response) {
      if (request.url === "/p/0.html") response.writeHead(404).end("no");
      else if (!isMended && request.url === "/p/1.html") response.writeHead(500).end("trouble");
      else if (!isMended && request.url === "/p/2.html") request.socket.destroy();
      else return false;
      return true;
    },
  });
  const urls = pages(site, 4);
  const first = await run(place, urls, { retry: 0, policy: { default: { backoff: "none" } } });
  expect(first.error?.message).toMatch(/^3 of 4 were not fetched: .*p\/0\.html \(status 404\)/);
  expect(
    place
      .index()
      .map(({ outcome }) => outcome)
      .toSorted(),
  ).toEqual(["failed", "failed", "fetched", "refused"]);
  isMended = true;
  const second = await run(place, urls);
  expect(second.error?.message).toMatch(/^1 of 4 was not fetched/);
  expect(Object.fromEntries(site.counts())).toEqual({ "/p/0.html": 1, "/p/1.html": 2, "/p/2.html": 2, "/p/3.html": 1 });
});

it("follows redirects, repeats what failed, and lists the requests before the last one", async () => {
  using place = new Place();
  await using site = await startSite({
    answer(request, response) {
      const tries = site.counts().get("/b") ?? 0;
      if (request.url === "/a") response.writeHead(302, { location: "/b" }).end();
      else if (tries === 1) response.writeHead(503).end();
      else return false;
      return true;
    },
  });
  const { error } = await run(place, [`${site.origin}/a`], {
    policy: { default: { backoff: "none" }, http: { retry: { attempts: 2, delay: 1 } } },
  });
  expect(error).toBeUndefined();
  const [line] = place.index();
  expect(line).toMatchObject({ finalUrl: `${site.origin}/b`, status: 200, attempt: 3 });
  expect(line.earlier?.map(({ status }) => status)).toEqual([302, 503]);
});

it("does not ask for what robots.txt forbids, and says which line does", async () => {
  using place = new Place();
  await using site = await startSite({
    answer: (request, response) =>
      request.url === "/robots.txt" && Boolean(response.end("User-agent: *\nDisallow: /p/1\n")),
  });
  const { error } = await run(place, pages(site, 2), { isRobots: true });
  expect(error?.message).toMatch(/1 of 2 was not fetched: .*robots.txt: line 2, Disallow: \/p\/1/);
  expect(site.seen.map(({ path }) => path)).toEqual(["/p/0.html"]);
});

it("does not let a slow host keep others waiting, and never has more than --concurrency in flight", async () => {
  using place = new Place();
  const crowd = new Crowd(5);
  await using site = await startSite({ answer: crowd.answer });
  const port = new URL(site.origin).port;
  const quick = Array.from({ length: 100 }, (_, index) => `http://127.0.0.1:${port}/q${index}`);
  const slow = Array.from({ length: 20 }, (_, index) => `http://localhost:${port}/s${index}`);
  const interrupted = new AbortController();
  const policy = { hosts: { localhost: { rate: "1/h" as const }, "127.0.0.1": { concurrency: 50 } } };
  let done = 0;
  const finished = (): void => {
    done += 1;
    if (done === 100) interrupted.abort();
  };
  const { summary } = await run(place, [...slow, ...quick], {
    policy,
    concurrency: 7,
    interrupted: interrupted.signal,
    observer: { finished },
  });
  expect(summary?.hosts.find(({ key }) => key === "127.0.0.1")?.requests).toBeGreaterThanOrEqual(99);
  expect(summary?.hosts.find(({ key }) => key === "localhost")?.requests).toBe(1);
  expect(crowd.most).toBeLessThanOrEqual(7);
  expect(crowd.most).toBeGreaterThan(3);
});

it("tells how far it is, what a host waits for and what its limits are", async () => {
  using place = new Place();
  await using site = await startSite();
  const interrupted = new AbortController();
  let progress: GetProgress | undefined;
  const listed: string[] = [];
  const running = run(place, pages(site, 5), {
    policy: { hosts: { "127.0.0.1": { rate: "1/h", concurrency: 2 } } },
    interrupted: interrupted.signal,
    observer: {
      begin: (given) => {
        progress = given;
      },
      listed: (key, count) => listed.push(`${key} ${count}`),
    },
  });
  await site.until(1);
  progress?.waits(["127.0.0.1"]);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(listed).toEqual(["127.0.0.1 5"]);
  expect(progress).toMatchObject({ total: 5, done: 1, failed: 0, starts: 1 });
  expect(progress?.hosts()).toEqual([
    expect.objectContaining({ key: "127.0.0.1", total: 5, done: 1, limit: "1/h, concurrency 2" }),
  ]);
  expect(progress?.left()).toEqual(new Map([["127.0.0.1", 4]]));
  const wait = progress?.waits(["127.0.0.1"]).get("127.0.0.1");
  expect(wait?.nextStartMs).toBeGreaterThan(3_000_000);
  expect(wait?.reason).toContain("1");
  interrupted.abort();
  expect((await running).error?.message).toBe("4 of 5 left; run the same command again to go on.");
});

it("writes the same lines to stdout with --json, and the summary last", async () => {
  using place = new Place();
  await using site = await startSite();
  const { stdout } = await run(place, pages(site, 3), { isJson: true });
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.slice(0, 3)).toEqual(place.index());
  expect(lines[3]).toMatchObject({ type: "summary", total: 3, fetched: 3 });
});

it("rebuilds its journal from the index when the journal is gone", async () => {
  using place = new Place();
  await using site = await startSite();
  await run(place, pages(site, 3));
  const { rmSync } = await import("node:fs");
  for (const name of readdirSync(join(place.path, "out"))) {
    if (name.startsWith("journal.db")) rmSync(join(place.path, "out", name));
  }
  await run(place, pages(site, 4));
  expect(Object.fromEntries(site.counts())).toEqual({ "/p/0.html": 1, "/p/1.html": 1, "/p/2.html": 1, "/p/3.html": 1 });
});
