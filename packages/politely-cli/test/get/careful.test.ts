import { readFileSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { filePath } from "../../src/get/filePath.js";
import { Place, run } from "./place.js";
import { pages, startSite } from "./site.js";

it("fetches a file anew whose size is not what it was", async () => {
  using place = new Place();
  await using site = await startSite({
    answer(request, response) {
      const isSame = request.headers["if-none-match"] === '"1"';
      response.writeHead(isSame ? 304 : 200, { etag: '"1"' }).end(isSame ? undefined : "whole");
      return true;
    },
  });
  const urls = pages(site, 2);
  await run(place, urls);
  const { file = "" } = place.index()[0];
  truncateSync(join(place.path, "out", file), 0);
  const { summary } = await run(place, urls);
  expect(summary).toMatchObject({ fetched: 2, unchanged: 1 });
  expect(place.read(join("out", file))).toBe("whole");
});

it("says how many were finished before, and how to ask for those", async () => {
  using place = new Place();
  await using site = await startSite({
    answer(request, response) {
      if (request.url === "/p/0.html") response.writeHead(500).end();
      return request.url === "/p/0.html";
    },
  });
  const urls = pages(site, 9);
  const options = { retry: 0, policy: { default: { backoff: "none" } } } as const;
  expect((await run(place, urls, options)).summary).toMatchObject({ finishedBefore: 0, failed: 1 });
  expect((await run(place, urls, options)).summary).toMatchObject({ finishedBefore: 8, requests: 1 });
  expect((await run(place, urls, { ...options, isRefresh: true })).summary).toMatchObject({ finishedBefore: 0 });
});

it("says why it asks again, in words that are true of this list", async () => {
  using place = new Place();
  await using site = await startSite({
    answer(request, response) {
      if (request.url === "/p/0.html") response.writeHead(404).end();
      return request.url === "/p/0.html";
    },
  });
  const urls = pages(site, 3);
  await run(place, urls);
  const again = "nothing is left: the whole list is asked for again, for what has changed";
  expect((await run(place, urls)).lines).toEqual([again]);
  rmSync(join(place.path, "out/journal.db"));
  expect((await run(place, urls.slice(1))).lines).toEqual([
    "lines of the index that the journal lacks are taken over: 6",
    again,
  ]);
  expect((await run(place, [...urls, `${site.origin}/new`], { isRefresh: true })).lines).toEqual([
    "what is finished is asked for again, too, for what has changed",
  ]);
});

it("writes a body as it is sent, and says how it is compressed where a site does so unasked", async () => {
  using place = new Place();
  const sent = gzipSync("page");
  await using site = await startSite({
    answer: (_, response) => Boolean(response.writeHead(200, { "content-encoding": "gzip" }).end(sent)),
  });
  await run(place, pages(site, 1));
  const [{ headers, file = "", bytes }] = place.index();
  expect({ headers, bytes }).toMatchObject({ headers: { "content-encoding": "gzip" }, bytes: sent.length });
  expect(readFileSync(join(place.path, "out", file))).toEqual(sent);
  expect(site.seen[0].headers["accept-encoding"]).toBeUndefined();
});

it("takes a part of a page for none, unless the part is the whole", async () => {
  using place = new Place();
  const ranges = ["bytes 0-3/9", "bytes 0-3/4", "bytes 4-7/8", "bytes 0-3/*"];
  await using site = await startSite({
    answer(request, response) {
      const range = ranges[Number(/\d/.exec(request.url ?? ""))];
      response.writeHead(206, range === undefined ? {} : { "content-range": range }).end("part");
      return true;
    },
  });
  await run(place, pages(site, 5));
  const lines = place.index().toSorted((one, other) => (one.url < other.url ? -1 : 1));
  const part = { outcome: "refused", status: 206, error: "status 206, a part of the page only" };
  expect(lines).toMatchObject([part, { outcome: "fetched", bytes: 4 }, part, part, part]);
  expect(lines.flatMap(({ file }) => file ?? [])).toHaveLength(1);
});

it("refuses a redirect that leads to no URL, and says where to", async () => {
  using place = new Place();
  await using site = await startSite({
    answer: (_, response) => Boolean(response.writeHead(302, { location: "http://[" }).end()),
  });
  await run(place, pages(site, 1));
  const [{ outcome, error }] = place.index();
  expect(outcome).toBe("refused");
  expect(error).toContain('redirects to "http://["');
});

it("breaks off a body that is larger than it may be, and keeps nothing of it", async () => {
  using place = new Place();
  await using site = await startSite({
    answer(request, response) {
      const isTold = request.url === "/p/0.html";
      response.writeHead(200, isTold ? { "content-length": "300000" } : {});
      for (let count = 0; count < 3; count++) response.write(Buffer.alloc(100_000));
      response.end();
      return true;
    },
  });
  const { error } = await run(place, pages(site, 2), { maxBytes: 200_000 });
  expect(error?.message).toMatch(/^2 of 2 were not fetched: .*larger than --max-size, 200 kB/);
  expect(place.index().map(({ outcome, file, attempt }) => ({ outcome, file, attempt }))).toEqual([
    { outcome: "refused", file: undefined, attempt: 1 },
    { outcome: "refused", file: undefined, attempt: 1 },
  ]);
  expect((await run(place, pages(site, 3).slice(2), { maxBytes: 300_000 })).error).toBeUndefined();
});

it("ends in order when a large body cannot be written any more", async () => {
  using place = new Place();
  const rejections: unknown[] = [];
  const heard = (reason: unknown): void => void rejections.push(reason);
  process.on("unhandledRejection", heard);
  await using site = await startSite({
    answer(_, response) {
      rmSync(join(place.path, "out", ".unfinished"), { recursive: true, force: true });
      response.end(Buffer.alloc(400_000));
      return true;
    },
  });
  const { error } = await run(place, pages(site, 1));
  await new Promise((resolve) => setTimeout(resolve, 50));
  process.off("unhandledRejection", heard);
  expect(error?.message).toMatch(/^the disk cannot be written: ENOENT.* 1 of 1 left/);
  expect(rejections).toEqual([]);
});

it("gives no body the name of a file of its own", () => {
  for (const name of ["index.jsonl", "journal.db", "journal.db-wal", "limits.db", "limits.db-shm"]) {
    expect(filePath(`https://${name}/`).split("/")[0]).not.toBe(name);
  }
});

it("groups what was not fetched by the reason, and shortens long URLs", async () => {
  using place = new Place();
  await using site = await startSite({ answer: (_, response) => Boolean(response.writeHead(404).end()) });
  const urls = Array.from({ length: 5 }, (_, index) => `${site.origin}/${index}${"x".repeat(400)}`);
  const { error } = await run(place, urls);
  expect(error?.message).toMatch(/^5 of 5 were not fetched: \S+… and 4 more \(status 404\)$/);
  expect(error?.message.length).toBeLessThan(250);
});
