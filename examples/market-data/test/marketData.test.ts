import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Limiter, loadPolicy, politely } from "politely";
import { collector } from "politely/presets";
import { VirtualClock, VirtualOrigin } from "politely/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runExample } from "../../scripts/runExample.js";
import { SCALE, standInSites } from "../src/standIn.js";

const fileOf = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url));
const demoLimits = ["--limits", fileOf("limits.demo.json"), "--timeout", "5000"];
let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "politely-market-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function write(name: string, content: unknown): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

/** When the requests of a host arrived, and how long after the one before. */
function gapsAt(origin: VirtualOrigin, host: string): readonly number[] {
  const arrivals = origin.host(host).requests.map(({ atMs }) => atMs);
  return arrivals.slice(1).map((atMs, index) => atMs - (arrivals[index] ?? 0));
}

describe("the market data collector", () => {
  it.concurrent("keeps to every limit as the sites count them, stays away as long as each answer asks, and collects everything", async () => {
    const origin = standInSites();
    await using server = await origin.listen();
    const { code, stdout, stderr } = await runExample("market-data", [...demoLimits, "--base-url", server.url]);
    expect(stdout).toContain("10 of 10 datapoints collected.");
    expect(code, `it said ${stderr}`).toBe(0);
    expect(origin.refused, "a limit was broken").toBe(0);
    expect(origin.total).toBe(16);

    const yahoo = origin.host("finance.yahoo.com");
    expect(yahoo.requests.map(({ status }) => status)).toEqual([503, 503, 200, 200, 200]);
    expect(yahoo.mostInAny(3_000), "a limit was broken").toBeLessThanOrEqual(3);
    expect(yahoo.shortestGapMs, "a limit was broken").toBeGreaterThanOrEqual(100);
    // Two steps of the exponential ladder; the last two are searches, which have a gap of their own.
    const yahooGaps = gapsAt(origin, "finance.yahoo.com");
    expect(yahooGaps[0], "a limit was broken").toBeGreaterThanOrEqual(250);
    expect(yahooGaps[1], "a limit was broken").toBeGreaterThanOrEqual(500);
    expect(yahooGaps[3], "a limit was broken").toBeGreaterThanOrEqual(500);

    // A 429 without Retry-After: what is a minute elsewhere.
    expect(gapsAt(origin, "reuters.com")[0], "a limit was broken").toBeGreaterThanOrEqual(3_000);
    expect(gapsAt(origin, "reuters.com")[1], "a limit was broken").toBeGreaterThanOrEqual(150);
    // The first step of 0.25 s begins when there was no answer within 5 s. The request is in time if it arrives just before.
    expect(gapsAt(origin, "acme.company-ir")[0], "a limit was broken").toBeGreaterThanOrEqual(250);
    expect(stdout).toMatch(/annual report: no answer within 5000 ms\n/);
    expect(origin.host("eia.gov").arrivalsBeforeRetryAfter, "a limit was broken").toBe(0);
    // An error where the backoff is none: the gap alone.
    expect(gapsAt(origin, "eia.gov")[1], "a limit was broken").toBeGreaterThanOrEqual(50);
    expect(origin.host("rates.example.org").total).toBe(1);
  });

  it.concurrent("needs no site: without a base URL it starts stand-ins, says what is scaled, and why each request waits", async () => {
    const { code, stdout, stderr } = await runExample("market-data", []);
    expect(stdout).toContain("The limits are 20 times as fast: a minute is 3 s.\n");
    expect(stdout).toMatch(/reuters\.com +fetch +energy news: waits [23]\d{3} ms: .*cooling down after 429/);
    expect(stdout).toMatch(/finance\.yahoo\.com +fetch +crude oil: waits \d+ ms: .*cooling down after 503/);
    expect(stdout).toMatch(/finance\.yahoo\.com +search +tickers of oil: waits \d+ ms: /);
    expect(stdout).toMatch(/^The stand-ins saw 16 requests, and refused 0 for coming too often\.$/m);
    expect(code, `it said ${stderr}`).toBe(0);
  });

  it.each([404, 301])("does not ask again for what is not there (%i), and ends with 1", async (status) => {
    const origin = new VirtualOrigin({ answers: () => status });
    await using server = await origin.listen();
    const list = await write(`gone${status}.json`, [
      { name: "gone", url: "https://x.example.org/gone", intent: "api" },
    ]);
    const args = [...demoLimits, "--datapoints", list, "--base-url", server.url];
    const { code, stdout, stderr } = await runExample("market-data", args);
    expect(stdout).toContain(`gone: got ${status}\n0 of 1 datapoints collected.\n`);
    expect(origin.total).toBe(1);
    expect(code, `it said ${stderr}`).toBe(1);
  });

  it("gives a datapoint up after five attempts", async () => {
    const origin = new VirtualOrigin({ answers: () => 500 });
    await using server = await origin.listen();
    const list = await write("down.json", [{ name: "down", url: "https://eia.gov/down", intent: "api" }]);
    const args = [...demoLimits, "--datapoints", list, "--base-url", server.url];
    const { code, stderr } = await runExample("market-data", args);
    expect(origin.host("eia.gov").total).toBe(5);
    expect(code, `it said ${stderr}`).toBe(1);
  });

  it("stops at Ctrl-C while it waits, with the shipped limits, and sends nothing more", async () => {
    const origin = standInSites();
    await using server = await origin.listen();
    const args = ["--base-url", server.url];
    const { code, stdout, tookMs, stderr } = await runExample("market-data", args, {
      interruptAt: "cooling down after 429, 60 s",
    });
    expect(code, `it said ${stderr}`).toBe(130);
    expect(stdout).toMatch(/\d of 10 datapoints collected\.\n$/);
    expect(tookMs).toBeLessThan(30_000);
    expect(origin.host("reuters.com").total).toBe(1);
  });

  it.each([
    ["a limit that is none", { default: { window: "5/fortnight" } }, "default.window"],
    ["a field with a typing error", { default: { minDelai: "1s" } }, "minDelai"],
    ["text that is no JSON", "{", "cannot be used"],
  ])("ends with 2 and says what is wrong for %s, before it sends anything", async (name, limits, message) => {
    const file = await write(`${name}.json`, limits);
    const { code, stdout, stderr } = await runExample("market-data", ["--limits", file]);
    expect(code, `it said ${stderr}`).toBe(2);
    expect(stderr).toContain(`The limits ${file} cannot be used.`);
    expect(stderr).toContain(message);
    expect(stdout).toBe("");
  });

  it.each([
    ["an intent nobody knows", ["--datapoints", "intent.json"], "entry 1 must have a name"],
    ["a list that is not there", ["--datapoints", "none.json"], "none.json cannot be read: ENOENT"],
    ["a timeout of 0", ["--timeout", "0"], "--timeout must be 1 to 600000 milliseconds; got 0."],
    ["a base URL that is none", ["--base-url", "here"], '--base-url must be a URL with http; got "here".'],
  ])("ends with 2 and one line for %s", async (_name, args, message) => {
    await write("intent.json", [{ name: "x", url: "https://x.org/", intent: "steal" }]);
    const { code, stderr } = await runExample(
      "market-data",
      args.map((arg) => (arg.endsWith(".json") ? join(folder, arg) : arg)),
    );
    expect(code, `it said ${stderr}`).toBe(2);
    expect(stderr.trimEnd().split("\n")).toEqual([expect.stringContaining(message)]);
  });
});

describe("the limits of the market data collector", () => {
  const hosts = ["finance.yahoo.com", "reuters.com", "acme.company-ir", "eia.gov", "anything.example"];
  const limiterOf = (policy: object): { readonly clock: VirtualClock; readonly polite: Limiter } => {
    const clock = new VirtualClock();
    return { clock, polite: politely(loadPolicy(policy), { clock }) };
  };
  const read = (name: string): object => JSON.parse(readFileSync(fileOf(name), "utf8")) as object;

  /** Asks by hand twelve times, with some errors and a 429, and tells how long each request waits, in ms. */
  async function waits(policy: object, host: string, intent: string): Promise<readonly number[]> {
    const { clock, polite } = limiterOf(policy);
    const outcomes = ["success", "success", "server_error", "timeout", "server_error", "rate_limited"] as const;
    const waited: number[] = [];
    for (let count = 0; count < 12; count += 1) {
      waited.push(polite.check({ host, intent }).waitMs);
      await clock.advance(waited.at(-1) ?? 0);
      polite.record({ host, intent }, outcomes[count % outcomes.length] ?? "success");
    }
    return waited;
  }

  it.each(hosts)("are those of the preset for %s", async (host) => {
    expect(await waits(read("limits.json"), host, "fetch")).toEqual(
      await waits({ ...collector.policy }, host, "fetch"),
    );
  });

  it.each(hosts.flatMap((host) => [[host, "fetch"] as const, [host, "search"] as const]))(
    "of the demonstration are the real ones, 20 times as fast, for %s and the intent %s",
    async (host, intent) => {
      const real = await waits(read("limits.json"), host, intent);
      const scaled = await waits(read("limits.demo.json"), host, intent);
      expect(scaled.map((ms) => ms * SCALE)).toEqual(real);
      expect(Math.max(...real)).toBeGreaterThan(0);
    },
  );
});
