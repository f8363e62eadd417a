import { join } from "node:path";
import { expect, it } from "vitest";
import { openSqlite } from "../../src/get/sqlite.js";
import { Place, run } from "./place.js";
import { type Site, startSite } from "./site.js";

/** `/latest` leads to the version of `leadsTo`; every version has the same validator, as dates of files often have. */
async function startVersions(): Promise<{ readonly site: Site; leadsTo: string }> {
  const versions = { leadsTo: "/v1" };
  const site = await startSite({
    answer(request, response) {
      const { url = "" } = request;
      const isSame = request.headers["if-none-match"] === '"1"';
      if (url === "/latest") response.writeHead(302, { location: versions.leadsTo }).end();
      else response.writeHead(isSame ? 304 : 200, { etag: '"1"' }).end(isSame ? undefined : `content of ${url}`);
      return true;
    },
  });
  return Object.assign(versions, { site });
}

it("fetches a page anew whose redirect leads elsewhere than before", async () => {
  using place = new Place();
  const versions = await startVersions();
  await using site = versions.site;
  await run(place, [`${site.origin}/latest`]);
  versions.leadsTo = "/v2";
  await run(place, [`${site.origin}/latest`]);
  const [before, now] = place.index();
  expect([before.outcome, now.outcome]).toEqual(["fetched", "fetched"]);
  expect(place.read(join("out", now.file ?? ""))).toBe("content of /v2");
});

it("asks only where the page came from whether it has changed", async () => {
  using place = new Place();
  const versions = await startVersions();
  await using site = versions.site;
  await run(place, [`${site.origin}/latest`]);
  await run(place, [`${site.origin}/latest`]);
  expect(place.index()[1]).toMatchObject({ outcome: "unchanged", finalUrl: `${site.origin}/v1` });
  const conditions = site.seen.map(({ path, headers }) => [path, headers["if-none-match"]]);
  expect(conditions).toEqual([
    ["/latest", undefined],
    ["/v1", undefined],
    ["/latest", undefined],
    ["/v1", '"1"'],
  ]);
});

it("takes a 304 that nobody asked for as no page", async () => {
  using place = new Place();
  let count = 0;
  await using site = await startSite({
    answer(_, response) {
      count += 1;
      response.writeHead(count === 1 ? 200 : 304).end();
      return true;
    },
  });
  await run(place, [`${site.origin}/x`]);
  await run(place, [`${site.origin}/x`]);
  expect(place.index()[1]).toMatchObject({ outcome: "refused", error: "status 304" });
});

it("goes on in a folder that does not know yet where its pages came from", async () => {
  using place = new Place();
  const versions = await startVersions();
  await using site = versions.site;
  const urls = [`${site.origin}/v1`];
  await run(place, urls);
  const journal = openSqlite(join(place.path, "out/journal.db"));
  journal.exec("ALTER TABLE pages DROP COLUMN final_url");
  journal.close();
  expect((await run(place, urls)).summary).toMatchObject({ fetched: 1, unchanged: 0 });
  expect((await run(place, urls)).summary).toMatchObject({ fetched: 1, unchanged: 1 });
});
