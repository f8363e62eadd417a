import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { addPlan } from "../../src/commands/plan.js";
import { main } from "../../src/main.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "plan-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(
  args: readonly string[],
  { stdin = "", isInterrupted = false, isTerminal = false } = {},
): Promise<Ran> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const interrupted = new AbortController();
  if (isInterrupted) interrupted.abort();
  const io = {
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout,
    stderr,
    env: { LANG: "C.UTF-8" },
    cwd: folder,
    isTerminal,
    columns: 80,
    interrupted: interrupted.signal,
    stopped: new AbortController().signal,
  };
  const code = await main(["plan", ...args], io, [addPlan]);
  return { code, out: String(stdout.read() ?? ""), err: String(stderr.read() ?? "") };
}

describe("politely plan", () => {
  it("plans URLs, files and stdin together by politely.json in the folder", async () => {
    writeFileSync(join(folder, "politely.json"), '{ "default": { "rate": "2/s" } }');
    writeFileSync(join(folder, "list.txt"), "# a list\nhttps://a.org/1\n\na.org/2\n");
    const { code, out, err } = await run(["list.txt", "https://a.org/3", "-", "--json"], {
      stdin: "a.org/4\na.org/5\na.org/1\n",
    });
    expect([code, err]).toEqual([0, ""]);
    expect(JSON.parse(out)).toMatchObject({
      requests: 5,
      duplicates: 1,
      durationMs: 2_200,
      latencyMs: 200,
      concurrency: null,
      longPole: { host: "a.org", oneMorePerSecond: { scope: "host" } },
      hosts: [{ host: "a.org", requests: 5, endsAtMs: 2_200, limitsFrom: "default", binds: { text: "rate 2/s" } }],
    });
  });

  it("takes latency and concurrency from the command line", async () => {
    const { out } = await run(["a.org", "b.org", "c.org", "--concurrency", "1", "--latency", "1.5s", "--json"]);
    expect(JSON.parse(out)).toMatchObject({ durationMs: 4_500, latencyMs: 1_500, concurrency: 1, peakInFlight: 1 });
  });

  it("writes the picture into files beside the text", async () => {
    const { code, out } = await run(["a.org", "--svg", "plan.svg", "--html", "plan.html"]);
    expect(code).toBe(0);
    expect(out).toContain("1 request to 1 host: done in 200 ms");
    expect(readFileSync(join(folder, "plan.svg"), "utf8")).toMatch(/^<\?xml.*<\/svg>\n$/s);
    expect(readFileSync(join(folder, "plan.html"), "utf8")).toMatch(/^<!doctype html>.*<\/html>\n$/s);
  });

  it("shows no progress for what is quick, and none without a terminal", async () => {
    expect((await run(["a.org"], { isTerminal: true })).err).toBe("");
  });

  it.each([
    [[], /plan needs URLs/],
    [["empty.txt"], /the list is empty/],
    [["bad.txt"], /bad\.txt:2: /],
    [["missing.txt"], /missing\.txt/],
    [["a.org", "--latency", "11min"], /from 0 to 10min/],
    [["a.org", "--latency", "soon"], /from 0 to 10min/],
    [["a.org", "--concurrency", "0"], /whole number from 1/],
    [["a.org", "--nonsense"], /unknown option/],
    [["a.org", "-p", "none.json"], /none\.json/],
    [["a.org", "-p", "wrong.json"], /wrong\.json:1:/],
  ])("exits 2 and says why for %j", async (args, message) => {
    writeFileSync(join(folder, "empty.txt"), "# nothing\n\n");
    writeFileSync(join(folder, "bad.txt"), "a.org\nhttp://\n");
    writeFileSync(join(folder, "wrong.json"), '{ "default": { "rate": "often" } }');
    const { code, out, err } = await run(args);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toMatch(message);
  });

  it.each([
    ["a list", ["--svg", "./list.txt"], "--svg ./list.txt"],
    ["a list under another name", ["--html", "link.txt"], "--html link.txt"],
    ["the policy", ["--html", "politely.json"], "--html politely.json"],
  ])("never writes a picture over %s that it reads", async (_, args, named) => {
    writeFileSync(join(folder, "politely.json"), "{}");
    writeFileSync(join(folder, "list.txt"), "a.org\n");
    symlinkSync("list.txt", join(folder, "link.txt"));
    expect(await run(["list.txt", ...args])).toEqual({
      code: 2,
      out: "",
      err: `politely: ${named} would replace a file that is read; name another one.\n`,
    });
    expect(readFileSync(join(folder, "list.txt"), "utf8")).toBe("a.org\n");
    expect(readFileSync(join(folder, "politely.json"), "utf8")).toBe("{}");
  });

  it("exits 1 when a file cannot be written, after the plan", async () => {
    const { code, out, err } = await run(["a.org", "--svg", "no/such/plan.svg"]);
    expect(code).toBe(1);
    expect(out).toContain("done in");
    expect(err).toMatch(/no\/such\/plan\.svg could not be written: ENOENT/);
  });

  it("stops at Ctrl-C", async () => {
    const { code, err } = await run(["a.org"], { isInterrupted: true });
    expect([code, err]).toEqual([1, "politely: interrupted; nothing was planned.\n"]);
  });

  it("has examples in its help", async () => {
    const { code, out } = await run(["--help"]);
    expect(code).toBe(0);
    expect(out).toContain("politely plan urls.txt");
  });
});
