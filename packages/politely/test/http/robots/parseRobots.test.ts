import { describe, expect, it } from "vitest";
import { parseRobots } from "../../../src/http/robots/index.js";
import cases from "../../fixtures/robots.json" with { type: "json" };

const site = "https://site.example";

/** Whether JayBot may fetch a path under the rules given, one a line. */
function allows(rules: readonly string[], path: string): boolean {
  return parseRobots(["User-agent: JayBot", ...rules].join("\n")).isAllowed("JayBot", site + path);
}

describe("parseRobots", () => {
  it.each(cases)("says allowed $allowed for $userAgent at $url: $why ($tier)", (one) => {
    for (const text of [one.robotsTxt, new TextEncoder().encode(one.robotsTxt)]) {
      const robots = parseRobots(text);
      expect(robots.isAllowed(one.userAgent, one.url)).toBe(one.allowed);
      expect(robots.isAllowed(one.userAgent, new URL(one.url))).toBe(one.allowed);
      expect(robots.crawlDelaySec(one.userAgent)).toBe(one.crawlDelaySec);
      if (one.requestRate !== undefined) expect(robots.requestRate(one.userAgent)).toStrictEqual(one.requestRate);
      if (one.visitTime !== undefined) expect(robots.visitTime(one.userAgent)).toStrictEqual(one.visitTime);
    }
  });

  it("allows everything when there is nothing in the file", () => {
    for (const text of ["", "\n\n", "\uFEFF", "# nothing here", new Uint8Array()]) {
      const robots = parseRobots(text);
      expect(robots.isAllowed("JayBot", `${site}/a`)).toBe(true);
      expect(robots.crawlDelaySec("JayBot")).toBeNull();
      expect(robots.requestRate("JayBot")).toBeNull();
      expect(robots.visitTime("JayBot")).toBeNull();
      expect(robots.matchedRule("JayBot", `${site}/a`)).toBeNull();
      expect(robots.pacingRule("JayBot", "crawlDelaySec")).toBeNull();
    }
  });

  it.each([[null], [undefined], [5], [{}], [["User-agent: *"]], [new ArrayBuffer(2)]])(
    "refuses %j, which is neither text nor bytes",
    (text) => {
      expect(() => parseRobots(text as string)).toThrow("robots.txt must be a text or a Uint8Array; got");
    },
  );

  it("refuses an agent that is no text and a URL that is none", () => {
    const robots = parseRobots("");
    expect(() => robots.isAllowed(undefined as unknown as string, site)).toThrow("userAgent must be a text");
    expect(() => robots.crawlDelaySec(null as unknown as string)).toThrow("userAgent must be a text; got null");
    for (const url of [undefined, null, 5, {}]) {
      expect(() => robots.isAllowed("JayBot", url as string)).toThrow("url must be a text or a URL; got");
    }
  });
});

describe("agents", () => {
  const named = "User-agent: *\nDisallow: /all\n\nUser-agent: JayBot/2.0 (like OwlBot)\nDisallow: /jay\n";

  it.each([
    ["JayBot", "/jay"],
    ["jaybot", "/jay"],
    ["JAYBOT/9.9", "/jay"],
    ["  JayBot", "/jay"],
    ["JayBot (+https://jay.example)", "/jay"],
    ["JayBot;q=1", "/jay"],
    ["JayBot, OwlBot", "/jay"],
    ["JayBot[2]", "/jay"],
    ["JayBot\t2", "/jay"],
    ["Jay", "/all"],
    ["JayBot2", "/all"],
    ["MyJayBot", "/all"],
    ["OwlBot", "/all"],
    ["Mozilla/5.0 (compatible; JayBot/1.0)", "/all"],
    ["", "/all"],
    ["*", "/all"],
    ["__proto__", "/all"],
  ])("takes %j for whom %s is closed", (userAgent, closed) => {
    const robots = parseRobots(named);
    for (const path of ["/jay", "/all"]) expect(robots.isAllowed(userAgent, site + path)).toBe(path !== closed);
  });

  it("cuts the name of a user-agent line where a version, a comment or a second name begins", () => {
    for (const value of [
      "JayBot/1.0",
      "JayBot 1.0",
      "JayBot,OwlBot",
      "JayBot;x",
      "JayBot(x)",
      "JayBot{x}",
      "JayBot<BR>",
    ]) {
      const robots = parseRobots(`User-agent: ${value}\nDisallow: /`);
      expect(robots.isAllowed("JayBot", site)).toBe(false);
      expect(robots.isAllowed("OwlBot", site)).toBe(true);
    }
  });

  it("takes a star with something after it for everybody, and one with something before it for a name", () => {
    expect(parseRobots("User-agent: * # all\nDisallow: /").isAllowed("JayBot", site)).toBe(false);
    expect(parseRobots("User-agent: * OwlBot\nDisallow: /").isAllowed("JayBot", site)).toBe(false);
    expect(parseRobots("User-agent: Jay*\nDisallow: /").isAllowed("JayBot", site)).toBe(true);
  });

  it("compares names outside ASCII without regard to case, in text and in bytes", () => {
    const file = "User-agent: ÄrzteBot\nDisallow: /";
    expect(parseRobots(file).isAllowed("ärztebot/2", site)).toBe(false);
    expect(parseRobots(new TextEncoder().encode(file)).isAllowed("ÄRZTEBOT", site)).toBe(false);
  });

  it("gives the rules under an empty user-agent line to nobody", () => {
    const robots = parseRobots(
      "User-agent: OwlBot\nDisallow: /a\nUser-agent:\nDisallow: /b\nUser-agent: / \nDisallow: /c",
    );
    expect(["/a", "/b", "/c"].map((path) => robots.isAllowed("OwlBot", site + path))).toEqual([false, true, true]);
    expect(robots.isAllowed("", `${site}/b`)).toBe(true);
  });

  it("keeps its answers right for more agents than it keeps ready", () => {
    const names = Array.from({ length: 100 }, (_, index) => `bot${index}`);
    const robots = parseRobots(names.map((name) => `User-agent: ${name}\nDisallow: /${name}$\n`).join(""));
    for (const name of [...names, ...names]) {
      expect(robots.isAllowed(name, `${site}/${name}`)).toBe(false);
      expect(robots.isAllowed(name, `${site}/bot`)).toBe(true);
    }
  });
});

describe("lines", () => {
  it.each([
    "disallow:/x",
    "DISALLOW: /x",
    "\t Disallow \t:\t /x \t",
    "Disallow: /x#y",
    "Disallow: /x # why: because",
    "Disallow /x",
    "disallow\t/x",
    "Dis-allow: /x",
    "Dissallow: /x",
    "dissalow: /x",
    "Disalow: /x",
    "Diasllow: /x",
    "Disallaw: /x",
    "Disallow: x",
    "Disallow: /x\u000b",
  ])("reads %j", (line) => {
    expect(allows([line], "/x")).toBe(false);
    expect(allows([line], "/y")).toBe(true);
  });

  it.each([
    "# Disallow: /x",
    "Disallow:",
    "Disallow: # /x",
    "Disallow",
    ": /x",
    "NoDisallow: /x",
    "Disallowed: /x",
    "Disallow-all: /x",
    "Noindex: /x",
    "Sitemap: https://site.example/x",
    "/x",
    "<b>Disallow: /x</b>",
    "Disallow everything, please",
    `${"x".repeat(70)} Disallow: /x`,
    `Disallow${" ".repeat(60)}${"x".repeat(10)}: /x`,
  ])("finds no rule about /x in %j", (line) => {
    expect(allows([line], "/x")).toBe(true);
  });

  it.each([
    "User-agent: OwlBot",
    "Useragent: OwlBot",
    "user agent: OwlBot",
    "user_agent: OwlBot",
    "user agent OwlBot 2",
  ])("reads %j as the line of an agent", (line) => {
    expect(parseRobots(`${line}\nDisallow: /`).isAllowed("OwlBot", site)).toBe(false);
  });

  it("keeps a colon that belongs to the value when the one in front was forgotten", () => {
    expect(allows(["Disallow /wiki/Talk:"], "/wiki/Talk:Jay")).toBe(false);
    expect(allows(["Disallow: /wiki/Talk:"], "/wiki/Talk:Jay")).toBe(false);
  });

  it("goes on after lines that mean nothing", () => {
    const robots = parseRobots("nonsense\n::::\nUser-agent: *\n=====\n\u0000\u0001\nDisallow: /x\n%%%\n\nDisallow: /y");
    expect(["/x", "/y", "/z"].map((path) => robots.isAllowed("JayBot", site + path))).toEqual([false, false, true]);
  });
});

describe("groups", () => {
  it("is begun by a user-agent line after a rule, even an empty one, and by nothing else", () => {
    const robots = parseRobots(
      "User-agent: a\n\nHost: x\nUser-agent: b\nDisallow:\nUser-agent: c\nUnknown: 1\nUser-agent: d\nDisallow: /cd\n",
    );
    const closed = ["a", "b", "c", "d"].filter((agent) => !robots.isAllowed(agent, `${site}/cd`));
    expect(closed).toEqual(["c", "d"]);
  });

  it("gives rules in many groups to the agent that is in all of them", () => {
    const robots = parseRobots(
      "User-agent: a\nDisallow: /1\nUser-agent: b\nDisallow: /2\nUser-agent: A\nDisallow: /3\n",
    );
    expect(["/1", "/2", "/3"].map((path) => robots.isAllowed("a", site + path))).toEqual([false, true, false]);
  });

  it("does not add the rules for everybody to an agent that has its own, or none", () => {
    const robots = parseRobots("User-agent: a\nDisallow: /own\nUser-agent: *\nDisallow: /all\nUser-agent: b\n");
    expect(robots.isAllowed("a", `${site}/all`)).toBe(true);
    expect(robots.isAllowed("b", `${site}/all`)).toBe(true);
    expect(robots.isAllowed("c", `${site}/all`)).toBe(false);
  });

  it("keeps an agent out of rules that were written before its own line", () => {
    expect(parseRobots("Disallow: /\nCrawl-delay: 5\nUser-agent: *\nAllow: /a").isAllowed("x", site)).toBe(true);
    expect(parseRobots("Disallow: /\nCrawl-delay: 5\nUser-agent: *\nAllow: /a").crawlDelaySec("x")).toBeNull();
  });
});

describe("the line behind an answer", () => {
  const file =
    "# a comment\r\nUser-agent: *\r\rDisallow:  /a/* # secret\nAllow: /a/b\nCrawl-delay: 5 # s\nRequest-rate: 1/9";

  it("is the one that decides, with its number and as it is written", () => {
    const robots = parseRobots(file);
    expect(robots.matchedRule("x", `${site}/a/c`)).toEqual({ line: 4, text: "Disallow:  /a/*" });
    expect(robots.matchedRule("x", `${site}/a/b`)).toEqual({ line: 5, text: "Allow: /a/b" });
    expect(robots.matchedRule("x", `${site}/b`)).toBeNull();
    expect(robots.pacingRule("x", "crawlDelaySec")).toEqual({ line: 6, text: "Crawl-delay: 5" });
    expect(robots.pacingRule("x", "requestRate")).toEqual({ line: 7, text: "Request-rate: 1/9" });
    expect(robots.pacingRule("x", "visitTime")).toBeNull();
  });

  it("is shown as text, 200 characters of it", () => {
    const robots = parseRobots(`User-agent: *\nDisallow: /${"日".repeat(300)}`);
    const shown = robots.matchedRule("x", `${site}/${"日".repeat(300)}`);
    expect(shown).toEqual({ line: 2, text: `Disallow: /${"日".repeat(189)}` });
  });

  it("is none for robots.txt itself, which no rule closes", () => {
    const robots = parseRobots("User-agent: *\nDisallow: /");
    expect(robots.isAllowed("x", `${site}/robots.txt#top`)).toBe(true);
    expect(robots.matchedRule("x", `${site}/robots.txt`)).toBeNull();
    expect(robots.isAllowed("x", `${site}/robots.txt?a`)).toBe(false);
    expect(robots.isAllowed("x", `${site}/robots.txt.bak`)).toBe(false);
    expect(robots.isAllowed("x", `${site}/a/robots.txt`)).toBe(false);
  });
});
