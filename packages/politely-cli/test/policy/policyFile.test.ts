import { mkdir, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { UsageError } from "../../src/errors.js";
import { findPolicy, PolicyFileError, readPolicyFile } from "../../src/policy/policyFile.js";
import { folderWith } from "./captured.js";

/** The message that reading a file of this content ends with. */
async function messageFor(name: string, content: string | Uint8Array): Promise<string> {
  const folder = await folderWith({ [name]: content });
  const error: unknown = await readPolicyFile(name, folder).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(UsageError);
  return (error as UsageError).message;
}

const fields = "$schema, default, hosts, global, scopes, groupBy, localhost, presets, http";

describe("a policy file with problems", () => {
  it("has all of them told in the order of the file, each with line, column and path", async () => {
    const content = `{
  "default": { "rate": "1/s", "burst": 0 },
  "hosts": {
    "*.x.org": { "window": ["1/s", "7/fortnight"] },
    "http://y.org/": {},
    "z.org": { "quota": { "count": 5 } }
  },
  "localhst": true
}`;
    const message = await messageFor("p.json", content);
    expect(message.split("\n").map((line) => line.slice(0, 60))).toEqual([
      "p.json has 5 problems:",
      "p.json:2:40: default.burst: must be a whole number from 1 to",
      'p.json:4:36: hosts["*.x.org"].window[1]: must have one of th',
      'p.json:5:5: hosts["http://y.org/"]: host must be a host name',
      'p.json:6:16: hosts["z.org"].quota.per: is missing; it must b',
      "p.json:8:3: localhst: is not a field of the policy; did you ",
    ]);
  });

  it("is told in one line when there is one problem", async () => {
    const message = await messageFor("p.yaml", "default:\n  rate: 0/s\n");
    expect(message).toBe('p.yaml:2:9: default.rate: must have a count above 0; got "0/s"');
  });

  it("cannot draw on the terminal with the names it has", async () => {
    const message = await messageFor("p.json", '{ "\\u001b[31mred\\n": 1 }');
    expect(message).toMatch(/^p\.json:1:3: \["\\u001b\[31mred\\n"\]: is not a field of the policy/);
  });

  it("keeps every problem in the error, and a thousand of them in its message", async () => {
    const hosts = Array.from({ length: 1_500 }, (_, index) => `  h${index}.org: { burst: 2 }`);
    const folder = await folderWith({ "p.yaml": ["hosts:", ...hosts].join("\n") });
    const error = await readPolicyFile("p.yaml", folder).catch((reason: unknown) => reason as PolicyFileError);
    expect(error).toBeInstanceOf(PolicyFileError);
    expect((error as PolicyFileError).problems).toHaveLength(1_500);
    expect((error as PolicyFileError).message.split("\n").at(-1)).toBe("and 500 more");
  });

  const cases: readonly (readonly [what: string, name: string, content: string, message: string])[] = [
    [
      "a comma too many",
      "p.json",
      '{\n  "default": {},\n}',
      "p.json:3:1: this is not JSON: the comma before } is one too many",
    ],
    [
      "single quotes",
      "p.json",
      "{\n  'default': {}}",
      'p.json:2:3: this is not JSON: text stands in double quotes "…"',
    ],
    [
      "a name without quotes",
      "p.json",
      "{ default: {} }",
      "p.json:1:3: this is not JSON: names and text stand in double quotes",
    ],
    [
      "a missing comma",
      "p.json",
      '{ "hosts": {} "default": {} }',
      "p.json:1:15: this is not JSON: a comma or a colon is missing before this",
    ],
    [
      "an open bracket",
      "p.json",
      '{ "hosts": {',
      "p.json:1:13: this is not JSON: the text ends before everything that was opened is closed",
    ],
    ["a misspelled word", "p.json", '{ "presets": tru }', 'p.json:1:14: this is not JSON: "tru" cannot stand here'],
    [
      "a line break in text",
      "p.json",
      '{ "hosts": "a\nb" }',
      "p.json:1:12: this is not JSON: this text is not closed, or has a line break, a tab or a \\ in it that JSON does not know",
    ],
    [
      "a comment in JSON",
      "p.json",
      "{\n  // mine\n}",
      "p.json:2:3: this is not JSON: it has no comments; leave them out, or name the file .yaml and write YAML",
    ],
    ["nothing in it", "p.json", " \n", "p.json:1:1: the file is empty; the smallest policy is {}"],
    ["nothing in it", "p.yaml", "", "p.yaml:1:1: the file is empty; the smallest policy is {}"],
    ["only comments", "p.yaml", "# later\n", `p.yaml:1:1: (policy): must be an object with ${fields}; got null`],
    ["a list", "p.json", "[1, 2]", `p.json:1:1: (policy): must be an object with ${fields}; got a list of 2`],
    ["a text", "p.json", '"1/s"', `p.json:1:1: (policy): must be an object with ${fields}; got "1/s"`],
    [
      "a name twice in JSON",
      "p.json",
      '{ "hosts": {},\n  "hosts": {} }',
      'p.json:2:3: "hosts" stands twice in one object, first in line 1; keep one of them',
    ],
    [
      "a name twice in YAML",
      "p.yaml",
      "default: {}\ndefault: {}\n",
      'p.yaml:2:1: "default" stands twice in one object, first in line 1; keep one of them',
    ],
    [
      "a tab in YAML",
      "p.yaml",
      "hosts:\n\tx.org: {}\n",
      "p.yaml:2:1: a tab stands where YAML wants blanks; indent with blanks",
    ],
    [
      "two documents",
      "p.yaml",
      "default: {}\n---\nhosts: {}\n",
      "p.yaml:2:1: a second document begins here; a policy file has one",
    ],
    [
      "a star without quotes",
      "p.yaml",
      "hosts:\n  *.x.org: { rate: 1/s }\n",
      'p.yaml:2:3: *.x.org must be in quotes, since * has a meaning of its own in YAML; write "*.x.org":',
    ],
    [
      "a number that should be text",
      "p.yaml",
      "version: 1.0\n",
      'p.yaml:1:10: version: must be "1.0"; got 1; put it in quotes',
    ],
    ["an alias to nothing", "p.yaml", "default: *mine\n", "p.yaml:1:10: *mine is used, but no &mine comes before it"],
    ["an alias inside itself", "p.yaml", "hosts: &h\n  x.org: *h\n", "p.yaml:2:10: *h stands inside itself"],
    [
      "a list as a name",
      "p.yaml",
      "? [a]\n: 1\n",
      "p.yaml:1:3: a list, an object or an alias stands here as a name; names are text",
    ],
    [
      "a merge of no object",
      "p.yaml",
      "default:\n  <<: 5\n",
      "p.yaml:2:7: << takes an object or a list of objects, and this is none",
    ],
    ["an unknown tag", "p.yaml", "default: !mine {}\n", "p.yaml:1:10: this is not YAML: Unresolved tag: !mine"],
    [
      "20,000 levels",
      "p.yaml",
      "[".repeat(20_000),
      "p.yaml:1:200: more than 100 levels are no policy; the form has about ten",
    ],
    [
      "200,000 levels",
      "p.json",
      "[".repeat(200_000) + "]".repeat(200_000),
      `p.json:1:1: (policy): must be an object with ${fields}; got a list of 1`,
    ],
    [
      "Windows line ends",
      "p.yaml",
      "default:\r\n  rate: 1/s\r\n  burst: 0\r\n",
      "p.yaml:3:10: default.burst: must be a whole number from 1 to 1e12; got 0",
    ],
    [
      "a byte order mark",
      "p.json",
      '\uFEFF{ "presets": 1 }',
      "p.json:1:14: presets: must be true, or a list, each entry the name of a preset; got 1",
    ],
    [
      "dots and brackets in an unknown name",
      "p.yaml",
      "default:\n  rate: 1/s\n  a.b[0]: 1\n",
      "p.yaml:3:3: default.a.b[0]: is not a field of the policy",
    ],
    [
      "a merged field",
      "p.yaml",
      "default: &d { brst: 2 }\nhosts: { x.org: { <<: *d } }\n",
      "p.yaml has 2 problems:\np.yaml:1:15: default.brst",
    ],
  ];
  it.each(cases)("says where it is: %s in %s", async (_, name, content, message) => {
    const got = await messageFor(name, content);
    expect(got.slice(0, message.length)).toBe(message);
  });

  it("cannot be expanded without end by aliases", async () => {
    const line = (name: string, of: string): string => `${name}: &${name} [${Array(20).fill(`*${of}`).join(", ")}]`;
    const content = ["a: &a [1]", line("b", "a"), line("c", "b"), line("d", "c"), line("e", "d"), line("f", "e")];
    expect(await messageFor("p.yaml", content.join("\n"))).toMatch(
      /^p\.yaml:\d:\d+: the file has more than 1000000 values once its aliases are resolved/,
    );
  });
});

describe("a policy file", () => {
  const policy = { default: { rate: "2/s" }, hosts: { "*.x.org": { window: ["1/s", "9/min"] } } };
  const yaml = 'default: &d { rate: 2/s }\nhosts:\n  "*.x.org": { window: [1/s, 9/min] }\n';

  it.each([
    ["p.json", JSON.stringify(policy)],
    ["p.json", `\uFEFF${JSON.stringify(policy, undefined, "\t")}`],
    ["p.yaml", yaml],
    ["p.YML", yaml],
    ["policy", JSON.stringify(policy)],
    ["policy", yaml],
  ])("named %s is read by its ending, else by what it holds", async (name, content) => {
    const folder = await folderWith({ [name]: content });
    expect(await readPolicyFile(name, folder)).toEqual({ path: name, policy });
  });

  it("may share limits by YAML's anchors and merge keys", async () => {
    const folder = await folderWith({
      "p.yaml": "default: &d { rate: 2/s }\nhosts: { x.org: { <<: *d, burst: 3 } }\n",
    });
    const { policy: read } = await readPolicyFile("p.yaml", folder);
    expect(read.hosts).toEqual({ "x.org": { rate: "2/s", burst: 3 } });
  });

  it("may use one alias for a thousand hosts", async () => {
    const hosts = Array.from({ length: 1_000 }, (_, index) => `  h${index}.org: *d`);
    const folder = await folderWith({ "p.yaml": ["default: &d { rate: 2/s }", "hosts:", ...hosts].join("\n") });
    expect(Object.keys((await readPolicyFile("p.yaml", folder)).policy.hosts ?? {})).toHaveLength(1_000);
  });

  it("may group by domain", async () => {
    const folder = await folderWith({ "p.yaml": "groupBy: domain\n" });
    expect((await readPolicyFile("p.yaml", folder)).policy).toEqual({ groupBy: "domain" });
  });
});

describe("a file that cannot be read", () => {
  it("is told by name and reason", async () => {
    const folder = await folderWith({ "a.json": "{}" });
    await mkdir(join(folder, "folder.json"));
    await expect(readPolicyFile("no.json", folder)).rejects.toThrow("no.json cannot be read: there is no such file");
    await expect(readPolicyFile("a.json/b", folder)).rejects.toThrow("a.json/b cannot be read: there is no such file");
    await expect(readPolicyFile("folder.json", folder)).rejects.toThrow(
      "folder.json cannot be read: it is a directory",
    );
    await expect(readPolicyFile("", folder)).rejects.toThrow("the name of the policy file is empty");
  });

  it("is told when it is not text", async () => {
    const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0]);
    expect(await messageFor("p.json", png)).toBe("p.json is not text in UTF-8; a policy file is JSON or YAML");
    expect(await messageFor("p.json", "{\0}")).toBe("p.json is not text in UTF-8; a policy file is JSON or YAML");
    expect(await messageFor("p.json", Buffer.from("\uFEFF{}", "utf16le"))).toBe(
      "p.json is UTF-16 text; save it as UTF-8",
    );
  });

  it("is refused above 10 MB", async () => {
    const folder = await folderWith({});
    const path = join(folder, "p.json");
    await writeFile(path, "{}");
    await truncate(path, 100_000_000);
    await expect(readPolicyFile("p.json", folder)).rejects.toThrow("p.json is larger than 10 MB");
  });
});

describe("looking for a policy", () => {
  it("takes the named file, then politely.json, politely.yaml, politely.yml, then the presets", async () => {
    const yaml = await folderWith({
      "politely.yml": "default: { rate: 3/s }",
      "politely.yaml": "default: { rate: 2/s }",
    });
    const json = await folderWith({
      "politely.json": '{ "default": { "rate": "1/s" } }',
      "politely.yaml": "x: 1",
      "mine.json": "{}",
    });
    const none = await folderWith({});
    expect(await findPolicy("mine.json", json)).toEqual({ path: "mine.json", policy: {} });
    expect((await findPolicy(undefined, json)).path).toBe("politely.json");
    expect((await findPolicy(undefined, yaml)).path).toBe("politely.yaml");
    expect(await findPolicy(undefined, none)).toEqual({ path: "", policy: { presets: true } });
  });

  it("does not pass over a file with problems, one that cannot be read, or a named one that is missing", async () => {
    const bad = await folderWith({ "politely.json": "{", "politely.yaml": "{}" });
    await expect(findPolicy(undefined, bad)).rejects.toThrow(PolicyFileError);
    const folder = await folderWith({ "politely.yml": "{}" });
    await mkdir(join(folder, "politely.json"));
    await expect(findPolicy(undefined, folder)).rejects.toThrow("politely.json cannot be read: it is a directory");
    await expect(findPolicy("none.json", folder)).rejects.toThrow("there is no such file");
  });
});
