import { describe, expect, it } from "vitest";
import { addCheck } from "../../src/commands/check.js";
import { folderWith, run } from "../policy/captured.js";

const fine = `default: { rate: 2/s }
hosts:
  "*.x.org": { window: 5/min, intents: { search: { concurrency: 1 } } }
  api.crossref.org: { concurrency: 3 }
  off.org: { enabled: false }
global: { concurrency: 100 }
scopes: { "proxy:*": { minDelay: 100 } }
presets: true
`;

describe("checking a policy file", () => {
  it("ends with 0 and says in a line what the policy is", async () => {
    const folder = await folderWith({
      "p.json": '{ "hosts": { "x.org": { "rate": "1/s" } } }',
      "q.yaml": "default: { rate: 2/s }",
    });
    expect(await run(addCheck, ["check", "p.json"], folder)).toEqual({
      code: 0,
      stdout: "p.json is fine: 1 host; default (none given) on average 1 start per second, at most 1 at once\n",
      stderr: "",
    });
    expect((await run(addCheck, ["check", "q.yaml"], folder)).stdout).toBe(
      "q.yaml is fine: no hosts; default on average 2 starts per second, at most 1 at once\n",
    );
  });

  it("ends with 1 and tells every problem on stdout", async () => {
    const folder = await folderWith({ "p.json": '{ "defalt": {},\n  "hosts": { "x.org": { "rate": 5 } } }' });
    const { code, stdout, stderr } = await run(addCheck, ["check", "p.json", "--explain", "x.org"], folder);
    expect({ code, stderr }).toEqual({ code: 1, stderr: "politely: p.json has 2 problems\n" });
    expect(stdout.split("\n").map((line) => line.slice(0, 50))).toEqual([
      "p.json:1:3: defalt: is not a field of the policy; ",
      'p.json:2:33: hosts["x.org"].rate: must be a count ',
      "",
    ]);
  });

  it("warns of what is allowed and still worth a look, and ends with 0", async () => {
    const folder = await folderWith({ "p.yaml": fine });
    const { code, stdout } = await run(addCheck, ["check", "p.yaml"], folder);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^p\.yaml:4:3: hosts\["api\.crossref\.org"\]: warning: replaces presets\.crossref-polite whole /,
    );
  });

  it.each([
    [["check", "no.json"], "no.json cannot be read: there is no such file"],
    [["check", "."], ". cannot be read: it is a directory"],
    [["check"], "missing required argument"],
    [["check", "p.json", "--bogus"], "unknown option '--bogus'"],
    [["check", "p.json", "--explain"], "argument missing"],
    [["check", "p.json", "--explain", "a b"], '--explain takes a host or a URL, and "a b" is none'],
  ])("ends with 2 for %j", async (args, message) => {
    const folder = await folderWith({ "p.json": "{}" });
    const { code, stdout, stderr } = await run(addCheck, args, folder);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  it("has examples in its help", async () => {
    const { code, stdout } = await run(addCheck, ["check", "--help"], ".");
    expect(code).toBe(0);
    expect(stdout).toContain("politely check politely.yaml --explain api.x.org");
  });
});

describe("explaining a host", () => {
  it("says which rule it has, what that limits, and what comes on top", async () => {
    const folder = await folderWith({ "p.yaml": fine });
    const { stdout } = await run(addCheck, ["check", "p.yaml", "--explain", "https://A.x.org/1"], folder);
    expect(stdout.slice(stdout.indexOf("\n\n") + 2)).toBe(`https://A.x.org/1
  counted as       a.x.org
  rule             the entry hosts["*.x.org"], for each subdomain on its own (p.yaml:3:3)
  limits           at most 5 starts in any minute
                   stays away 5 s, 10 s … 30 s after server errors (linear), by default
                   stays away 1 min after a 429 without Retry-After, by default
                   at most 100,000 requests wait, by default
                   a place not given back is free again after 10 min, by default
  + intent search  at most 1 in flight at once
  + global         at most 100 in flight at once
  + scope proxy:*  at least 100 ms between two starts
  instead of       default, since no entry fits
`);
  });

  it("names a preset with its source and date, as text and as data", async () => {
    const folder = await folderWith({ "p.yaml": fine });
    const args = ["check", "p.yaml", "--explain", "en.wikipedia.org"];
    const { stdout } = await run(addCheck, args, folder);
    expect(stdout).toContain(
      "the preset wikimedia-action-api, its entry *.wikipedia.org (of 2026-11-19, confidence high)",
    );
    expect(stdout).toContain("https://www.mediawiki.org/wiki/API:Etiquette");
    expect(stdout).toContain("+ scope preset:wikimedia-action-api  at most 200 starts in any minute");
    const json = JSON.parse((await run(addCheck, [...args, "--json"], folder)).stdout) as Record<string, unknown>;
    expect(json).toMatchObject({
      file: "p.yaml",
      isFine: true,
      problems: [],
      hostCount: 3,
      explained: [
        {
          host: "en.wikipedia.org",
          key: "en.wikipedia.org",
          rule: {
            kind: "preset",
            presetHost: "*.wikipedia.org",
            preset: { id: "wikimedia-action-api", date: "2026-11-19" },
          },
          limits: { window: "200/min", concurrency: 1, backoff: "linear", cooldown: "60s" },
          global: { limits: { concurrency: 100 } },
          notes: [
            expect.stringContaining("together they keep to the scope preset:wikimedia-action-api") as string,
            "the site wants to know how to reach you; set http.contact",
          ],
        },
      ],
    });
  });

  it.each([
    ["api.crossref.org", "instead of       the preset crossref-polite, its entry api.crossref.org"],
    ["off.org", "limits           no limit: the entry is turned off (enabled: false)"],
    ["localhost:3000", "rule        this machine, which nothing limits unless hosts names it"],
    ["z.org", "rule             default, since no entry fits (p.yaml:1:1)"],
    ["www.reuters.com", '"presets": true leaves those of low confidence out'],
  ])("of %s says so", async (host, line) => {
    const folder = await folderWith({ "p.yaml": fine });
    expect((await run(addCheck, ["check", "p.yaml", "--explain", host], folder)).stdout).toContain(line);
  });

  it("tells the budget that a host has together with others of its site, and who they are", async () => {
    const folder = await folderWith({
      "p.yaml": "presets: [arxiv]",
      "q.yaml": 'presets: [arxiv]\nscopes: { "preset:arxiv": { minDelay: 10s } }',
    });
    const { stdout } = await run(addCheck, ["check", "p.yaml", "--explain", "arxiv.org"], folder);
    expect(stdout).toContain("p.yaml is fine: no hosts, 1 preset; ");
    expect(stdout).toContain("  + scope preset:arxiv  at most 1 start in any 3 s\n");
    const note = "the site counts export.arxiv.org and arxiv.org as one: together they keep to the scope preset:arxiv";
    expect(stdout).toContain(`  note                  ${note}\n`);
    const replaced = await run(addCheck, ["check", "q.yaml", "--explain", "arxiv.org"], folder);
    expect(replaced.stdout).toContain("  + scope preset:arxiv  at least 10 s between two starts\n");
    expect(replaced.stdout).toContain(note);
    const other = await run(addCheck, ["check", "p.yaml", "--explain", "x.org", "--json"], folder);
    expect(JSON.parse(other.stdout)).toMatchObject({ explained: [{ scopes: {}, notes: [] }] });
  });

  it("explains several hosts in the order they are asked for", async () => {
    const folder = await folderWith({ "p.json": "{}" });
    const args = ["check", "p.json", "--explain", "b.org", "--explain", "arxiv.org", "--json"];
    const { explained } = JSON.parse((await run(addCheck, args, folder)).stdout) as {
      explained: readonly {
        readonly key: string;
        readonly rule: { readonly kind: string };
        readonly notes: readonly string[];
      }[];
    };
    expect(explained.map(({ key, rule }) => [key, rule.kind])).toEqual([
      ["b.org", "built-in"],
      ["arxiv.org", "built-in"],
    ]);
    expect(explained[1]?.notes).toEqual([
      'the preset arxiv is for this host, with confidence high; "presets": ["arxiv"] applies it',
    ]);
  });

  it("points into a file of per-domain limits by its own names", async () => {
    const content =
      '{ "version": "1.0",\n  "domains": { "x.org": { "requests_per_second": 1, "burst_capacity": 99 } } }';
    const folder = await folderWith({ "old.json": content });
    const { stdout } = await run(addCheck, ["check", "old.json", "--explain", "x.org"], folder);
    expect(stdout).toContain('old.json:2:71: domains["x.org"].burst_capacity: warning: should be at most');
    expect(stdout).toContain('the entry domains["x.org"] (old.json:2:16)');
    expect(stdout).toContain("--migrate writes it in the form of a policy");
  });

  it("keeps a bound that is infinite in the data", async () => {
    const folder = await folderWith({ "p.yaml": "default: { rate: 1/s, maxWait: .inf }" });
    const { stdout } = await run(addCheck, ["check", "p.yaml", "--explain", "x.org", "--json"], folder);
    expect(JSON.parse(stdout)).toMatchObject({ explained: [{ limits: { maxWait: "Infinity" } }] });
  });

  it("writes the problems of a broken file as data too", async () => {
    const folder = await folderWith({ "p.json": '{ "hosts": 5 }' });
    const { code, stdout, stderr } = await run(addCheck, ["check", "p.json", "--json"], folder);
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(JSON.parse(stdout)).toEqual({
      file: "p.json",
      isFine: false,
      problems: [
        { line: 1, column: 12, path: "hosts", message: "must be an object with one field for each host; got 5" },
      ],
    });
  });
});
