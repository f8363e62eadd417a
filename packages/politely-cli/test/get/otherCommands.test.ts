import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startCommand } from "./child.js";
import { Place } from "./place.js";

/** Runs the built command in a place, with something on its stdin. */
const runIn = (place: Place, args: readonly string[], stdin = "") => startCommand(place.path, args, { stdin }).ended;

/** One line on stderr, nothing on stdout, exit code 2. */
async function expectUsage(place: Place, args: readonly string[], line: RegExp, stdin = ""): Promise<void> {
  const { code, stdout, stderr } = await runIn(place, args, stdin);
  expect({ args, code, stdout, lines: stderr.split("\n").length - 1 }).toEqual({ args, code: 2, stdout: "", lines: 1 });
  expect(stderr).toMatch(line);
}

const logLine = (atMs: number): string =>
  `${JSON.stringify({ url: "https://a.example/x", startedAtMs: 1_790_000_000_000 + atMs, status: 200, tookMs: 5 })}\n`;

it("audits stdin and files: exit code 0 and 1, --json, --receipt, and 2 for what cannot be judged", async () => {
  using place = new Place();
  place.file("p.json", '{ "default": { "minDelay": "1s" } }');
  const kept = await runIn(place, ["audit", "-p", "p.json", "-"], logLine(0) + logLine(1_000));
  expect(kept).toMatchObject({ code: 0, stderr: "", stdout: expect.stringMatching(/Kept to p\.json/) as string });

  place.file("crawl.jsonl", logLine(0) + logLine(900));
  const broken = await runIn(place, ["audit", "-p", "p.json", "crawl.jsonl", "--json", "--receipt", "receipt.json"]);
  expect({ code: broken.code, stderr: broken.stderr }).toEqual({ code: 1, stderr: "" });
  expect(JSON.parse(broken.stdout)).toMatchObject({ logs: [{ lines: 2 }] });
  expect(JSON.parse(place.read("receipt.json"))).toMatchObject({ kind: "politely-receipt", kept: false, requests: 2 });
  expect(place.read("receipt.json")).not.toContain("/x");

  await expectUsage(place, ["audit", "-p", "p.json", "missing.log"], /^politely: missing\.log/);
  await expectUsage(place, ["audit", "-p", "gone.json", "crawl.jsonl"], /^politely: gone\.json/);
  await expectUsage(place, ["audit"], /missing required argument/);
  await expectUsage(place, ["audit", "-p", "p.json", "crawl.jsonl", "--slack", "soon"], /^politely: --slack/);
  mkdirSync(join(place.path, "folder"));
  const unwritable = await runIn(place, ["audit", "-p", "p.json", "crawl.jsonl", "--receipt", "folder"]);
  expect(unwritable.code).not.toBe(0);
  expect(unwritable.stderr).toMatch(/^politely: .*folder.*\n$/);
});

it("checks, explains and migrates policies: exit code 0, 1 and 2, --json", async () => {
  using place = new Place();
  place.file("fine.yaml", "default: { rate: 2/s }\n");
  expect(await runIn(place, ["check", "fine.yaml"])).toMatchObject({ code: 0, stderr: "" });
  const explained = await runIn(place, ["check", "fine.yaml", "--explain", "x.org", "--json"]);
  expect(explained).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(explained.stdout)).toMatchObject({ isFine: true, explained: [{}] });

  place.file("wrong.json", '{ "default": { "rate": 0 } }');
  const wrong = await runIn(place, ["check", "wrong.json"]);
  expect(wrong).toMatchObject({ code: 1, stderr: "politely: wrong.json has a problem\n" });
  expect(wrong.stdout).toMatch(/^wrong\.json:1:\d+: default\.rate: /);
  place.file("torn.json", '{ "default": ');
  expect((await runIn(place, ["check", "torn.json"])).code).toBe(1);
  await expectUsage(place, ["check", "gone.json"], /^politely: gone\.json cannot be read/);
  await expectUsage(place, ["check"], /missing required argument/);

  const older = { version: "1.0", default_config: { requests_per_second: 2, burst_capacity: 4 }, domains: {} };
  place.file("older.json", JSON.stringify(older));
  expect((await runIn(place, ["check", "older.json", "--migrate", "--out", "new.json"])).code).toBe(0);
  expect(JSON.parse(place.read("new.json"))).toMatchObject({ default: { rate: "2/s", burst: 4 } });
  await expectUsage(place, ["check", "older.json", "--migrate", "--out", "new.json"], /new\.json/);
});

it("plans stdin and files: --json, --svg, --html, and exit code 2 with file and line for what is no URL", async () => {
  using place = new Place();
  const urls = Array.from({ length: 10 }, (_, index) => `https://a.example/${index}`).join("\n");
  place.file("p.json", '{ "default": { "rate": "1/s" } }');
  const plan = await runIn(place, ["plan", "-p", "p.json", "-", "--json", "--svg", "a.svg", "--html", "a.html"], urls);
  expect({ code: plan.code, stderr: plan.stderr }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(plan.stdout)).toMatchObject({ requests: 10, durationMs: 9_200 });
  expect(place.read("a.svg")).toContain("<svg ");
  expect(place.read("a.html")).toMatch(/^<!doctype html>/i);
  await expectUsage(
    place,
    ["plan", "-p", "p.json", "-"],
    /^politely: stdin:2: /,
    "https://a.example/\nno URL at all\n",
  );
  await expectUsage(place, ["plan", "gone.txt"], /^politely: gone\.txt/);
  await expectUsage(place, ["plan", "https://a.example/", "--latency", "long"], /latency/);
  place.file("bad.json", '{ "default": { "rate": 0 } }');
  await expectUsage(place, ["plan", "-p", "bad.json", "https://a.example/"], /bad\.json:1:\d+: default\.rate/);
});

it("shows presets, and ends with 1 for a search without a find and 2 for a name that does not exist", async () => {
  using place = new Place();
  expect(await runIn(place, ["presets"])).toMatchObject({ code: 0, stderr: "" });
  const one = await runIn(place, ["presets", "arxiv", "--json"]);
  expect(one).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(one.stdout)).toMatchObject({ id: "arxiv" });
  expect((await runIn(place, ["presets", "--search", "no such site anywhere"])).code).toBe(1);
  await expectUsage(place, ["presets", "arxv"], /arxiv/);
  await expectUsage(place, ["presets", "--colour"], /unknown option/);
});

it("has help with examples for every command, and one line for a command that does not exist", async () => {
  using place = new Place();
  for (const name of ["get", "plan", "audit", "check", "presets", "demo"]) {
    const { code, stdout, stderr } = await runIn(place, [name, "--help"]);
    expect({ name, code, stderr }).toEqual({ name, code: 0, stderr: "" });
    expect(stdout).toMatch(/^Usage: politely .*\n/);
    expect(stdout).toMatch(/Examples?:/);
  }
  await expectUsage(place, ["fetch"], /unknown command 'fetch'/);
  expect(existsSync(join(place.path, "politely-out"))).toBe(false);
});
