import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type OriginCounts, VirtualOrigin } from "politely/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ExampleEnd, type ExampleOptions, runExample } from "../../scripts/runExample.js";
import { standInSite } from "../src/standIn.js";

/** A request may be on its way for so long, on a machine with other things to do. */
const ON_THE_WAY_MS = 500;

interface DomainStats {
  readonly domain: string;
  readonly total_requests: number;
  readonly delayed_requests: number;
  readonly total_wait_time_ms: number;
  readonly average_wait_time_ms: number;
  readonly last_request_time: string;
  readonly delay_rate: number;
}

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "politely-multi-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function write(name: string, content: string | object): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

/** Runs the crawler against a server of its own for each domain. */
async function crawl(
  origins: Readonly<Record<string, VirtualOrigin>>,
  args: readonly string[],
  options: ExampleOptions = {},
): Promise<ExampleEnd> {
  const servers = await Promise.all(Object.values(origins).map((origin) => origin.listen()));
  const places = Object.keys(origins).flatMap((domain, index) => ["--base-url", `${domain}=${servers[index]?.url}`]);
  try {
    return await runExample("multi-site", [...args, ...places], options);
  } finally {
    await Promise.all(servers.map((server) => server.close()));
  }
}

const readStats = ({ stdout }: ExampleEnd): readonly DomainStats[] => JSON.parse(stdout) as readonly DomainStats[];

function spanMs({ requests }: OriginCounts): number {
  return (requests.at(-1)?.atMs ?? 0) - (requests[0]?.atMs ?? 0);
}

describe("the multi-site crawler", () => {
  it.concurrent("keeps each domain to its bucket as its site sees it, and prints what each has waited", async () => {
    const domains = ["javdb.com", "av-wiki.net", "news.example.org"] as const;
    const origins = Object.fromEntries(domains.map((domain) => [domain, standInSite(domain)]));
    const end = await crawl(origins, []);
    expect(end.code, `it said ${end.stderr}`).toBe(0);
    const stats = readStats(end);
    expect(stats.map(({ domain }) => domain)).toEqual(domains);
    expect(Object.values(origins).map(({ total, refused }) => [total, refused])).toEqual([
      [5, 0],
      [8, 0],
      [3, 0],
    ]);
    // Five at 1/s, eight at 2/s of which two go at once, three at the default's 1/s: what the last of each has to wait.
    for (const [index, leastMs] of [4_000, 3_000, 2_000].entries()) {
      const origin = origins[domains[index] ?? ""] ?? new VirtualOrigin();
      expect(spanMs(origin)).toBeGreaterThan(leastMs - ON_THE_WAY_MS);
    }
    // The waits of all, at least: 1 + 2 + 3 + 4 s; 0.5 + 1 + … + 3 s; 1 + 2 s.
    for (const [index, leastMs] of [10_000, 10_500, 3_000].entries()) {
      expect(stats[index]?.total_wait_time_ms).toBeGreaterThan(leastMs - ON_THE_WAY_MS);
    }
    expect(stats.map((row) => [row.total_requests, row.delayed_requests, row.delay_rate])).toEqual([
      [5, 4, 0.8],
      [8, 6, 0.75],
      [3, 2, 2 / 3],
    ]);
  });

  it.concurrent("needs no site: without a base URL it starts a stand-in for each domain, with nothing but JSON on stdout", async () => {
    const end = await runExample("multi-site", []);
    expect(end.code, `it said ${end.stderr}`).toBe(0);
    expect(Object.keys(readStats(end)[0] ?? {})).toEqual([
      "domain",
      "total_requests",
      "delayed_requests",
      "total_wait_time_ms",
      "average_wait_time_ms",
      "last_request_time",
      "delay_rate",
    ]);
    expect(end.stderr).toContain("3 stand-ins listen, one for each domain. Nothing is scaled.\n");
    expect(end.stderr).toContain("16 of 16 pages came.\n");
    expect(end.stderr).toContain("The stand-in for javdb.com saw 5 requests, and refused 0.\n");
  });

  it("says which pages did not come, and ends with 1", async () => {
    const origin = new VirtualOrigin({ pages: { "/gone": 404, "/broken": "reset" } });
    const lines = ["/here", "/gone", "/broken"].map((path) => `https://fast.example.org${path}`);
    const urls = await write("three.txt", lines.join("\n"));
    const limits = { requests_per_second: 50, burst_capacity: 50 };
    const config = await write("fast.json", { version: "1.0", default_config: limits });
    const { code, stderr } = await crawl({ "fast.example.org": origin }, ["--urls", urls, "--config", config]);
    expect(stderr).toContain("404  https://fast.example.org/gone");
    expect(stderr).toContain("failed  https://fast.example.org/broken");
    expect(stderr).toContain("1 of 3 pages came.\n");
    expect(origin.total).toBe(3);
    expect(code, `it said ${stderr}`).toBe(1);
  });

  it("stops at Ctrl-C while others wait, sends nothing more, and still prints its statistics", async () => {
    const origin = new VirtualOrigin();
    const urls = await write("two.txt", "https://slow.example.org/1\nhttps://slow.example.org/2\n");
    const limits = { requests_per_second: 0.01, burst_capacity: 1 };
    const config = await write("slow.json", { version: "1.0", default_config: limits });
    const args = ["--urls", urls, "--config", config];
    const end = await crawl({ "slow.example.org": origin }, args, { interruptAt: "200  https" });
    expect(end.code, `it said ${end.stderr}`).toBe(130);
    expect(end.tookMs).toBeLessThan(30_000);
    expect(origin.total).toBe(1);
    expect(readStats(end)).toMatchObject([{ domain: "slow.example.org", total_requests: 1, delayed_requests: 0 }]);
  });

  it("warns of a burst above a minute's worth, and goes on", async () => {
    const urls = await write("one.txt", "https://big.example.org/\n");
    const limits = { requests_per_second: 1, burst_capacity: 61 };
    const config = await write("big.json", { version: "1.0", domains: { "big.example.org": limits } });
    const args = ["--urls", urls, "--config", config];
    const { code, stderr } = await crawl({ "big.example.org": new VirtualOrigin() }, args);
    expect(stderr).toMatch(/big\.example\.org.*61/);
    expect(code, `it said ${stderr}`).toBe(0);
  });

  it.each([
    ["a rate of 0", { requests_per_second: 0, burst_capacity: 1 }, "default_config.requests_per_second"],
    ["a burst of 0", { requests_per_second: 1, burst_capacity: 0 }, "default_config.burst_capacity"],
  ])("ends with 2 and names the field for %s, before it sends anything", async (name, limits, path) => {
    const config = await write(`${name}.json`, { version: "1.0", default_config: limits });
    const { code, stdout, stderr } = await runExample("multi-site", ["--config", config]);
    expect(code, `it said ${stderr}`).toBe(2);
    expect(stderr).toContain(`The config ${config} cannot be used.`);
    expect(stderr).toContain(path);
    expect(stdout).toBe("");
  });

  it.each([
    ["a line that is no URL", "https://a.org/\njavdb.com\n", "line 2: must be a URL with http or https"],
    ["a list without a URL", "# nothing\n", "must have 1 to 10000 URLs; it has 0."],
  ])("ends with 2 and one line for %s", async (name, lines, message) => {
    const { code, stderr } = await runExample("multi-site", ["--urls", await write(`${name}.txt`, lines)]);
    expect(code, `it said ${stderr}`).toBe(2);
    expect(stderr.trimEnd().split("\n")).toEqual([expect.stringContaining(message)]);
  });

  it("ends with 2 and one line for a base URL without its domain", async () => {
    const { code, stderr } = await runExample("multi-site", ["--base-url", "http://127.0.0.1:1"]);
    expect(code, `it said ${stderr}`).toBe(2);
    expect(stderr).toBe('--base-url must be a domain, "=" and a URL with http or https; got "http://127.0.0.1:1".\n');
  });
});
