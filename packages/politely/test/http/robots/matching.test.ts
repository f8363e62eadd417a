import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRobots } from "../../../src/http/robots/index.js";
import { pathOfUrl } from "../../../src/http/robots/parseRobots.js";
import {
  compilePattern,
  createNeedle,
  findNeedle,
  matchesPattern,
  normalisePath,
} from "../../../src/http/robots/rules.js";
import { seeded } from "../../laws/seeded.js";
import { fileOf, type Line, slowDecision, slowMatch } from "./slowRobots.js";

function matches(value: string, path: string): boolean {
  return matchesPattern(compilePattern(value), path);
}

describe("a pattern", () => {
  it.each<[string, readonly string[], readonly string[]]>([
    ["/", ["/", "/a", "/?q"], []],
    ["/fin", ["/fin", "/fin.html", "/fins/a", "/fin?x"], ["/Fin", "/fi", "/a/fin", "/?fin"]],
    ["/fin/", ["/fin/", "/fin/a", "/fin/?x"], ["/fin", "/fin.html"]],
    ["/fin*", ["/fin", "/final"], ["/fi"]],
    ["/*", ["/", "/a"], []],
    ["*", ["/", "/a"], []],
    ["*.pdf", ["/a.pdf", "/.pdf?x"], ["/pdf"]],
    ["/$", ["/"], ["/a", "/?x"]],
    ["/a$", ["/a"], ["/", "/ab", "/a?"]],
    ["/*$", ["/", "/abc"], []],
    ["/*.pdf$", ["/a/b.pdf", "/.pdf", "/a.pdf.pdf"], ["/a.pdf?x", "/a.pdf/"]],
    ["/a*a$", ["/aa", "/aba"], ["/a", "/ab"]],
    ["/a*b*c", ["/abc", "/a-b-c-d", "/aabbcc"], ["/acb", "/ab", "/cba"]],
    ["/**a***b**", ["/ab", "/xaxbx"], ["/ba"]],
    ["/ab*ab*ab$", ["/ababab", "/abxabxab"], ["/abab", "/abababx"]],
    ["/*/*/*", ["/a/b/c", "///"], ["/a/b"]],
    ["/a$b", ["/a%24b"], ["/a", "/ab"]],
    ["/a$$", ["/a%24"], ["/a", "/a%24%24"]],
    ["/a%24", ["/a%24", "/a%24b"], ["/a"]],
    ["/a%2Ab", ["/a%2Ab"], ["/axb", "/ab"]],
    ["fin/", ["/fin/"], ["/fin", "/a/fin/"]],
    ["?q=", ["/?q=1"], ["/a?q=1", "/"]],
    ["*?q=", ["/?q=1", "/a?q="], ["/q="]],
    ["$", [], ["/", "/$"]],
    ["//a", ["//a", "//ab"], ["/a"]],
  ])("%s matches what it says", (value, matched, others) => {
    for (const path of matched) expect([path, matches(value, path)]).toEqual([path, true]);
    for (const path of others) expect([path, matches(value, path)]).toEqual([path, false]);
  });

  it("of * and a letter in turn, a hundred thousand times, is compared with a long path at once", () => {
    const pattern = compilePattern(`/${"*a".repeat(100_000)}*b`);
    expect(matchesPattern(pattern, `/${"a".repeat(150_000)}`)).toBe(false);
    expect(matchesPattern(pattern, `/${"a".repeat(150_000)}b`)).toBe(true);
  });

  it("is counted with its * and $, and with what had to be encoded", () => {
    const lengths = ["/", "/ab*c$", "/**", "/%7E", "/é", "/日", "/a%2fb"].map(
      (value) => compilePattern(utf8(value)).length,
    );
    expect(lengths).toEqual([1, 6, 3, 2, 7, 10, 6]);
  });

  it("is counted as it is written where it is encoded only to be compared", () => {
    const lengths = ["/a'", "/a|", "/a$b", "/a b", "/a%", "/a%27", "/a%20b"].map(
      (value) => compilePattern(value).length,
    );
    expect(lengths).toEqual([3, 3, 4, 4, 3, 5, 6]);
  });
});

describe("the longest rule", () => {
  const site = "https://site.example";

  it.each<[readonly string[], string, boolean]>([
    [["Allow: /", "Disallow: /a", "Allow: /a/b", "Disallow: /a/b/c"], "/a/b/c/d", false],
    [["Allow: /", "Disallow: /a", "Allow: /a/b", "Disallow: /a/b/c"], "/a/b/d", true],
    [["Disallow: /a/b/c", "Allow: /a/b", "Disallow: /a", "Allow: /"], "/a/c", false],
    [["Disallow: /page", "Allow: /*.ht"], "/page.htm", true],
    [["Disallow: /page", "Allow: /*.h"], "/page.htm", false],
    [["Disallow: /page", "Allow: /*h"], "/page.htm", false],
    [["Allow: /page", "Disallow: /*.htm"], "/page.htm", false],
    [["Disallow: /*", "Allow: /"], "/a", false],
    [["Disallow: *", "Allow: /"], "/a", true],
    [["Disallow: /a$", "Allow: /a"], "/a", false],
    [["Disallow: /a$", "Allow: /a"], "/ab", true],
    [["Disallow: /a*", "Allow: /a$"], "/a", true],
    [["Disallow: /日", "Allow: /*$"], "/日本", false],
    [["Disallow: /%61%62", "Allow: /a*"], "/abc", true],
    [["Disallow: /same", "Disallow: /same", "Allow: /same"], "/same", true],
    [["Allow: /a'", "Disallow: /a*bc"], "/a'bc", false],
    [["Allow: /a|", "Disallow: /a*bc"], "/a|bc", false],
    [["Allow: /a$b", "Disallow: /*bcd"], "/a$bcd", false],
    [["Allow: /a%27", "Disallow: /a'b"], "/a'bc", true],
    [["Disallow: /a%27", "Allow: /a'$"], "/a'", false],
    [["Disallow: /*x", "Allow: /*y"], "/xy", true],
  ])("of %j decides about %s: allowed %s", (rules, path, isAllowed) => {
    for (const lines of [rules, [...rules].reverse()]) {
      expect(parseRobots(["User-agent: *", ...lines].join("\n")).isAllowed("a", site + path)).toBe(isAllowed);
    }
  });
});

describe("a path", () => {
  it.each([
    ["/a b", "/a%20b"],
    ["/%7Ejay/%2e%5F%2D%41%7a%30", "/~jay/._-Az0"],
    ["/a%2fb%3a%40", "/a%2Fb%3A%40"],
    ["/a*b$c'd", "/a%2Ab%24c%27d"],
    ['/<>"{}|\\^`', "/%3C%3E%22%7B%7D%7C%5C%5E%60"],
    ["/100%", "/100%25"],
    ["/%g1%1%", "/%25g1%251%25"],
    ["/%%41", "/%25A"],
    ["/\u0000\u007f", "/%00%7F"],
    ["/é/日/😀", "/%C3%A9/%E6%97%A5/%F0%9F%98%80"],
    ["/a/b?c=d&e=(f),!+;:@[]", "/a/b?c=d&e=(f),!+;:@[]"],
  ])("%j is compared as %s", (path, normal) => {
    expect(normalisePath(utf8(path))).toBe(normal);
    expect(normalisePath(normal)).toBe(normal);
  });

  it.each([
    ["https://site.example", "/"],
    ["https://site.example?q", "/?q"],
    ["https://site.example/?", "/?"],
    ["https://site.example#a/b", "/"],
    ["https://site.example/a?b#c?d", "/a?b"],
    ["https://user:pa%2Fss@site.example:8080/a", "/a"],
    ["HTTPS://SITE.EXAMPLE/A", "/A"],
    ["https://site.example//a//b", "//a//b"],
    ["https://site.example/a/../b/./c", "/b/c"],
    ["https://site.example/a/%2e%2E/b", "/b"],
    ["https://site.example/a\\b", "/a/b"],
    ["  https://site.example/a \n", "/a"],
    ["https://[::1]/a", "/a"],
    ["http:site.example/a", "/a"],
    ["http:/site.example/a", "/a"],
    ["foo://site.example/a?b", "/a?b"],
    ["file:///a", "/a"],
    ["site.example/a", "/a"],
    ["site.example", "/"],
    ["localhost:8080/a", "/a"],
    ["/a?b#c", "/a?b"],
    ["//a/b", "//a/b"],
    ["?q", "/?q"],
    ["", "/"],
    ["https://", "/"],
    ["https://a b/c d?é", "/c%20d?%C3%A9"],
    ["https://site.example/it's?it's", "/it%27s?it%27s"],
  ])("of the URL %j is %s", (url, path) => {
    expect(pathOfUrl(url)).toBe(path);
  });

  it("of a URL object is the same, also of one from another realm", () => {
    expect(pathOfUrl(new URL("https://site.example/a?b#c"))).toBe("/a?b");
    expect(pathOfUrl({ href: "https://site.example/a?b#c" } as URL)).toBe("/a?b");
  });
});

describe("matching, for any input", () => {
  const piece = fc.constantFrom("a", "b", "/", "*", "$", "aa", "ab");
  const value = fc.array(piece, { maxLength: 8 }).map((pieces) => `/${pieces.join("")}`);
  const path = fc.array(fc.constantFrom("a", "b", "/", "ab"), { maxLength: 10 }).map((pieces) => `/${pieces.join("")}`);

  it("agrees with a matcher that tries everything", () => {
    fc.assert(
      fc.property(value, path, (pattern, text) => {
        // A $ that is not at the end is a character that these paths do not have.
        expect(matches(pattern, text)).toBe(slowMatch(pattern, text));
      }),
      seeded(5_000),
    );
  });

  it("finds the rule that asking every rule finds", () => {
    const rule = fc.record({
      name: fc.constantFrom("Allow" as const, "Disallow" as const),
      value: fc.option(value, { nil: "" }),
    });
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 12 }), path, (rules, text) => {
        const file = fileOf([{ name: "User-agent", value: "*" } satisfies Line, ...rules]);
        expect(parseRobots(file).isAllowed("x", `https://site.example${text}`)).toBe(slowDecision(rules, text));
      }),
      seeded(5_000),
    );
  });

  it("does not depend on how a URL encodes what need not be encoded, nor on the case of hex digits", () => {
    const encode = (text: string, how: readonly boolean[]): string =>
      Array.from(text, (char, index) => (how[index] === true && /\w/.test(char) ? hex(char) : char)).join("");
    fc.assert(
      fc.property(value, path, fc.array(fc.boolean()), fc.array(fc.boolean()), (pattern, text, one, other) => {
        const plain = matches(pattern, text);
        expect(matches(encode(pattern, one), normalisePath(encode(text, other)))).toBe(plain);
      }),
      seeded(2_000),
    );
  });

  it("finds a needle of any length where the engine finds it", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 120 });
    const word = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 12 });
    const long = fc.tuple(text, word, fc.integer({ min: 6, max: 30 }), text);
    const needle = fc.oneof(
      text,
      long.map(([before, part, times, after]) => before + part.repeat(times) + after),
    );
    fc.assert(
      fc.property(needle, text, text, fc.nat(50), fc.nat(200), (wanted, before, after, from, cut) => {
        // With something cut off its beginning it is there nearly, and then, mostly, wholly.
        const hay = before + wanted.slice(cut) + wanted.slice(1) + before + (cut < 100 ? wanted : "") + after;
        expect(findNeedle(createNeedle(wanted), hay, from)).toBe(hay.indexOf(wanted, from));
      }),
      seeded(3_000),
    );
  });
});

describe("a file of very many rules with *", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "/", "*"), minLength: 1, maxLength: 6 });
  const rule = fc.record<Line>({
    name: fc.constantFrom("Allow", "Disallow"),
    value: fc.tuple(word, fc.boolean()).map(([text, isEnd]) => `/${text}*${isEnd ? "b$" : ""}`),
  });
  const path = fc.string({ unit: fc.constantFrom("a", "b", "/"), maxLength: 30 }).map((text) => `/${text}`);
  /** They match nothing, and are asked first since they are longer. */
  const others = Array.from(
    { length: 300 },
    (_, index): Line => ({ name: "Allow", value: `/*z${index}*zzzzzzzzzzzz` }),
  );

  it("decides as asking every rule does", () => {
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 12 }), path, (rules, asked) => {
        const lines = [...others, ...rules];
        const robots = parseRobots(fileOf([{ name: "User-agent", value: "*" }, ...lines]));
        expect(robots.isAllowed("x", `https://a.example${asked}`)).toBe(slowDecision(rules, asked));
      }),
      seeded(100),
    );
  });

  it("decides about a long path, too", () => {
    const letter = (index: number): string => "bcdefghijklmnopqrstuvwxyz012345678"[Math.trunc(index) % 34];
    const rules = Array.from(
      { length: 600 },
      (_, index): Line => ({
        name: "Disallow",
        value: `*a${letter(index)}*${letter(index / 34)}a${letter(index / 1_156)}`,
      }),
    );
    const robots = parseRobots(fileOf([{ name: "User-agent", value: "*" }, ...rules]));
    expect(robots.isAllowed("x", `/${"a".repeat(20_000)}`)).toBe(true);
    expect(robots.isAllowed("x", `/${"a".repeat(20_000)}b-bab`)).toBe(false);
    expect(robots.isAllowed("x", `/${"a".repeat(20_000)}bab`)).toBe(true);
    expect(robots.isAllowed("x", `/bab${"a".repeat(20_000)}`)).toBe(true);
  });

  it("is not compared for longer than a moment, and forbids what is left", () => {
    const rules = Array.from(
      { length: 26_000 },
      (_, index): Line => ({ name: "Disallow", value: `*a${index % 10}*q` }),
    );
    const robots = parseRobots(fileOf([{ name: "User-agent", value: "*" }, ...rules]));
    const startedMs = performance.now();
    expect(robots.isAllowed("x", `/${"a".repeat(500)}`)).toBe(true);
    expect(robots.isAllowed("x", `/${"a".repeat(1_000_000)}`)).toBe(false);
    // 26 billion characters would take minutes.
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  });
});

function utf8(text: string): string {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

function hex(char: string): string {
  return `%${char.charCodeAt(0).toString(16)}`;
}
