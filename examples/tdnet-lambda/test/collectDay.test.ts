import { afterEach, beforeEach, expect, it } from "vitest";
import { type CollectedDay, collectDay, pageUrl, tokyoDay } from "../src/collectDay.js";
import { type LocalSite, startSite } from "../src/local/site.js";

let site: LocalSite;
beforeEach(async () => {
  site = await startSite({ pageCount: 3 });
});
afterEach(() => site.close());

const collect = (maxPages: number, signal = new AbortController().signal): Promise<CollectedDay> =>
  collectDay({ siteUrl: new URL(site.url), day: "2026-02-06", maxPages, signal, fetch: (url) => fetch(url) });

it("reads pages in order until one is not there, and has every document once", async () => {
  const found = await collect(15);
  expect(found).toMatchObject({ day: "2026-02-06", pageCount: 3, isComplete: true });
  expect(found.documents).toHaveLength(9);
  expect(found.documents[0]).toBe("14011001.pdf");
  expect(site.arrivals.map(({ path }) => path)).toEqual([
    "/inbs/I_list_001_20260206.html",
    "/inbs/I_list_002_20260206.html",
    "/inbs/I_list_003_20260206.html",
    "/inbs/I_list_004_20260206.html",
  ]);
});

it("stops after maxPages, and says that there may be more", async () => {
  expect(await collect(2)).toMatchObject({ pageCount: 2, isComplete: false });
  expect(site.arrivals).toHaveLength(2);
});

it("keeps nothing of a day when a page is neither there nor missing", async () => {
  site.fail(403);
  await expect(collect(15)).rejects.toThrow("I_list_001_20260206.html answered 403. Nothing of 2026-02-06 is kept");
  expect(site.arrivals).toHaveLength(1);
});

it("asks for no page once its signal is aborted", async () => {
  const reason = new Error("The lock is lost.");
  await expect(collect(15, AbortSignal.abort(reason))).rejects.toBe(reason);
  expect(site.arrivals).toEqual([]);
});

it("refuses a page of more than 2 MB, whatever it says of its length", async () => {
  const large = (): Promise<Response> => Promise.resolve(new Response("x".repeat(2_000_001)));
  const options = { siteUrl: new URL(site.url), day: "2026-02-06", maxPages: 1, signal: new AbortController().signal };
  await expect(collectDay({ ...options, fetch: large })).rejects.toThrow("larger than 2000000 bytes");
});

it("takes the day of Tokyo, which begins at 15:00 UTC", () => {
  expect(tokyoDay(Date.UTC(2026, 1, 6, 14, 59, 59, 999))).toBe("2026-02-06");
  expect(tokyoDay(Date.UTC(2026, 1, 6, 15))).toBe("2026-02-07");
  expect(pageUrl(new URL("https://www.release.tdnet.info"), "2026-02-07", 12).href).toBe(
    "https://www.release.tdnet.info/inbs/I_list_012_20260207.html",
  );
});
