import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { commands } from "../../src/commands/index.js";
import { WorkError } from "../../src/errors.js";
import type { AddCommand } from "../../src/main.js";
import { folderWith, run } from "../policy/captured.js";

const all: AddCommand = (program, io, done) => {
  for (const add of commands) add(program, io, done);
};

describe("the command line", () => {
  it("says its version", async () => {
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
      version: string;
    };
    for (const option of ["--version", "-V"]) {
      expect(await run(all, [option], "/")).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
    }
  });

  it.each([
    [["plan", "a.org", "--speed"], "politely: unknown option '--speed'\n"],
    [["plan", "a.org", "--jsn"], "politely: unknown option '--jsn' (Did you mean --json?)\n"],
    [["pln"], "politely: unknown command 'pln' (Did you mean plan?)\n"],
    [["get", "a.org", "-o", ""], 'politely: --out takes the name of a folder; got "". This one is a dot: --out .\n'],
    // A shell makes this of a variable that is not set.
    [["get", ""], "politely: an argument is empty. Give a URL, a file with one URL a line, or - for stdin.\n"],
    [
      ["plan", "a.org", ""],
      "politely: an argument is empty. Give a URL, a file with one URL a line, or - for stdin.\n",
    ],
    [["plan", "a.org", "--svg", ""], 'politely: --svg takes the name of a file; got ""\n'],
    [["audit", ""], "politely: the name of a log is empty. Give a file, the folder of politely get, or - for stdin.\n"],
    [["audit", "x", "--receipt", ""], 'politely: --receipt takes the name of a file; got ""\n'],
    [["audit"], "politely: missing required argument 'log'\n"],
    [["plan", "a.org", "-p"], "politely: option '-p, --policy <FILE>' argument missing\n"],
    [["check", "x", "--migrate", "--json"], "politely: option '--migrate' cannot be used with option '--json'\n"],
    [["plan", "--\u001b[31mred"], "politely: unknown option '-- [31mred'\n"],
    [
      ["plan", "a.org", "--latency", "200"],
      'politely: --latency takes a duration from 0 to 10min, such as 200ms, 1.5s or 1min; got "200". Add the unit: 200ms or 200s.\n',
    ],
    [
      ["plan", "a.org", "--latency", "11min"],
      'politely: --latency takes a duration from 0 to 10min, such as 200ms, 1.5s or 1min; got "11min"\n',
    ],
    [
      ["plan", "a.org", "--rows", "2000000"],
      'politely: --rows takes a whole number from 1 to 1,000,000; got "2000000"\n',
    ],
  ])("answers wrong usage with one line and exit code 2: %j", async (args, line) => {
    expect(await run(all, args, "/")).toEqual({ code: 2, stdout: "", stderr: line });
  });

  it("shows what somebody else wrote without its codes, and keeps the lines of a policy's problems", async () => {
    const failing =
      (error: Error): AddCommand =>
      (program) => {
        program.command("fail").action(() => {
          throw error;
        });
      };
    expect((await run(failing(new WorkError("a\u001b[31mb\u0007")), ["fail"], "/")).stderr).toBe(
      "politely: a [31mb \n",
    );
    expect((await run(failing(new RangeError("one\ntwo")), ["fail"], "/")).stderr).toBe(
      "politely: RangeError: one two\n",
    );
    const cwd = await folderWith({ "bad.json": '{ "defualt": {}, "hots": {} }' });
    const { stderr } = await run(all, ["plan", "a.org", "-p", "bad.json"], cwd);
    expect(stderr.split("\n")).toHaveLength(4);
  });
});
