import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { VirtualOrigin } from "politely/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runExample } from "../../scripts/runExample.js";
import { SCALE, standInApi } from "../src/standIn.js";

const fileOf = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url));
const anyObservation = { body: JSON.stringify({ results: [{ id: 1, species_guess: null }] }) };
interface SettingsFile {
  readonly calls_per_period: object;
  readonly period_seconds: number;
  readonly waits_after_429_seconds: readonly number[];
  readonly max_retries: number;
  readonly workers: number;
}
const read = (name: string): SettingsFile => JSON.parse(readFileSync(fileOf(name), "utf8")) as SettingsFile;

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "politely-inaturalist-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function writeSettings(name: string, changes: object): Promise<string> {
  const file = join(folder, `${name}.json`);
  await writeFile(file, JSON.stringify({ ...read("client.demo.json"), ...changes }));
  return file;
}

describe("the client of iNaturalist", () => {
  it.concurrent("has one window for four threads as the API counts it, and climbs the ladder of waits after 429s", async () => {
    const origin = standInApi();
    await using server = await origin.listen();
    const args = ["--settings", fileOf("client.demo.json"), "--base-url", server.url];
    const { code, stdout, stderr } = await runExample("inaturalist", args);
    expect(stdout).toContain("100 of 100 observations read by 4 threads.");
    expect(code, `it said ${stderr}`).toBe(0);
    expect(origin.refused, "a limit was broken").toBe(0);
    expect(origin.mostInAny(3_000), "a limit was broken").toBeLessThanOrEqual(60);

    const answered = origin.requests.filter(({ status }) => status === 200).map(({ path }) => path);
    expect(new Set(answered).size).toBe(100);
    expect(answered).toHaveLength(100);
    const refusals = origin.requests.filter(({ status }) => status === 429);
    // Those that were on their way at the first 429 belong to it; the next two are probes, each of one thread.
    expect(refusals.length).toBeGreaterThanOrEqual(3);
    expect(refusals.length).toBeLessThanOrEqual(6);
    const [first = 0] = refusals.map(({ atMs }) => atMs);
    const [second = 0, third = 0] = refusals.slice(-2).map(({ atMs }) => atMs);
    const next = origin.requests.find(({ atMs, status }) => atMs > third && status === 200)?.atMs ?? 0;
    expect(second - first, "a limit was broken").toBeGreaterThanOrEqual(500);
    expect(third - second, "a limit was broken").toBeGreaterThanOrEqual(1_000);
    expect(next - third, "a limit was broken").toBeGreaterThanOrEqual(2_000);
  });

  it.concurrent("needs no API: without a base URL it starts a stand-in and says what is scaled and what that saw", async () => {
    const { code, stdout, stderr } = await runExample("inaturalist", []);
    expect(stdout).toContain("Times are divided by 20: a minute is 3 s.\n");
    expect(stdout).toMatch(/^worker \d: 429, nobody calls for 500 ms$/m);
    expect(stdout).toMatch(/^worker \d: 429, nobody calls for 1000 ms$/m);
    expect(stdout).toMatch(/^stats: \{"callsInPeriod":\d+,"callsRemaining":\d+,"periodSec":3,"nextResetSec":/m);
    expect(stdout).toMatch(
      /^The stand-in saw 10\d calls, at most (60|5\d) in any 3 s, and refused 0 for coming too often\.$/m,
    );
    expect(code, `it said ${stderr}`).toBe(0);
  });

  it("calls 60 times a minute as it is shipped, and stops at Ctrl-C while it waits for the 61st", async () => {
    const origin = new VirtualOrigin({ answers: () => anyObservation });
    await using server = await origin.listen();
    const args = ["--count", "61", "--base-url", server.url];
    const { code, stdout, tookMs, stderr } = await runExample("inaturalist", args, {
      interruptAt: "60/61 observations",
    });
    expect(code, `it said ${stderr}`).toBe(130);
    expect(stdout).toContain("60 of 61 observations read by 4 threads.\n");
    expect(tookMs).toBeLessThan(50_000);
    expect(origin.total).toBe(60);
    expect(origin.requests[0]?.headers).not.toHaveProperty("authorization");
    expect(origin.requests[0]?.headers["user-agent"]).toMatch(/^ObservationReader\/1\.0/);
  });

  it("calls 100 times a minute with a token", async () => {
    const origin = new VirtualOrigin({ answers: () => anyObservation });
    await using server = await origin.listen();
    const env = { INATURALIST_TOKEN: "made-up" };
    const { code, tookMs, stderr } = await runExample("inaturalist", ["--base-url", server.url], { env });
    expect(code, `it said ${stderr}`).toBe(0);
    expect(tookMs).toBeLessThan(50_000);
    expect(origin.total).toBe(100);
    expect(origin.requests.every(({ headers }) => headers.authorization === "made-up")).toBe(true);
  });

  it("takes an empty token for none, and one that is none for a mistake, which it does not repeat", async () => {
    const origin = new VirtualOrigin({ answers: () => anyObservation });
    await using server = await origin.listen();
    const call = (token: string) =>
      runExample("inaturalist", ["--count", "1", "--base-url", server.url], { env: { INATURALIST_TOKEN: token } });
    const empty = await call("");
    expect([empty.code, empty.stdout]).toEqual([0, expect.stringContaining('"callsRemaining":59')]);
    const broken = await call("secret\nword");
    expect([broken.code, origin.total]).toEqual([2, 1]);
    expect(broken.stderr).not.toContain("secret");
  });

  it("gives an observation up after its retries, and ends with 1", async () => {
    const origin = new VirtualOrigin({ answers: () => 429 });
    await using server = await origin.listen();
    const settings = await writeSettings("short", { waits_after_429_seconds: [0.05, 0.1, 0.2] });
    const args = ["--count", "1", "--settings", settings, "--base-url", server.url];
    const { code, stdout, stderr } = await runExample("inaturalist", args);
    expect(stdout).toContain("observation 1 failed: the API answered 429\n");
    expect(origin.total).toBe(4);
    expect(code, `it said ${stderr}`).toBe(1);
  });

  it.each([
    ["no workers", { workers: 0 }, "workers must be a whole number from 1 to 32; got 0."],
    ["calls that are missing", { calls_per_period: {} }, "calls_per_period.anonymous must be a whole number"],
    ["a period of 0", { period_seconds: 0 }, "period_seconds must be 0.001 to 86400 seconds; got 0."],
    ["a ladder without a step", { waits_after_429_seconds: [] }, "must be a list of 1 to 10 numbers."],
    ["a step that is a text", { waits_after_429_seconds: ["10s"] }, 'must be 0.001 to 86400 seconds; got "10s".'],
  ])("ends with 2 and one line for %s, before it calls anything", async (name, changes, message) => {
    const { code, stdout, stderr } = await runExample("inaturalist", [
      "--settings",
      await writeSettings(name, changes),
    ]);
    expect(code, `it said ${stderr}`).toBe(2);
    expect(stdout).toBe("");
    expect(stderr.trimEnd().split("\n")).toEqual([expect.stringContaining(message)]);
  });

  it.each([
    ["a count of 0", ["--count", "0"], "--count must be 1 to 10000; got 0."],
    ["a base URL that is none", ["--base-url", "here"], '--base-url must be a URL with http or https; got "here".'],
  ])("ends with 2 and one line for %s", async (_name, args, message) => {
    const { code, stderr } = await runExample("inaturalist", args);
    expect(code, `it said ${stderr}`).toBe(2);
    expect(stderr).toBe(`${message}\n`);
  });

  it("demonstrates with the settings that are shipped, 20 times as fast", () => {
    const real = read("client.json");
    expect(read("client.demo.json")).toEqual({
      ...real,
      period_seconds: real.period_seconds / SCALE,
      waits_after_429_seconds: real.waits_after_429_seconds.map((sec) => sec / SCALE),
    });
  });
});
