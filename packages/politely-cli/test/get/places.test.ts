import { setTimeout as delay } from "node:timers/promises";
import type { PolicyInput } from "politely";
import { expect, it } from "vitest";
import { Place, run } from "./place.js";
import { pages, type Site, startSite } from "./site.js";

const BODY_MS = 300;

/** A site that answers with a status and takes its time for the body. */
async function slowSite(status: number): Promise<{ site: Site; most: () => number }> {
  let open = 0;
  let most = 0;
  const site = await startSite({
    answer(request, response) {
      if (request.url === "/robots.txt") return false;
      open += 1;
      most = Math.max(most, open);
      response.writeHead(status).write("some");
      response.on("close", () => {
        open -= 1;
      });
      void delay(BODY_MS).then(() => response.end("more"));
      return true;
    },
  });
  return { site, most: () => most };
}

const cases: readonly (readonly [what: string, status: number, policy: PolicyInput])[] = [
  ["403", 403, { hosts: { "127.0.0.1": { concurrency: 1 } } }],
  ["503 with backoff none", 503, { hosts: { "127.0.0.1": { concurrency: 1, backoff: "none" } } }],
  ["404", 404, { hosts: { "127.0.0.1": { concurrency: 1 } } }],
];

for (const [what, status, policy] of cases) {
  it(`keeps the place of a ${what} until its body has ended`, async () => {
    using place = new Place();
    const { site, most } = await slowSite(status);
    await using _ = site;
    await run(place, pages(site, 4), { policy, retry: 0 });
    expect(most()).toBe(1);
    expect(place.index().map((line) => line.tookMs >= BODY_MS - 20)).toEqual([true, true, true, true]);
  });
}

it("holds a host at the headers of a 429, and keeps its place for all hosts until the body has ended", async () => {
  using place = new Place();
  const { site, most } = await slowSite(429);
  await using _ = site;
  const { port } = new URL(site.origin);
  const hosts = ["127.0.0.1", "127.0.0.2", "localhost"];
  const cooling: number[] = [];
  let began = 0;
  const { error } = await run(
    place,
    hosts.map((host) => `http://${host}:${port}/x`),
    {
      policy: {
        hosts: Object.fromEntries(hosts.map((host) => [host, { concurrency: 9, cooldown: 10 }])),
        global: { concurrency: 1 },
      },
      retry: 0,
      observer: {
        started: () => {
          began = performance.now();
        },
        cooling: () => cooling.push(performance.now() - began),
      },
    },
  );
  expect(error?.message).toMatch(/^3 of 3 were not fetched/);
  expect(most()).toBe(1);
  expect(cooling).toHaveLength(3);
  expect(Math.max(...cooling)).toBeLessThan(BODY_MS - 50);
});
