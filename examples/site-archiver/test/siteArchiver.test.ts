import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VirtualOrigin } from "politely/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runExample } from "../../scripts/runExample.js";
import { standInSite } from "../src/standIn.js";

/** A request may be on its way for so long, on a machine with other things to do. */
const ON_THE_WAY_MS = 500;

let folder = "";
let configCount = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "politely-archiver-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Runs the archiver against `origin`, with a config in which `site` replaces fields of a usual one. */
async function archive(origin: VirtualOrigin, site: object, options: { readonly interruptAt?: string } = {}) {
  configCount += 1;
  const config = join(folder, `${configCount}.json`);
  const out = join(folder, `out${configCount}`);
  const usual = { base_url: "https://example.com", wait_time: 0.3, paths: ["/page1", "/page2", "/page3"] };
  await writeFile(config, JSON.stringify({ user_agent: "Archiver/1.0", sites: { site_a: { ...usual, ...site } } }));
  await using server = await origin.listen();
  const end = await runExample(
    "site-archiver",
    ["--config", config, "--out", out, "--base-url", server.url, "--verbose"],
    options,
  );
  return { ...end, out };
}

describe("the site archiver", () => {
  it.concurrent("fetches the pages of its config two seconds apart, shows each wait, and saves what the site sent", async () => {
    const origin = standInSite("https://example.com");
    await using server = await origin.listen();
    const out = join(folder, "shipped");
    const { code, stdout, stderr } = await runExample("site-archiver", ["--out", out, "--base-url", server.url]);
    expect(code, `it said ${stderr}`).toBe(0);
    expect(origin.requests.map(({ path }) => path)).toEqual(["/page1", "/page2", "/page3", "/page4"]);
    expect(origin.requests[0]?.headers["user-agent"]).toMatch(/^SiteArchiver\/1\.0/);
    expect(origin.refused).toBe(0);
    // Starts are 2 s apart; what the site sees is off by how long each request is on its way.
    expect(origin.shortestGapMs).toBeGreaterThan(2_000 - ON_THE_WAY_MS);
    expect(stdout).toMatch(/^4 of 4 pages saved\.\nA request each 2\.\d s;/m);
    expect(await readdir(out)).toEqual(["page1.html", "page2.html", "page3.html", "page4.html"]);
    expect(await readFile(join(out, "page3.html"), "utf8")).toBe("<h1>This is /page3</h1>\n");
    // The site takes 0.3 s for a page, so at most 1.7 s of each gap are left.
    expect(stdout).toMatch(/^1\/4 {2}\/page1 {2}saved, 24 bytes\n2\/4 {2}\/page2 {2}waiting [01]\.\d s\n2\/4/);
  });

  it.concurrent("needs no site: without a base URL it starts a stand-in and says what that saw", async () => {
    const { code, stdout, stderr } = await runExample("site-archiver", ["--out", join(folder, "demo")]);
    expect(stderr).toMatch(/^A stand-in for https:\/\/example\.com listens at http:\/\/127\.0\.0\.1:\d+\./m);
    expect(stdout).toMatch(/^The stand-in saw 4 requests, the closest two (1\.[5-9]|2\.0) s apart, and refused 0\.$/m);
    expect(code, `it said ${stderr}`).toBe(0);
  });

  it.each([
    ["a wait of 0", { wait_time: 0 }, "ready"],
    ["a site on this machine", { base_url: "http://localhost:4000", wait_time: 2 }, "disabled (localhost)"],
  ])("does not wait with %s", async (_name, site, logged) => {
    const origin = new VirtualOrigin();
    const { code, stdout, stderr } = await archive(origin, site);
    expect(stderr).toContain(logged);
    expect(code, `it said ${stderr}`).toBe(0);
    expect(origin.total).toBe(3);
    expect(stdout).not.toContain("waiting");
  });

  it("asks again for a page that was refused, when the site said so", async () => {
    const origin = new VirtualOrigin({ answers: [200, { status: 429, headers: { "retry-after": "1" } }] });
    const { code, stderr } = await archive(origin, {});
    expect(code, `it said ${stderr}`).toBe(0);
    expect(origin.requests.map(({ path }) => path)).toEqual(["/page1", "/page2", "/page2", "/page3"]);
    expect(origin.arrivalsBeforeRetryAfter).toBe(0);
    expect(stderr).toContain("429");
  });

  it("goes on after a page that is not there, leaves no file for it, and ends with 1", async () => {
    const origin = new VirtualOrigin({ pages: { "/page2": 404 } });
    const { code, stdout, out, stderr } = await archive(origin, {});
    expect(code, `it said ${stderr}`).toBe(1);
    expect(stdout).toContain("2/3  /page2  failed: the site answered 404\n");
    expect(await readdir(out)).toEqual(["page1.html", "page3.html"]);
  });

  it("keeps every page inside its folder, whatever its path", async () => {
    const { code, out, stderr } = await archive(new VirtualOrigin(), {
      paths: ["/", "/../up", "/a/b?c=d"],
      wait_time: 0,
    });
    expect(code, `it said ${stderr}`).toBe(0);
    expect(await readdir(out)).toEqual(["%2F.html", "..%2Fup.html", "a%2Fb%3Fc%3Dd.html"]);
  });

  it("stops at Ctrl-C while it waits, and sends nothing more", async () => {
    const origin = new VirtualOrigin();
    const { code, stdout, tookMs, stderr } = await archive(
      origin,
      { wait_time: 60 },
      { interruptAt: "/page2  waiting" },
    );
    expect(code, `it said ${stderr}`).toBe(130);
    expect(tookMs).toBeLessThan(30_000);
    expect(origin.total).toBe(1);
    expect(stdout).toContain("2/3  /page2  stopped\n1 of 3 pages saved.\n");
  });

  it.each([
    ["a negative wait", { wait_time: -1 }, "sites.site_a.wait_time must be 0 to 3600 seconds; got -1."],
    ["a wait that is a text", { wait_time: "2s" }, 'wait_time must be 0 to 3600 seconds; got "2s".'],
    ["no pages", { paths: [] }, 'paths must be a list of 1 to 10000 texts, each beginning with "/".'],
    [
      "another protocol",
      { base_url: "ftp://x.org" },
      'base_url must be a URL with http or https, without ? and #; got "ftp://x.org".',
    ],
    ["an address with a question", { base_url: "http://x.org/?a=1" }, "without ? and #"],
  ])("ends with 2 and one line for %s, before it sends anything", async (_name, site, message) => {
    const origin = new VirtualOrigin();
    const { code, stdout, stderr } = await archive(origin, site);
    expect(code, `it said ${stderr}`).toBe(2);
    expect(stdout).toBe("");
    expect(stderr.trimEnd().split("\n")).toEqual([expect.stringContaining(message)]);
    expect(origin.total).toBe(0);
  });

  it.each([
    ["a site it does not have", ["--site", "site_z"], 'has no site "site_z". It has: site_a, preview.'],
    ["a file that is not there", ["--config", "none.json"], "The config none.json cannot be read: ENOENT"],
    ["an option it does not know", ["--fast"], "Unknown option '--fast'"],
    ["a folder that cannot be written", ["--out", "/dev/null/here"], "ENOTDIR"],
  ])("ends with 2 and one line for %s", async (_name, args, message) => {
    const { code, stderr } = await runExample("site-archiver", args);
    expect(code, `it said ${stderr}`).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});
