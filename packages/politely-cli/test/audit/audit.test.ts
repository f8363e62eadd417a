import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { Receipt } from "../../src/audit/receipt.js";
import { folderWith } from "../policy/captured.js";
import { policyFile, runAudit } from "./runAudit.js";

const at = (host: string, time: string, more: object = {}): string =>
  `${JSON.stringify({ url: `https://${host}/secret?q=1`, time: `2026-01-31T${time}Z`, ...more })}\n`;

const crawl = [
  at("a.example", "10:00:00.000", { status: 200 }),
  at("b.example", "10:00:00.100", { status: 429, tookMs: 50, headers: { "Retry-After": "30" } }),
  at("a.example", "10:00:00.400", { status: 200 }),
  "nonsense\n",
  at("b.example", "10:00:10.000", { status: 200, tookMs: 50 }),
  at("c.example", "10:00:01.000", { status: 200 }),
].join("");

const files = { "p.json": policyFile({ minDelay: "1s" }), "crawl.jsonl": crawl };

describe("politely audit", () => {
  it("shows each host, what was not kept, and the lines that prove it", async () => {
    const { code, stdout, stderr } = await runAudit(["-p", "p.json", "crawl.jsonl"], { files });
    expect(stdout).toBe(
      `c.example: minDelay 1 s (default)
  1 request in 1 ms, from 2026-01-31 10:00:01.000 to 2026-01-31 10:00:01.000
  at most 1 in 1 s (1 allowed)

a.example: minDelay 1 s (default)
  2 requests in 401 ms, from 2026-01-31 10:00:00.000 to 2026-01-31 10:00:00.400
  at most 2 in 1 s (1 allowed)
  NOT KEPT: two starts less than 401 ms apart, at least 1 s asked for
    crawl.jsonl:1  2026-01-31 10:00:00.000
    crawl.jsonl:3  2026-01-31 10:00:00.400

b.example: minDelay 1 s (default)
  2 requests in 9.9 s, from 2026-01-31 10:00:00.100 to 2026-01-31 10:00:10.000, 1 answered with 429
  at most 1 in 1 s (1 allowed), 1 in flight
  RETRY-AFTER IGNORED: 1 start
    crawl.jsonl:5  2026-01-31 10:00:10.000  started at least 20.099 s before a Retry-After of 30 s was over, asked for in crawl.jsonl:2

Not kept to p.json: 2 of 3 hosts; 5 requests; 1 line could not be read.
`,
    );
    expect(stderr).toBe("politely: crawl.jsonl: 1 of 6 lines could not be read (4); crawl.jsonl:4: is not JSON\n");
    expect(code).toBe(1);
  });

  it("says so when all was kept, and takes several logs as one", async () => {
    const logs = {
      "p.json": policyFile({ minDelay: "1s" }),
      "one.jsonl": at("a.example", "10:00:00.000"),
      "two.jsonl": at("a.example", "10:00:01.000"),
      "three.jsonl": at("a.example", "10:00:01.500"),
    };
    const two = await runAudit(["-p", "p.json", "one.jsonl", "two.jsonl"], { files: logs });
    expect([two.code, two.stdout.split("\n").at(-2), two.stderr]).toEqual([
      0,
      "Kept to p.json: 1 host, 2 requests.",
      "",
    ]);
    const three = await runAudit(["-p", "p.json", "one.jsonl", "two.jsonl", "three.jsonl"], { files: logs });
    expect(three.code).toBe(1);
    expect(three.stdout).toContain("two.jsonl:1  2026-01-31 10:00:01.000\n    three.jsonl:1  2026-01-31 10:00:01.500");
  });

  it("looks for politely.json, and goes by the presets without one", async () => {
    const own = { "politely.json": policyFile({ minDelay: "100ms" }), "crawl.jsonl": crawl };
    expect((await runAudit(["crawl.jsonl"], { files: own })).stdout).toContain(
      "Not kept to politely.json: 1 of 3 hosts",
    );
    const none = await runAudit(["crawl.jsonl"], { files: { "crawl.jsonl": crawl } });
    expect(none.stdout).toContain("a.example: rate 1/s (default)");
    expect(none.stdout).toContain("Not kept to the policy (presets, else 1/s): 2 of 3 hosts");
  });

  it("reads the index of a folder that politely get wrote", async () => {
    const cwd = await folderWith({ "p.json": policyFile({ minDelay: "1s" }) });
    await mkdir(join(cwd, "out"));
    expect(await runAudit(["-p", "p.json", "out"], { cwd })).toMatchObject({
      code: 2,
      stderr: "politely: out is a directory without an index.jsonl; name the log\n",
    });
    await writeFile(join(cwd, "out", "index.jsonl"), at("a.example", "10:00:00.000"));
    expect((await runAudit(["-p", "p.json", "out"], { cwd })).code).toBe(0);
  });

  it("judges keys over several hosts too", async () => {
    const policy = JSON.stringify({
      default: { minDelay: 0 },
      global: { window: "2/s" },
      scopes: { "key:*": { window: "1/s" } },
    });
    const log = ["10:00:00.000", "10:00:00.001", "10:00:00.002"].map((time, index) =>
      at(`h${index}.example`, time, { scopes: ["key:1"] }),
    );
    const { stdout } = await runAudit(["-p", "p.json", "-"], { files: { "p.json": policy }, stdin: log });
    expect(stdout).toContain("scope key:1: window 1/s (scopes)");
    expect(stdout).toContain("    stdin:3  2026-01-31 10:00:00.002");
    expect(stdout).toContain("Not kept to p.json: scope key:1, everything together; 3 requests.");
  });

  it("shows the first twenty hosts that kept to the policy, and counts the rest", async () => {
    const log = Array.from({ length: 25 }, (_, index) => at(`h${index}.example`, "10:00:00.000"));
    const { stdout } = await runAudit(["-p", "p.json", "-"], { files, stdin: log });
    expect(stdout).toContain("h19.example");
    expect(stdout).not.toContain("h20.example");
    expect(stdout).toContain("and 5 more that kept to the policy (--json lists all)");
  });

  it("lets stamps be off by the slack", async () => {
    expect(
      (await runAudit(["-p", "p.json", "--only", "a.example", "--slack", "300ms", "crawl.jsonl"], { files })).code,
    ).toBe(0);
    expect(
      (await runAudit(["-p", "p.json", "--only", "a.example", "--slack", "0.2s", "crawl.jsonl"], { files })).code,
    ).toBe(1);
  });

  it.each(["p.json", "crawl.jsonl", "./crawl.jsonl", "out/index.jsonl", "link.json"])(
    "writes no receipt over %s, which it reads",
    async (receipt) => {
      const cwd = await folderWith(files);
      await mkdir(join(cwd, "out"));
      await writeFile(join(cwd, "out/index.jsonl"), crawl);
      await symlink("crawl.jsonl", join(cwd, "link.json"));
      const { code, stderr } = await runAudit(["-p", "p.json", "crawl.jsonl", "out", "--receipt", receipt], { cwd });
      expect(code).toBe(2);
      expect(stderr).toContain("would replace a file");
      expect(await readFile(join(cwd, "crawl.jsonl"), "utf8")).toBe(crawl);
    },
  );

  it("writes a receipt without URLs, with the digest of the policy however it is written", async () => {
    const cwd = await folderWith({ ...files, "q.yaml": "default:\n  minDelay: 1s\n" });
    expect((await runAudit(["-p", "p.json", "crawl.jsonl", "--receipt", "r.json"], { cwd })).code).toBe(1);
    const text = await readFile(join(cwd, "r.json"), "utf8");
    const receipt = JSON.parse(text) as Receipt;
    expect(text).not.toContain("secret");
    expect(receipt).toMatchObject({ kind: "politely-receipt", version: 1, requests: 5, kept: false });
    expect(receipt.period).toEqual({ from: "2026-01-31T10:00:00.000Z", until: "2026-01-31T10:00:10.000Z" });
    expect(receipt.hosts[1]).toEqual({
      host: "b.example",
      requests: 2,
      throttled: 1,
      limits: ["minDelay 1 s"],
      peaks: [{ perMs: 1_000, starts: 1, allowed: 1 }],
      peakConcurrency: 1,
      violations: [],
      ignoredRetryAfters: 1,
      kept: false,
    });
    await runAudit(["-p", "q.yaml", "crawl.jsonl", "--receipt", "r2.json"], { cwd });
    expect((JSON.parse(await readFile(join(cwd, "r2.json"), "utf8")) as Receipt).policy).toBe(receipt.policy);
    expect(receipt.policy).toMatch(/^sha256:[0-9a-f]{64}$/);
  });

  it.each<[string, readonly string[], Readonly<Record<string, string | Uint8Array>>, number, RegExp]>([
    ["a missing file", ["none.log"], {}, 2, /^politely: none\.log cannot be read: there is no such file\n$/],
    ["no file", [], {}, 2, /missing required argument 'log'/],
    [
      "a policy with errors",
      ["-p", "bad.json", "x.jsonl"],
      { "bad.json": '{"defualt":{}}', "x.jsonl": crawl },
      2,
      /^politely: bad\.json:1:\d+: /,
    ],
    ["an unknown option", ["--nope", "x.jsonl"], {}, 2, /unknown option '--nope'/],
    ["an unknown format", ["--format", "csv", "x.jsonl"], {}, 2, /Allowed choices are index, jsonl, har, access/],
    [
      "a slack that is none",
      ["--slack", "soon", "x.jsonl"],
      {},
      2,
      /--slack takes a duration from 0 to 1h, such as 5ms, 1s or 2min; got "soon"/,
    ],
    ["stdin twice", ["-", "-"], {}, 2, /stdin \(-\) can be read once only/],
    [
      "a log that is named twice",
      ["x.jsonl", "./x.jsonl"],
      { "x.jsonl": crawl },
      2,
      /^politely: \.\/x\.jsonl is the same log as x\.jsonl; name it once\n$/,
    ],
    [
      "a log that is compressed",
      ["x.log.gz"],
      { "x.log.gz": gzipSync(crawl) },
      1,
      /^politely: x\.log\.gz is compressed; unpack it first: zcat x\.log\.gz \| politely audit -\n$/,
    ],
    [
      "an access log without a host",
      ["x.log"],
      { "x.log": '1.2.3.4 - - [31/Jan/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"\n' },
      2,
      /x\.log names no host; say which site's log it is with --host NAME/,
    ],
    ["an empty log", ["x.log"], { "x.log": "\n" }, 1, /^politely: x\.log: empty, there is nothing to audit\n$/],
    [
      "a text that is no log",
      ["x.log"],
      { "x.log": "Dear diary,\n" },
      1,
      /x\.log is neither an index, JSON Lines, HAR nor an access log.* line 1 begins "Dear diary,"/,
    ],
    [
      "JSON that is no log",
      ["x.json"],
      { "x.json": '{"a":1}\n{"b":2}\n' },
      1,
      /no request could be read; x\.json: 2 of 2 lines could not be read \(1, 2\); x\.json:1: has no url and no host/,
    ],
    ["JSON that is no HAR", ["x.har"], { "x.har": '{\n"a": 1\n}' }, 1, /x\.har is no HAR file: it has no log\.entries/],
    [
      "a text that no line has",
      ["--only", "zebra", "x.jsonl"],
      { "x.jsonl": crawl },
      1,
      /none of 6 lines contains "zebra"/,
    ],
    [
      "a receipt that cannot be written",
      ["x.jsonl", "--receipt", "no/r.json"],
      { "x.jsonl": crawl },
      1,
      /the receipt no\/r\.json cannot be written: there is no such file/,
    ],
  ])("answers %s with one clear line", async (_, args, given, code, message) => {
    const ended = await runAudit(args, { files: given });
    expect(ended.code).toBe(code);
    expect(ended.stderr).toMatch(message);
  });
});
