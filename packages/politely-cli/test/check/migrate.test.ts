import { readFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { loadPolicy } from "politely";
import { describe, expect, it } from "vitest";
import { seeded } from "../../../politely/test/laws/seeded.js";
import { migrate } from "../../src/check/migrate.js";
import { addCheck } from "../../src/commands/check.js";
import { parseFile } from "../../src/policy/inspectPolicy.js";
import { folderWith, run } from "../policy/captured.js";
import { treatmentOf } from "./engine.js";

const older = {
  version: "1.0",
  default_config: { requests_per_second: 1.0, burst_capacity: 1 },
  domains: {
    "javdb.com": { requests_per_second: 1.0, burst_capacity: 1 },
    "av-wiki.net": { requests_per_second: 2.5, burst_capacity: 3 },
  },
};

const newer = {
  default: { rate: "1/s", burst: 1 },
  hosts: { "javdb.com": { rate: "1/s", burst: 1 }, "av-wiki.net": { rate: "2.5/s", burst: 3 } },
};

const localNote = 'old.json: requests to this machine are not limited; add "localhost": "limited" if they should be\n';

describe("migrating a file of per-domain limits", () => {
  it("writes a policy to stdout", async () => {
    const folder = await folderWith({ "old.json": JSON.stringify(older, undefined, 2) });
    const { code, stdout, stderr } = await run(addCheck, ["check", "old.json", "--migrate"], folder);
    expect({ code, stderr }).toEqual({ code: 0, stderr: localNote });
    expect(JSON.parse(stdout)).toEqual(newer);
  });

  it.each(["new.json", "new.yaml"])("writes %s, which is a policy and is never overwritten", async (out) => {
    const folder = await folderWith({ "old.json": JSON.stringify(older) });
    const args = ["check", "old.json", "--migrate", "--out", out];
    expect(await run(addCheck, args, folder)).toEqual({ code: 0, stdout: "", stderr: localNote });
    const text = await readFile(join(folder, out), "utf8");
    expect(parseFile(text, out).value).toEqual(newer);
    expect(await run(addCheck, args, folder)).toEqual({
      code: 2,
      stdout: "",
      stderr: `politely: ${out} is there already; remove it, or give --out another name\n`,
    });
    expect((await run(addCheck, ["check", out], folder)).code).toBe(0);
  });

  it("leaves out what a policy has no place for, and says so", async () => {
    const content = JSON.stringify(
      { ...older, owner: "me", domains: { "x.org": { requests_per_second: 1, burst_capacity: 1, notes: "slow" } } },
      undefined,
      2,
    );
    const folder = await folderWith({ "old.json": content });
    const { code, stderr } = await run(addCheck, ["check", "old.json", "--migrate"], folder);
    expect(code).toBe(0);
    expect(stderr.split("\n").slice(0, 2)).toEqual([
      'old.json:11:7: domains["x.org"].notes: has no counterpart in a policy and is left out',
      "old.json:14:3: owner: has no counterpart in a policy and is left out",
    ]);
  });

  it("says that comments are left out, and that a missing default_config means 1 start per second", async () => {
    const folder = await folderWith({ "old.yaml": 'version: "1.0" # old\n' });
    const { code, stderr } = await run(addCheck, ["check", "old.yaml", "--migrate"], folder);
    expect(code).toBe(0);
    expect(stderr).toContain("comments are not carried over");
    expect(stderr).toContain("hosts not named get 1 start per second");
  });

  it("takes a misspelled field for a problem, tells all problems, and writes nothing", async () => {
    const content = `{
  "version": "2.0",
  "domain": {},
  "domains": { "x.org": { "request_per_second": 1, "burst_capacity": 0 } }
}`;
    const folder = await folderWith({ "old.json": content });
    const { code, stdout, stderr } = await run(addCheck, ["check", "old.json", "--migrate"], folder);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr.split("\n").map((line) => line.slice(0, 70))).toEqual([
      'old.json:2:14: version: must be "1.0"; got "2.0"; did you mean "1.0"?',
      'old.json:3:3: domain: is not a field of this format; did you mean "dom',
      'old.json:4:16: domains["x.org"].requests_per_second: is missing; it mu',
      'old.json:4:27: domains["x.org"].request_per_second: is not a field of ',
      'old.json:4:70: domains["x.org"].burst_capacity: must be a whole number',
      "politely: old.json has 5 problems; nothing was written",
      "",
    ]);
  });

  it.each([
    ["a policy", '{ "hosts": {} }', ["--migrate"], 2, "nothing to migrate"],
    ["what is no JSON", "{", ["--migrate"], 1, "old.json:1:2: this is not JSON"],
    ["what is no object", "[1]", ["--migrate"], 1, "(policy): must be an object"],
    ["a name twice", '{ "version": "1.0",\n"version": "1.0" }', ["--migrate"], 1, "old.json:2:1"],
    [
      "a folder that is not there",
      JSON.stringify(older),
      ["--migrate", "--out", "no/new.json"],
      2,
      "folder does not exist",
    ],
    ["--out alone", JSON.stringify(older), ["--out", "new.json"], 2, "only with --migrate"],
    ["--explain too", JSON.stringify(older), ["--migrate", "--explain", "x.org"], 2, "cannot be used with"],
  ] as const)("refuses %s", async (_, content, args, exitCode, message) => {
    const folder = await folderWith({ "old.json": content });
    const { code, stdout, stderr } = await run(addCheck, ["check", "old.json", ...args], folder);
    expect({ code, stdout }).toEqual({ code: exitCode, stdout: "" });
    expect(stderr).toContain(message);
  });

  it("changes nothing about when requests start", async () => {
    const entry = fc.record({
      requests_per_second: fc.oneof(
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: 1, max: 5_000 }).map((thousandths) => thousandths / 1_000),
        fc.constantFrom(1e-7, 1e-5, 2.000001),
      ),
      burst_capacity: fc.integer({ min: 1, max: 12 }),
    });
    const file = fc.record(
      { version: fc.constant("1.0"), default_config: entry, domains: fc.record({ "x.org": entry, "y.org": entry }) },
      { requiredKeys: ["version"] },
    );
    await fc.assert(
      fc.asyncProperty(file, fc.constantFrom("x.org", "y.org", "z.org"), async (given, host) => {
        const text = JSON.stringify(given);
        const { policy, problems } = migrate(parseFile(text, "old.json"), "old.json");
        expect(problems).toEqual([]);
        const written = loadPolicy(JSON.stringify(policy));
        expect(await treatmentOf(written, host)).toEqual(await treatmentOf(loadPolicy(text), host));
      }),
      seeded(100),
    );
  });
});
