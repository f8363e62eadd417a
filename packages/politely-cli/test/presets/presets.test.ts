import { collector, presets } from "politely/presets";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { addPresets } from "../../src/commands/presets.js";
import { searchPresets } from "../../src/presets/presetCatalogue.js";
import { presetPage } from "../../src/presets/presetText.js";
import { run } from "../policy/captured.js";

const ask = (...args: readonly string[]) => run(addPresets, ["presets", ...args], ".");

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2026-12-01") });
});

afterEach(() => {
  vi.useRealTimers();
});

describe("the list of presets", () => {
  it("marks what was written down over a year ago, as the page of one does", async () => {
    expect((await ask()).stdout).not.toContain("over a year ago");
    vi.setSystemTime(Date.parse("2027-11-17"));
    const { stdout } = await ask();
    expect(stdout).toContain("arxiv  export.arxiv.org, arxiv.org  (2026-11-15, over a year ago, confidence high)");
    expect(stdout).toContain("(2026-11-19, a whole policy)");
    expect((await ask("arxiv")).stdout).toContain("date        2026-11-15, over a year ago");
  });

  it("has every preset with hosts, limits in words, date and confidence", async () => {
    const { code, stdout } = await ask();
    expect(code).toBe(0);
    for (const { id, date, confidence } of presets) {
      const [head, limits] = stdout.slice(`\n${stdout}`.indexOf(`\n${id}  `)).split("\n");
      expect(head).toContain(`(${date}, confidence ${confidence})`);
      expect(limits).toMatch(/^ {4}(at |on |no )/);
    }
    expect(stdout).toContain(collector.id);
    expect(stdout).not.toMatch(/undefined|NaN|\[object/);
  });

  it("is the data itself with --json", async () => {
    const { stdout } = await ask("--json");
    expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify([...presets, collector])));
  });
});

describe("one preset", () => {
  it("is shown with all that is known, source and date included", async () => {
    expect(await ask("github-rest")).toEqual({
      code: 0,
      stderr: "",
      stdout: `github-rest
  hosts       api.github.com
  limits      at most 60 starts in any hour
              at most 100 in flight at once
              stays away 5 s, 10 s … 1 min after server errors (exponential)
              intent search: at most 10 starts in any minute
  with a key  at most 5,000 starts in any hour
              at most 100 in flight at once
              stays away 5 s, 10 s … 1 min after server errors (exponential)
              intent search: at most 30 starts in any minute
  User-Agent  required, descriptive
  contact     not required
  notes       Also 900 points and 80 creations a minute. Too fast: 403 or 429 with x-ratelimit-remaining 0 or retry-after, else wait a minute and double it. Going on may ban the integration.
  sources     https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
  date        2026-11-15
  confidence  high
`,
    });
  });

  it("leaves out nothing, whichever it is", () => {
    for (const preset of presets) {
      const page = presetPage(preset);
      for (const part of [preset.id, ...preset.hosts, preset.notes, ...preset.sources, preset.date, preset.userAgent]) {
        expect(page).toContain(part);
      }
      expect(page).not.toMatch(/undefined|NaN|\[object/);
    }
    for (const host of Object.keys(collector.policy.hosts ?? {})) expect(presetPage(collector)).toContain(host);
  });

  it("is found whatever the case, and is data with --json", async () => {
    const { code, stdout } = await ask("ArXiv", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual(presets.find(({ id }) => id === "arxiv"));
  });

  it.each([
    ["githb", "did you mean github-rest?"],
    ["arxive", "did you mean arxiv?"],
    ["arxvi", "did you mean arxiv?"],
    ["en.wikipedia.org", "did you mean wikimedia-action-api?"],
    ["https://api.github.com/users", "did you mean github-rest?"],
    ["qqqqqqqq", "politely presets lists them all"],
    ["x".repeat(1_000), "politely presets lists them all"],
    ["", "politely presets lists them all"],
  ])("that is not there, %j, ends with 2 and the closest names", async (name, hint) => {
    const { code, stdout, stderr } = await ask(name);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(hint);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});

describe("a search", () => {
  it("finds by name, host, notes and source, with every word, whatever the case", () => {
    const found = (text: string): readonly string[] => searchPresets(text).map(({ id }) => id);
    expect(found("ARXIV")).toContain("arxiv");
    expect(found("api.stlouisfed.org")).toEqual(["fred"]);
    expect(found("de.wikipedia.org")).toContain("wikimedia-action-api");
    expect(found("wikipedia.org")).toEqual(["wikimedia-action-api"]);
    expect(found("binance weight")).toEqual(["binance"]);
    expect(found("binance arxiv")).toEqual([]);
  });

  it("writes what it finds, and ends with 1 when that is nothing", async () => {
    const { code, stdout } = await ask("--search", "stlouisfed");
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: "fred  api.stlouisfed.org  (2026-11-15, confidence high)\n    at most 120 starts in any minute\n",
    });
    expect(await ask("--search", "qqqq")).toEqual({
      code: 1,
      stdout: "",
      stderr: 'politely: no preset has "qqqq" in it\n',
    });
    expect((await ask("--search", "qqqq", "--json")).stdout).toBe("[]\n");
  });

  it.each([[["fred", "--search", "x"]], [["--search", " "]], [["--serch", "x"]], [["a", "b"]]])(
    "asked for as %j ends with 2",
    async (args) => {
      const { code, stdout, stderr } = await ask(...args);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).not.toBe("");
    },
  );
});
