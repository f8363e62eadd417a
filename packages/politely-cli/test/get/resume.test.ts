import { appendFileSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { auditTrace } from "politely/testing";
import { expect, it } from "vitest";
import { startGet } from "./child.js";
import { Place, run } from "./place.js";
import { pages, startSite } from "./site.js";

const perWindow = 250;
const windowMs = 3_000;

it("goes on after kill -9 without asking for a finished URL again, and without forgetting what it owes", async () => {
  using place = new Place();
  await using site = await startSite({ delayMs: 5 });
  place.file("list.txt", pages(site, 500).join("\n"));
  const policy = { hosts: { "127.0.0.1": { window: { count: perWindow, per: windowMs } } } };
  place.file("politely.json", JSON.stringify(policy));
  const args = ["list.txt", "-o", "out", "--no-robots"];

  const first = startGet(place.path, args);
  await site.until(150);
  first.child.kill("SIGKILL");
  await first.ended;
  const finished = place.index().map(({ url }) => new URL(url).pathname);
  const before = site.counts();
  expect(finished.length).toBeGreaterThan(0);
  expect(finished.length).toBeLessThan(500);
  // Somebody was in the middle of a line.
  appendFileSync(join(place.path, "out/index.jsonl"), '{"url":"http://127.0.0.1/torn');

  const { code, stderr } = await startGet(place.path, args).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const after = site.counts();
  expect(finished.filter((path) => after.get(path) !== before.get(path))).toEqual([]);
  expect(after.size).toBe(500);
  const lines = place.index();
  expect(lines).toHaveLength(500);
  expect(new Set(lines.map(({ url }) => url)).size).toBe(500);
  for (const { file = "", url } of lines.slice(0, 20))
    expect(place.read(`out/${file}`)).toBe(`page ${new URL(url).pathname}`);
  // No debt is lost: what the site saw of both runs keeps the limit. On a busy machine a request may take some time to arrive, and the next one none.
  const seen = site.seen.map(({ path, atMs }) => ({ url: `${site.origin}${path}`, startedAtMs: atMs }));
  expect(seen.length).toBeGreaterThanOrEqual(500);
  const [judged] = auditTrace(seen, policy, { slackMs: 300 }).keys;
  expect({ requests: judged.requests, violations: judged.violations }).toEqual({
    requests: seen.length,
    violations: [],
  });
  // The limit did hold it back, across the kill too: a limiter without memory would have been through sooner.
  const [firstMs, lastMs] = [seen[0].startedAtMs, seen[seen.length - 1].startedAtMs];
  expect(lastMs - firstMs).toBeGreaterThan(windowMs - 100);
  const free = auditTrace(seen, { hosts: { "127.0.0.1": { window: { count: perWindow - 20, per: windowMs } } } });
  expect(free.isClean).toBe(false);
});

it("finishes what is in flight at the first Ctrl-C, says what is left, and goes on with the same command", async () => {
  using place = new Place();
  await using site = await startSite({ delayMs: 200 });
  place.file("list.txt", pages(site, 60).join("\n"));
  const args = ["list.txt", "--no-robots", "--concurrency", "4"];
  const first = startGet(place.path, args);
  await site.until(6);
  first.child.kill("SIGINT");
  const { code, stderr } = await first.ended;
  expect(code).toBe(1);
  const lines = place.index("politely-out");
  expect(stderr).toContain(`${60 - lines.length} of 60 left; run the same command again`);
  // Everything the site was asked for was also finished.
  expect(lines).toHaveLength(site.seen.length);
  expect((await startGet(place.path, args).ended).code).toBe(0);
  expect(site.seen).toHaveLength(60);
});

it("stops at once at the second Ctrl-C, and goes on with the same command", async () => {
  using place = new Place();
  await using site = await startSite({
    answer: (request) => request.url === "/p/3.html" && site.counts().get("/p/3.html") === 1,
  });
  place.file("list.txt", pages(site, 5).join("\n"));
  const args = ["list.txt", "--no-robots"];
  const first = startGet(place.path, args);
  await site.until(5);
  first.child.kill("SIGINT");
  const isOver = await Promise.race([
    first.ended.then(() => true),
    new Promise((r) => setTimeout(() => r(false), 500)),
  ]);
  expect(isOver).toBe(false);
  first.child.kill("SIGINT");
  const { code, stderr } = await first.ended;
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining("1 of 5 left") as string });
  expect((await startGet(place.path, args).ended).code).toBe(0);
  expect(Object.fromEntries(site.counts())).toMatchObject({ "/p/3.html": 2, "/p/4.html": 1 });
});

it("writes down starts that keep their gap to the microsecond, also across runs that were broken off", async () => {
  using place = new Place();
  await using site = await startSite();
  place.file("list.txt", pages(site, 12).join("\n"));
  const policy = { hosts: { "127.0.0.1": { minDelay: "200ms" } } } as const;
  place.file("politely.json", JSON.stringify(policy));
  const args = ["list.txt", "-o", "out", "--no-robots"];
  for (const asked of [3, 6, 9]) {
    const broken = startGet(place.path, args);
    await site.until(asked);
    broken.child.kill("SIGINT");
    await broken.ended;
  }
  expect((await startGet(place.path, args).ended).code).toBe(0);
  const lines = place.index().map(({ url, startedAtMs = Number.NaN }) => ({ url, startedAtMs }));
  expect(lines).toHaveLength(12);
  expect(auditTrace(lines, policy).keys.flatMap(({ violations }) => violations)).toEqual([]);
});

it("goes on by the index alone when the journal is lost: the last line of each URL holds", async () => {
  using place = new Place();
  let isUp = false;
  await using site = await startSite({
    answer(request, response) {
      const isDown = request.url === (isUp ? "/p/2.html" : "/p/1.html");
      if (isDown) response.writeHead(500).end();
      return isDown;
    },
  });
  const urls = pages(site, 4);
  await run(place, urls, { retry: 0 });
  isUp = true;
  // The first is fetched now. A new round has one fail that was fetched before.
  await run(place, urls, { retry: 0 });
  const { error } = await run(place, urls, { retry: 0 });
  expect(error?.message).toContain("/p/2.html (status 500)");
  const before = site.counts();
  for (const name of ["journal.db", "limits.db"]) rmSync(join(place.path, "out", name));

  const { summary } = await run(place, urls, { retry: 0 });
  expect(summary).toMatchObject({ total: 4, fetched: 3, failed: 1, requests: 1, finishedBefore: 3 });
  expect(site.counts()).toEqual(new Map(before).set("/p/2.html", (before.get("/p/2.html") ?? 0) + 1));
});

it.each([
  ["removed", 0],
  ["cut off after two lines", 2],
])(
  "asks again for URLs whose lines are gone when the index was %s, and keeps the pages that are the same",
  async (_, kept) => {
    using place = new Place();
    let isDown = true;
    await using site = await startSite({
      answer(request, response) {
        if (isDown && request.url === "/p/3.html") response.writeHead(500).end();
        else if (request.headers["if-none-match"] === '"1"') response.writeHead(304).end();
        else response.writeHead(200, { etag: '"1"' }).end("x");
        return true;
      },
    });
    const urls = pages(site, 4);
    await run(place, urls, { retry: 0, concurrency: 1 });
    isDown = false;
    const index = join(place.path, "out/index.jsonl");
    const twoLines = place.read("out/index.jsonl").split("\n").slice(0, kept);
    const known = twoLines.map((line) => (JSON.parse(line) as { readonly url: string }).url);
    truncateSync(index, Buffer.byteLength(twoLines.map((line) => `${line}\n`).join("")));
    const before = site.seen.length;

    const { summary, error, lines } = await run(place, urls, { retry: 0 });
    expect({ summary, error }).toMatchObject({
      summary: { total: 4, fetched: 4, requests: 4 - kept },
      error: undefined,
    });
    expect(lines[0]).toContain("index.jsonl is shorter than it was");
    const listed = place.index();
    expect(listed.map(({ url }) => url).sort()).toEqual([...urls].sort());
    expect(listed.every(({ file = "", sha256 }) => sha256 !== undefined && place.read(`out/${file}`) === "x")).toBe(
      true,
    );
    const asked = site.seen.slice(before).map(({ path }) => `${site.origin}${path}`);
    expect(asked.sort()).toEqual(urls.filter((url) => !known.includes(url)).sort());
    // Nothing is owed any more: the next one is a round as ever.
    expect((await run(place, urls)).lines[0]).toContain("nothing is left");
  },
);
