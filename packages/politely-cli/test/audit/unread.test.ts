import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import type { Receipt } from "../../src/audit/receipt.js";
import { addAudit } from "../../src/commands/audit.js";
import { main } from "../../src/main.js";
import { folderWith } from "../policy/captured.js";
import { policyFile, runAudit } from "./runAudit.js";

const ESC = "\u001b";
const start = Date.UTC(2026, 0, 31, 10);
const policy = { "p.json": policyFile({ minDelay: "1s", concurrency: 1 }) };
const line = (ms: number, more: object = {}): string =>
  JSON.stringify({ host: "a.example", startedAtMs: start + ms + 0.5, ...more });

/** A line of the index of `politely get`. */
const indexLine = (ms: number, more: object = {}): string =>
  JSON.stringify({
    url: "https://a.example/",
    finalUrl: "https://a.example/",
    key: "a.example",
    outcome: "fetched",
    startedAtMs: start + ms + 0.5,
    ...more,
  });

describe("lines that audit cannot read", () => {
  const torn = { ...policy, "x.jsonl": `${line(0)}\n${line(2_000)}\n{"host":"a.exam\n` };

  it("keep it from saying that the policy was kept", async () => {
    const ended = await runAudit(["-p", "p.json", "x.jsonl"], { files: torn });
    expect(ended.code).toBe(1);
    expect(ended.stdout.split("\n").at(-2)).toBe(
      "Not certain: 1 line could not be read; the rest kept to p.json: 1 host, 2 requests. --allow-unread judges by the rest.",
    );
    expect(ended.stderr).toMatch(
      /^politely: x\.jsonl: 1 of 3 lines could not be read \(3\); x\.jsonl:3: is not JSON\n$/,
    );
  });

  it("do not count when it is told so, and are named all the same", async () => {
    const ended = await runAudit(["-p", "p.json", "--allow-unread", "x.jsonl"], { files: torn });
    expect(ended.code).toBe(0);
    expect(ended.stdout.split("\n").at(-2)).toBe("Kept to p.json: 1 host, 2 requests; 1 line could not be read.");
    expect(ended.stderr).toContain("1 of 3 lines could not be read");
  });

  it("never hide a violation", async () => {
    const files = { ...policy, "x.jsonl": `${line(0)}\n${line(10)}\nnonsense\n` };
    for (const option of [[], ["--allow-unread"]]) {
      const ended = await runAudit(["-p", "p.json", ...option, "x.jsonl"], { files });
      expect(ended.code).toBe(1);
      expect(ended.stdout.split("\n").at(-2)).toBe(
        "Not kept to p.json: 1 of 1 host; 2 requests; 1 line could not be read.",
      );
    }
  });

  it("stand in what machines and site owners get", async () => {
    const cwd = await folderWith(torn);
    const strict = await runAudit(["-p", "p.json", "--json", "--receipt", "r.json", "x.jsonl"], { cwd });
    expect(JSON.parse(strict.stdout)).toMatchObject({ isClean: true, unread: 1, isKept: false });
    const receipt = JSON.parse(await readFile(join(cwd, "r.json"), "utf8")) as Receipt;
    expect(receipt).toMatchObject({ kept: false, unread: 1 });
    const lax = await runAudit(["-p", "p.json", "--json", "--allow-unread", "--receipt", "r.json", "x.jsonl"], { cwd });
    expect(JSON.parse(lax.stdout)).toMatchObject({ isClean: true, unread: 1, isKept: true });
    expect(JSON.parse(await readFile(join(cwd, "r.json"), "utf8"))).toMatchObject({ kept: true, unread: 1 });
  });

  it("count once, however many requests of a line are wrong", async () => {
    const bad = { url: "not a url", startedAtMs: start + 0.5 };
    const log = [indexLine(0), indexLine(5_000, { earlier: [bad, bad, bad] })].join("\n");
    const ended = await runAudit(["-p", "p.json", "--json", "x.jsonl"], { files: { ...policy, "x.jsonl": log } });
    expect(JSON.parse(ended.stdout)).toMatchObject({ unread: 1, logs: [{ lines: 2, requests: 2, broken: 1 }] });
    expect(ended.stderr).toMatch(/1 of 2 lines could not be read \(2\)/);
  });
});

describe("requests that the index leaves out", () => {
  it("keep audit from saying that the policy was kept, and are counted", async () => {
    const earlier = [{ url: "https://a.example/", startedAtMs: start + 1_500.5 }];
    const files = {
      ...policy,
      "x.jsonl": `${indexLine(0, { attempt: 1 })}\n${indexLine(5_000, { attempt: 5, earlier })}\n`,
    };
    const ended = await runAudit(["-p", "p.json", "x.jsonl"], { files });
    expect(ended.code).toBe(1);
    expect(ended.stdout).toContain(
      "Not certain: 1 line could not be read; the rest kept to p.json: 1 host, 3 requests.",
    );
    expect(ended.stderr).toContain("x.jsonl:2: leaves out 3 of its 5 requests");
  });
});

describe("lengths that cannot be", () => {
  it.each([
    ["a negative tookMs in the index", indexLine(0, { tookMs: -22.4 }), indexLine(1_500, { tookMs: -0.1 })],
    ["a negative length in JSON Lines", line(0, { durationMs: -22.4 }), line(1_500, { request_time: -3 })],
    ["an end before the start", line(0, { endedAt: start - 5_000 }), line(1_500, { endedAt: "2026-01-31T09:00:00Z" })],
  ])("are unknown: %s", async (_, one, other) => {
    const files = { ...policy, "x.jsonl": `${one}\n${other}\n` };
    const ended = await runAudit(["-p", "p.json", "--json", "x.jsonl"], { files });
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    const { logs, keys } = JSON.parse(ended.stdout) as { logs: object[]; keys: object[] };
    expect(logs[0]).toMatchObject({ requests: 2, broken: 0 });
    expect(keys[0]).not.toHaveProperty("peakConcurrency");
  });

  it("are unknown in the requests before the last one too", async () => {
    const earlier = [{ url: "https://a.example/", startedAtMs: start + 0.5, tookMs: -7 }];
    const files = { ...policy, "x.jsonl": `${indexLine(1_500, { earlier, tookMs: -9 })}\n` };
    expect(await runAudit(["-p", "p.json", "x.jsonl"], { files })).toMatchObject({ code: 0, stderr: "" });
  });
});

describe("what others wrote", () => {
  it("cannot draw on the terminal by a stamp, a scope or the name of a file", async () => {
    const stamp = `${ESC}[31m${ESC}[2J 31/Jan/2026`;
    const name = `x${ESC}[2J.log`;
    const good = '1.2.3.4 - - [31/Jan/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"';
    const log = `${good}\n1.2.3.4 - - [${stamp}] "GET / HTTP/1.1" 200 1 "-" "-"\n`;
    const ended = await runAudit(["-p", "p.json", "--host", "a.example", name], { files: { ...policy, [name]: log } });
    expect(ended.stderr).toContain("has a stamp that is no time");
    const scoped = JSON.stringify({ default: { minDelay: 0 }, scopes: { "*": { window: "1/s" } } });
    const scopes = [`${ESC}[31mred\nKept to p.json`];
    const other = await runAudit(["-p", "s.json", "y.jsonl"], {
      files: { "s.json": scoped, "y.jsonl": `${line(0, { scopes })}\n${line(1, { scopes })}\n` },
    });
    const missing = await runAudit(["-p", "p.json", `gone${ESC}[31m.log`], { files: policy });
    expect(missing).toMatchObject({ code: 2 });
    for (const text of [ended, other, missing].flatMap(({ stdout, stderr }) => [stdout, stderr])) {
      expect(text).not.toContain(ESC);
      expect(text).not.toMatch(/^Kept to/m);
    }
  });
});

describe("Ctrl-C", () => {
  it("ends an audit of stdin that has no end", async () => {
    const cwd = await folderWith(policy);
    const stdin = new PassThrough();
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const interrupt = new AbortController();
    const io = { stdin, stdout, stderr, env: {}, cwd, isTerminal: false, columns: 80 };
    const signals = { interrupted: interrupt.signal, stopped: new AbortController().signal };
    const running = main(["audit", "-p", "p.json", "-"], { ...io, ...signals }, [addAudit]);
    stdin.write(`${line(0)}\n`);
    setTimeout(() => interrupt.abort(), 50);
    expect(await running).toBe(1);
    expect(String(stderr.read())).toBe("politely: interrupted while stdin was read; nothing was judged.\n");
    expect(stdout.read()).toBeNull();
  });
});

describe("--slack", () => {
  it("takes a length of time with its unit, as every option does", async () => {
    const files = { ...policy, "x.jsonl": `${line(0)}\n` };
    const bare = await runAudit(["-p", "p.json", "--slack", "5", "x.jsonl"], { files });
    expect(bare).toMatchObject({
      code: 2,
      stderr:
        'politely: --slack takes a duration from 0 to 1h, such as 5ms, 1s or 2min; got "5". Add the unit: 5ms or 5s.\n',
    });
    expect((await runAudit(["-p", "p.json", "--slack", "0", "x.jsonl"], { files })).code).toBe(0);
    expect((await runAudit(["-p", "p.json", "--slack", "1.5 s", "x.jsonl"], { files })).code).toBe(0);
  });
});
