import { expect, it } from "vitest";
import { Place, run } from "./place.js";
import { pages, type Site, startSite } from "./site.js";

/** Quick repetitions, and a site that is held for no more than a moment. */
const policy = {
  hosts: { "127.0.0.1": { rate: "1000/s", burst: 100, cooldown: 1, backoff: "none" } },
  http: { retry: { attempts: 3, delay: 1, jitter: 0 } },
} as const;

/** `/a…` leads to `/b…`, which only ever says "too many requests". */
function startDetour(): Promise<Site> {
  return startSite({
    answer(request, response) {
      const path = request.url ?? "";
      if (path.startsWith("/a")) response.writeHead(302, { location: path.replace("/a", "/b") }).end();
      else response.writeHead(429).end();
      return true;
    },
  });
}

for (const retry of [1, 2, 3]) {
  it(`asks ${retry} times more for a page that is always answered with 429, with --retry ${retry}`, async () => {
    using place = new Place();
    await using site = await startSite({ answer: (_, response) => Boolean(response.writeHead(429).end()) });
    await run(place, pages(site, 1), { policy, retry });
    expect(place.index()).toMatchObject([{ outcome: "failed", status: 429, attempt: retry + 1 }]);
    expect(site.seen).toHaveLength(retry + 1);
  });
}

it("gives a page up that redirects to a 429, after as many repetitions", async () => {
  using place = new Place();
  await using site = await startDetour();
  await run(place, [`${site.origin}/a`], { policy, retry: 1 });
  expect(place.index()).toMatchObject([{ outcome: "failed", status: 429, attempt: 3 }]);
  expect(Object.fromEntries(site.counts())).toEqual({ "/a": 1, "/b": 2 });
});

it("does not take the redirects of one page for a reason to ask for another again", async () => {
  using place = new Place();
  await using site = await startDetour();
  const urls = [1, 2, 3].map((number) => `${site.origin}/a${number}`);
  await run(place, urls, { policy, retry: 1 });
  expect(place.index().map(({ attempt }) => attempt)).toEqual([3, 3, 3]);
});

it("asks again for what a 429 stopped as long as others of the site are fetched", async () => {
  using place = new Place();
  const tries = new Map<string, number>();
  await using site = await startSite({
    answer({ url = "" }, response) {
      const count = (tries.get(url) ?? 0) + 1;
      tries.set(url, count);
      const isRefused = url === "/p/0.html" && count < 6;
      if (isRefused) response.writeHead(429).end();
      return isRefused;
    },
  });
  const { error } = await run(place, pages(site, 60), { policy, retry: 1 });
  expect(error).toBeUndefined();
  expect(tries.get("/p/0.html")).toBe(6);
});

it("asks --retry times more for every page of a site in trouble, however many there are", async () => {
  using place = new Place();
  const asked = new Set<string>();
  await using site = await startSite({
    answer({ url = "" }, response) {
      const isFirst = !asked.has(url);
      asked.add(url);
      if (isFirst) response.writeHead(500).end();
      return isFirst;
    },
  });
  const { error, summary } = await run(place, pages(site, 80), { policy, retry: 1 });
  expect(error).toBeUndefined();
  expect(summary).toMatchObject({ fetched: 80, requests: 160 });
});

it("keeps to the budget of repetitions that a policy writes down", async () => {
  using place = new Place();
  await using site = await startSite({ answer: (_, response) => Boolean(response.writeHead(500).end()) });
  const retry = { attempts: 2, delay: 1, jitter: 0, budget: { share: 0, perMinute: 3 } };
  const { summary } = await run(place, pages(site, 20), { policy: { ...policy, http: { retry } } });
  expect(summary).toMatchObject({ failed: 20, requests: 23 });
});
