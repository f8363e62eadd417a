import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRobots } from "../../../src/http/robots/index.js";
import { maxRobotsBytes } from "../../../src/http/robots/octets.js";
import { createNeedle, findNeedle } from "../../../src/http/robots/rules.js";
import { seeded } from "../../laws/seeded.js";
import { fileOf, type Line, slowDecision, slowRules } from "./slowRobots.js";

const site = "https://site.example";
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("a file in bytes", () => {
  it("is UTF-8, with or without a byte order mark, whole or cut short", () => {
    const rest = bytesOf("User-agent: *\nDisallow: /日");
    for (const mark of [[], [0xef, 0xbb, 0xbf], [0xef, 0xbb], [0xef]]) {
      const robots = parseRobots(Uint8Array.from([...mark, ...rest]));
      expect(robots.isAllowed("x", `${site}/日`)).toBe(false);
      expect(robots.isAllowed("x", `${site}/月`)).toBe(true);
    }
  });

  it("is UTF-16 when it begins with the mark of that", () => {
    const text = "\uFEFFUser-agent: *\nDisallow: /日\n";
    const units = Array.from(text, (char) => char.charCodeAt(0));
    const little = Uint8Array.from(units.flatMap((unit) => [unit & 255, unit >> 8]));
    const big = Uint8Array.from(units.flatMap((unit) => [unit >> 8, unit & 255]));
    for (const bytes of [little, big, Uint8Array.from([...little, 0x61])]) {
      const robots = parseRobots(bytes);
      expect(robots.isAllowed("x", `${site}/日`)).toBe(false);
      expect(robots.isAllowed("x", `${site}/月`)).toBe(true);
    }
    expect(parseRobots(Uint8Array.of(0xff, 0xfe)).isAllowed("x", site)).toBe(true);
  });

  it("keeps octets that are no UTF-8 as they are", () => {
    const robots = parseRobots(Uint8Array.from([...bytesOf("User-agent: *\nDisallow: /caf"), 0xe9, 0xff]));
    expect(robots.isAllowed("x", `${site}/caf%E9%FFx`)).toBe(false);
    expect(robots.isAllowed("x", `${site}/caf%C3%A9`)).toBe(true);
  });

  it("may be a part of a larger buffer, and may change afterwards", () => {
    const whole = bytesOf("xxUser-agent: *\nDisallow: /axx");
    const part = whole.subarray(2, -2);
    const robots = parseRobots(part);
    whole.fill(0);
    expect(robots.isAllowed("x", `${site}/a`)).toBe(false);
    expect(robots.isAllowed("x", `${site}/b`)).toBe(true);
  });
});

describe("a file above 500 KiB", () => {
  const head = "User-agent: *\n";
  const rule = "Disallow: /last";

  /** A file whose last line begins so that it ends `past` octets after the limit. */
  function fileEnding(past: number, lineEnd: string, tail: string): string {
    const fill = maxRobotsBytes + past - head.length - rule.length - 2;
    return `${head}#${"x".repeat(fill)}\n${rule}${lineEnd}${tail}`;
  }

  it.each<[number, string, string, boolean]>([
    [0, "\n", "Disallow: /more\n", false],
    [0, "\r", "\n\n", false],
    [-1, "\n", "more\n", false],
    [0, "", "", false],
    [0, "", "-and-more\n", true],
    [1, "\n", "", true],
    [1, "", "", true],
    [100, "\n", "Disallow: /more\n", true],
  ])("has a line that ends %d octets past the limit with %j, then %j: open %s", (past, lineEnd, tail, isOpen) => {
    const text = fileEnding(past, lineEnd, tail);
    for (const file of [text, bytesOf(text)]) {
      const robots = parseRobots(file);
      expect(robots.isAllowed("x", `${site}/last`)).toBe(isOpen);
      expect(robots.isAllowed("x", `${site}/more`)).toBe(true);
    }
  });

  it("counts octets and not characters, and is never cut inside of one", () => {
    const long = "日".repeat(200_000);
    for (const shift of ["", "x", "xx"]) {
      const text = `${head}${rule}\nDisallow: /${shift}${long}\nDisallow: /more\n`;
      expect(text.length).toBeLessThan(maxRobotsBytes);
      for (const file of [text, bytesOf(text)]) {
        const robots = parseRobots(file);
        expect(robots.isAllowed("x", `${site}/last`)).toBe(false);
        expect(robots.isAllowed("x", `${site}/${shift}${long}`)).toBe(true);
        expect(robots.isAllowed("x", `${site}/more`)).toBe(true);
      }
    }
  });

  it("has no rules when it is a single line", () => {
    const text = `User-agent: *${" ".repeat(10_000_000)}`;
    expect(parseRobots(text).isAllowed("x", site)).toBe(true);
    expect(parseRobots(bytesOf(text)).isAllowed("x", site)).toBe(true);
  });

  it("is read up to the limit when it has ten million octets", () => {
    const text = `${head}${"Disallow: /a\n".repeat(770_000)}Disallow: /more\n`;
    const robots = parseRobots(text);
    expect(robots.isAllowed("x", `${site}/a`)).toBe(false);
    expect(robots.isAllowed("x", `${site}/more`)).toBe(true);
  });

  it("may be one rule of nearly that length", () => {
    const path = `/${"a".repeat(500_000)}`;
    const robots = parseRobots(`${head}Disallow: ${path}b\n`);
    expect(robots.isAllowed("x", `${site}${path}bc`)).toBe(false);
    expect(robots.isAllowed("x", `${site}${path}`)).toBe(true);
  });
});

describe("the work a file makes", () => {
  it("grows with its length and no faster, whatever is in it", () => {
    const files = [
      "User-agent: a\n",
      "User-agent: a\nDisallow: /\n",
      "Disallow: /*a*b\n",
      "\r\n",
      " ",
      "#",
      "a ",
      "disallow ",
      "User-agent: * ",
      "Disallow\t ",
    ];
    const startedMs = performance.now();
    for (const part of files) {
      for (const end of ["", ":", "x", "\n"]) {
        const text = part.repeat(Math.floor(500_000 / part.length)) + end;
        expect(parseRobots(text).isAllowed("x", site)).toBe(true);
      }
    }
    // 40 files of 500 kB; quadratic work on any of them would take far longer than this generous bound allows.
    expect(performance.now() - startedMs).toBeLessThan(8_000);
  });

  it("of looking for a long piece grows with the path and no faster", () => {
    const search = (length: number): number => {
      const needle = createNeedle(`${"a".repeat(length)}b${"a".repeat(length)}`);
      return countSteps(() => findNeedle(needle, `${"a".repeat(length)}b`.repeat(2) + "a".repeat(length * 6), 0));
    };
    const past = (length: number): number => {
      const needle = createNeedle(`b${"a".repeat(length)}`);
      return countSteps(() => findNeedle(needle, "a".repeat(length * 8), 0));
    };
    for (const steps of [search, past]) {
      expect(steps(400)).toBeGreaterThan(800);
      expect(steps(800)).toBeLessThanOrEqual(steps(400) * 2 + 10);
    }
  });

  it("does not multiply agents by the rules they share", () => {
    const agents = Array.from({ length: 20_000 }, (_, index) => `User-agent: b${index}\n`).join("");
    const robots = parseRobots(agents + "Disallow: /a\n".repeat(10_000));
    expect(robots.isAllowed("b0", `${site}/a`)).toBe(false);
    expect(robots.isAllowed("b19999", `${site}/a`)).toBe(false);
    expect(robots.isAllowed("b20000", `${site}/a`)).toBe(true);
  });
});

describe("any file", () => {
  const word = fc.constantFrom(
    "User-agent",
    "Disallow",
    "Allow",
    "Crawl-delay",
    "Request-rate",
    "Visit-time",
    ":",
    "*",
    "/",
    "$",
  );
  const odd = fc.constantFrom(
    "%",
    "%2",
    "%41",
    "#",
    " ",
    "\t",
    "\r",
    "\n",
    "\u0000",
    "\uFEFF",
    "\uD800",
    "日",
    "1/5",
    "0100-0200",
  );
  const scrap = fc.array(fc.oneof(word, odd, fc.string()), { maxLength: 40 }).map((parts) => parts.join(""));

  function askAll(text: string | Uint8Array, agent: string, url: string): unknown[] {
    const robots = parseRobots(text);
    return [
      robots.isAllowed(agent, url),
      robots.matchedRule(agent, url),
      robots.crawlDelaySec(agent),
      robots.requestRate(agent),
      robots.visitTime(agent),
      robots.pacingRule(agent, "visitTime"),
    ];
  }

  it("of random bytes is read without an error, for any agent and any text as URL", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.string(), fc.string(), (bytes, agent, url) => {
        expect(typeof askAll(bytes, agent, url)[0]).toBe("boolean");
      }),
      seeded(2_000),
    );
  });

  it("of scraps of rules says the same as text and as bytes", () => {
    fc.assert(
      fc.property(scrap, scrap, scrap, (text, agent, url) => {
        // UTF-8 has no half of a surrogate pair.
        const whole = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytesOf(text));
        expect(askAll(whole, agent, url)).toEqual(askAll(bytesOf(whole), agent, url));
      }),
      seeded(2_000),
    );
  });

  const agent = fc.constantFrom("a", "b", "c", "*");
  const line: fc.Arbitrary<Line> = fc.oneof(
    fc.record({ name: fc.constant("User-agent" as const), value: agent }),
    fc.record({
      name: fc.constantFrom("Allow" as const, "Disallow" as const),
      value: fc.constantFrom("", "/", "/a", "/*b"),
    }),
    fc.record({ name: fc.constant("Crawl-delay" as const), value: fc.constantFrom("1", "2.5", "30") }),
    fc.record({ name: fc.constant("Sitemap" as const), value: fc.constant("https://site.example/s.xml") }),
  );

  it("gives each agent the lines that reading it anew for that agent gives, whichever line ends it has", () => {
    const lineEnd = fc.constantFrom("\n", "\r", "\r\n", "\n\n", " # x\r\n\t");
    const path = fc.constantFrom("/", "/a", "/b", "/ab");
    fc.assert(
      fc.property(fc.array(line, { maxLength: 16 }), lineEnd, agent, path, (lines, end, asked, at) => {
        const robots = parseRobots(fileOf(lines, end));
        const { rules, crawlDelaySec } = slowRules(lines, asked);
        expect(robots.isAllowed(asked, site + at)).toBe(slowDecision(rules, at));
        expect(robots.crawlDelaySec(asked)).toBe(crawlDelaySec);
      }),
      seeded(5_000),
    );
  });
});

/** How many characters are looked at one by one while `work` runs. */
function countSteps(work: () => unknown): number {
  const original = String.prototype.charCodeAt;
  let steps = 0;
  String.prototype.charCodeAt = function (this: string, index: number): number {
    steps++;
    return original.call(this, index);
  };
  try {
    work();
  } finally {
    String.prototype.charCodeAt = original;
  }
  return steps;
}
