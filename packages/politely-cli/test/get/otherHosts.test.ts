import { expect, it, onTestFinished } from "vitest";
import { Place, run } from "./place.js";
import { Crowd, pages, type Site, startSite } from "./site.js";

/** A site whose `/drip…` sends a byte every 200 ms for as long as somebody listens. */
function startDripping(): Promise<Site> {
  return startSite({
    answer(request, response) {
      if (request.url?.startsWith("/drip") !== true) return false;
      const timer = setInterval(() => response.write("x"), 200);
      response.on("close", () => clearInterval(timer));
      return true;
    },
  });
}

it("fetches from other hosts while several let every request of theirs drag on, and leaves those places", async () => {
  using place = new Place();
  const slow = await Promise.all(Array.from({ length: 6 }, startDripping));
  onTestFinished(async () => {
    await Promise.all(slow.map((each) => each[Symbol.asyncDispose]()));
  });
  await using site = await startSite();
  const hosts = [...slow, site].map(({ origin }) => [new URL(origin).host, { rate: "1000/s" }] as const);
  const urls = slow.flatMap(({ origin }) => Array.from({ length: 20 }, (_, index) => `${origin}/drip${index}`));
  const enough = new AbortController();
  const timer = setTimeout(() => enough.abort(), 10_000);
  let fetched = 0;
  await run(place, [...urls, ...pages(site, 40)], {
    concurrency: 16,
    policy: { hosts: Object.fromEntries(hosts) },
    interrupted: enough.signal,
    stopped: enough.signal,
    observer: {
      finished({ outcome }) {
        if (outcome === "fetched") fetched += 1;
        if (fetched === 40) enough.abort();
      },
    },
  });
  clearTimeout(timer);
  expect(fetched).toBe(40);
  // Each has its share while it has not answered, as if there were one host more; the last of the other host may be through by now.
  expect(Math.max(...slow.map(({ seen }) => seen.length))).toBeLessThanOrEqual(3);
});

it("fetches the other pages of a host while some of its redirects lead to a host that has to wait", async () => {
  using place = new Place();
  await using slow = await startSite();
  await using site = await startSite({
    answer(request, response) {
      const isMoved = request.url?.startsWith("/moved") === true;
      if (isMoved) response.writeHead(302, { location: `${slow.origin}${request.url}` }).end();
      return isMoved;
    },
  });
  const moved = Array.from({ length: 20 }, (_, index) => `${site.origin}/moved${index}`);
  const policy = {
    hosts: { [new URL(site.origin).host]: { rate: "100/s" }, [new URL(slow.origin).host]: { rate: "1/min" } },
  } as const;
  const enough = new AbortController();
  const timer = setTimeout(() => enough.abort(), 10_000);
  let direct = 0;
  await run(place, [...moved, ...pages(site, 10)], {
    concurrency: 4,
    policy,
    interrupted: enough.signal,
    observer: {
      finished({ url, finalUrl }) {
        if (url === finalUrl) direct += 1;
        if (direct === 10) enough.abort();
      },
    },
  });
  clearTimeout(timer);
  expect(direct).toBe(10);
  // What waited there is left for the next run.
  expect(place.index()).toHaveLength(11);
  expect(slow.seen).toHaveLength(1);
});

it("gives a single host every place", async () => {
  using place = new Place();
  const crowd = new Crowd(50);
  await using site = await startSite({ answer: crowd.answer });
  await run(place, pages(site, 60), { concurrency: 16 });
  expect(crowd.most).toBe(16);
});

it("takes a body that comes byte by byte for silence", async () => {
  using place = new Place();
  await using site = await startDripping();
  const { error } = await run(place, [`${site.origin}/drip`], { timeoutMs: 1_000, retry: 0 });
  expect(error?.message).toContain("its body comes slower than 10 bytes a second");
  expect(place.index()).toMatchObject([{ outcome: "failed", attempt: 1 }]);
});

it("fails nothing for a maxQueue, since the list waits in the journal", async () => {
  using place = new Place();
  await using site = await startSite();
  const limits = { rate: "200/s", maxQueue: 0 } as const;
  const policy = { hosts: { "127.0.0.1": limits }, global: { maxQueue: 0 } };
  expect((await run(place, pages(site, 20), { policy })).error).toBeUndefined();
});

for (const [what, limits, options] of [
  ["--max-wait", {}, { maxWait: "300ms" }],
  ["a policy's maxWait", { maxWait: "300ms" }, {}],
] as const) {
  it(`gives nothing up by ${what} that only waits for others of the list`, async () => {
    using place = new Place();
    await using site = await startSite();
    const policy = { hosts: { "127.0.0.1": { rate: "10/s", burst: 3, ...limits } } } as const;
    expect((await run(place, pages(site, 20), { policy, ...options })).error).toBeUndefined();
  });
}

it("gives up what would wait longer than --max-wait, and says it once for all", async () => {
  using place = new Place();
  await using site = await startSite();
  const policy = { hosts: { "127.0.0.1": { rate: "1/min" } } } as const;
  const { error } = await run(place, pages(site, 5), { policy, maxWait: "100ms" });
  expect(error?.message).toMatch(
    /^4 of 5 were not fetched: \S+ and 3 more \(would have to wait longer than --max-wait, at least [^,:]+ more: 127\.0\.0\.1: rate 1\/min\)$/,
  );
});
