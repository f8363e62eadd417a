import { expect, it } from "vitest";
import type { Limits } from "../../../src/index.js";
import { scriptedSite } from "./scripted.js";

const SITE = "https://a.example";
const UNSENT = Object.assign(new TypeError("no"), { code: "ERR_INVALID_ARG_VALUE" });

it.each<Limits>([
  { rate: "100/s", burst: 100 },
  { rate: "100/s", burst: 100, concurrency: 4 },
  { window: "100/s" },
  { minDelay: 1 },
])("a request that was never sent gives the gap of a Crawl-delay back under %o", async (limits) => {
  const http = { userAgent: "Archive/2.1", robots: true };
  const { clock, polite } = scriptedSite({ default: { ...limits, backoff: "none" }, http }, (_index, { url }) => {
    if (url.endsWith("/robots.txt")) return { status: 200, body: "User-agent: *\nCrawl-delay: 10" };
    return url.endsWith("/bad") ? UNSENT : 200;
  });
  const first = polite.fetch(`${SITE}/1`);
  await clock.advance(20_000);
  await first;
  await expect(polite.fetch(`${SITE}/bad`)).rejects.toBe(UNSENT);
  expect(polite.check(SITE)).toMatchObject({ proceed: true });
  await polite.fetch(`${SITE}/2`);
  expect(polite.check(SITE)).toMatchObject({ proceed: false, waitMs: 10_000 });
});
