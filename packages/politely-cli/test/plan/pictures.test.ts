import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../../../politely/test/laws/seeded.js";
import type { Plan } from "../../src/plan/plan.js";
import { planHtml } from "../../src/plan/planHtml.js";
import { planRun } from "../../src/plan/planRun.js";
import { planSvg } from "../../src/plan/planSvg.js";
import { isUnicodeTerminal, planText } from "../../src/plan/planText.js";

const wallMs = Date.UTC(2026, 0, 15, 12);
const told = { wallMs, duplicates: 0, peakInFlight: 3 };
const policy = { hosts: { "window.org": { window: "10/min" } } } as const;
const plan = planRun(
  new Map([
    ["slow.org", 61],
    ["window.org", 25],
    ["quick.org", 2],
  ]),
  policy,
  { wallMs },
);

function hostile(key: string): Plan {
  return { ...plan, hosts: plan.hosts.map((host) => ({ ...host, key })) };
}

describe("a plan in the terminal", () => {
  it("shows the end, a row for each slow host, the long pole and what was assumed", () => {
    const text = planText(plan, { ...told, columns: 80, isUnicode: true, rows: 2 });
    expect(text.split("\n").slice(1)).toEqual([
      "",
      "                                     done in  requests  waits for",
      "window.org  █░░░░░░░░░░█░░░░░░░░░░▓    2 min        25  window 10/min (hosts.wi…",
      "slow.org    ███████████▓               1 min        61  rate 1/s (default)",
      "… and 1 more, done by 1.2 s",
      "",
      "Long pole: window.org. What it waits for: window 10/min (hosts.window.org).",
      "One more request a second at window.org would save 1 min: done in 1 min, and",
      "slow.org would be the last.",
      "",
      "Assumed: every answer is good and takes 200 ms (--latency). What robots.txt asks",
      "for, 429s and retries come on top.",
      "",
    ]);
  });

  it("is plain ASCII where the terminal has no more", () => {
    const text = planText(plan, { ...told, columns: 80, isUnicode: false, rows: 1 });
    expect(text).toMatch(/^[\n -~]*$/);
    expect(text).toMatch(/slow\.org|window\.org/);
  });

  it("never writes a line wider than the terminal", () => {
    const names = fc.array(fc.stringMatching(/^[a-z]{1,60}$/), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(names, fc.integer({ min: 40, max: 160 }), (hosts, columns) => {
        const wide = planRun(new Map(hosts.map((name, index) => [`${name}.org`, 7 ** (index % 5)])), {}, { wallMs });
        const longest = Math.max(...hosts.map(({ length }) => length)) + 20;
        const text = planText(wide, { ...told, columns, isUnicode: true, rows: 5 });
        // A name that is longer than a line cannot be broken in a sentence.
        for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(Math.max(columns, longest));
        for (const line of text.split("\n").slice(2, 8)) expect(line.length).toBeLessThanOrEqual(columns);
      }),
      seeded(60),
    );
  });

  it("tells a date within two years, and years beyond", () => {
    const slow = planRun(new Map([["a.org", 12_000]]), { default: { quota: { count: 1, per: "month" } } }, { wallMs });
    expect(planText(slow, { ...told, columns: 80, isUnicode: true, rows: 1 })).toMatch(
      /done in about (999|1,000) years\.\n/,
    );
    const days = planRun(new Map([["a.org", 4]]), { default: { rate: "1/d" } }, { wallMs });
    expect(planText(days, { ...told, columns: 80, isUnicode: true, rows: 1 })).toMatch(
      /done in 3 d, on 2026-01-18 at \d\d:\d\d\./,
    );
  });

  it("knows a terminal with UTF-8 by its locale", () => {
    expect(isUnicodeTerminal({ LANG: "de_DE.UTF-8" }, "linux")).toBe(true);
    expect(isUnicodeTerminal({ LANG: "en_US.UTF-8", LC_ALL: "C" }, "linux")).toBe(false);
    expect(isUnicodeTerminal({}, "linux")).toBe(false);
    expect(isUnicodeTerminal({}, "win32")).toBe(true);
  });
});

describe("a plan as a file", () => {
  it.each([
    ["SVG", (from: Plan) => planSvg(from, wallMs)],
    ["HTML", (from: Plan) => planHtml(from, told)],
  ])("escapes every name in %s", (_, write) => {
    const text = write(hostile(`<script>alert("x")</script>&'\u0000`));
    expect(text).not.toContain("<script");
    expect(text).not.toContain('alert("');
    expect(text).not.toContain("\u0000");
    expect(text).toContain("&lt;script&gt;");
  });

  it.each([
    ["SVG", planSvg(plan, wallMs)],
    ["HTML", planHtml(plan, told)],
  ])("asks for nothing from anywhere in %s", (_, text) => {
    expect(text.replaceAll('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(
      /https?:|\bsrc=|\bhref=|url\(|@import|<script/i,
    );
  });

  it("closes every element it opens", () => {
    for (const text of [planSvg(plan, wallMs), planHtml(plan, told)]) {
      const open: string[] = [];
      for (const [, slash, name, rest] of text.matchAll(/<(\/?)([a-z][a-z0-9]*)([^>]*)>/g)) {
        if (slash === "/" && open.at(-1) === name) open.pop();
        else if (slash === "/") open.push(`/${name}`);
        else if (!rest.endsWith("/") && name !== "meta") open.push(name);
      }
      expect(open).toEqual([]);
    }
  });

  it("has colours for light and dark, and a description for those who do not see it", () => {
    const svg = planSvg(plan, wallMs);
    expect(svg).toContain("prefers-color-scheme:dark");
    expect(svg).toContain("slow.org: 61 requests, done in 1 min");
  });
});
