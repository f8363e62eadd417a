import { expect, it } from "vitest";
import { isThrottled } from "../../src/get/throttled.js";
import { Place, run } from "./place.js";
import { startSite } from "./site.js";

const policy = { hosts: { "127.0.0.1": { rate: "1000/s", burst: 100 } } } as const;

it("reads an answer as the limiter does", () => {
  for (const status of [429, 418, 420, 509, 529]) expect(isThrottled(status, {})).toBe(true);
  for (const status of [403, 503]) {
    expect(isThrottled(status, {})).toBe(false);
    expect(isThrottled(status, { "retry-after": "1" })).toBe(true);
    expect(isThrottled(status, { "retry-after": "0" })).toBe(false);
    expect(isThrottled(status, { "retry-after": "soon" })).toBe(false);
  }
  expect(isThrottled(403, { "x-ratelimit-remaining": "0" })).toBe(true);
  expect(isThrottled(404, { "retry-after": "1" })).toBe(false);
});

it("takes a 403 with Retry-After for a 429: it is counted as one, has failed, and is asked for again", async () => {
  using place = new Place();
  let count = 0;
  await using site = await startSite({
    answer(request, response) {
      count += 1;
      if (request.url === "/plain") response.writeHead(403).end();
      else if (count <= 2) response.writeHead(403, { "retry-after": "1" }).end();
      return request.url === "/plain" || count <= 2;
    },
  });
  const urls = ["/plain", "/told"].map((path) => site.origin + path);
  const { summary } = await run(place, urls, { policy, retry: 0 });
  expect(summary).toMatchObject({ failed: 2, hosts: [{ throttled: 1 }] });
  const outcomes = new Map(place.index().map(({ url, outcome }) => [url.slice(site.origin.length), outcome]));
  expect(Object.fromEntries(outcomes)).toEqual({ "/plain": "refused", "/told": "failed" });
  expect((await run(place, urls, { policy, retry: 0 })).summary).toMatchObject({ fetched: 1, requests: 1 });
});
