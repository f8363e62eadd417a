import { expect, it } from "vitest";
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

it("fetches from other hosts while one lets every request of its own drag on", async () => {
  using place = new Place();
  await using site = await startDripping();
  const { port } = new URL(site.origin);
  const dripping = Array.from({ length: 40 }, (_, index) => `${site.origin}/drip${index}`);
  const quick = Array.from({ length: 10 }, (_, index) => `http://localhost:${port}/${index}`);
  const enough = new AbortController();
  let fetched = 0;
  await run(place, [...dripping, ...quick], {
    concurrency: 16,
    policy: { hosts: { "127.0.0.1": { rate: "1000/s" }, localhost: { rate: "50/s" } } },
    interrupted: enough.signal,
    stopped: enough.signal,
    observer: {
      finished({ outcome }) {
        if (outcome === "fetched") fetched += 1;
        if (fetched === 10) enough.abort();
      },
    },
  });
  expect(fetched).toBe(10);
  // Once the others are through, nothing needs to be left to them.
  const lastQuick = site.seen.findLastIndex(({ path }) => !path.startsWith("/drip"));
  const dragging = lastQuick + 1 - quick.length;
  expect(dragging).toBeGreaterThan(8);
  expect(dragging).toBeLessThan(16);
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
