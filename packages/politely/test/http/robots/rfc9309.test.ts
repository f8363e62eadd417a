import { describe, expect, it } from "vitest";
import { parseRobots, robotsAction } from "../../../src/http/robots/index.js";

const SITE = "https://example.com";

/** A file, then what a crawler named Scout may ask for and what not. */
type Case = readonly [why: string, file: string | readonly string[], may: readonly string[], mayNot: readonly string[]];

const all = (...rules: string[]): string => ["User-agent: *", ...rules].join("\n");

describe("robots.txt, by RFC 9309", () => {
  it.each<Case>([
    ["an empty file allows all", "", ["/", "/a"], []],
    ["an empty Disallow allows all", all("Disallow:"), ["/", "/a"], []],
    ["an empty Allow changes nothing", all("Disallow: /", "Allow:"), [], ["/", "/a"]],
    ["a slash forbids all but the file itself", all("Disallow: /"), ["/robots.txt"], ["/", "/a?b", "/robots.txt.bak"]],
    ["paths are compared with case", all("Disallow: /A"), ["/a"], ["/A", "/Ab"]],
    ["field names are not", "uSeR-aGeNt: *\nDISALLOW: /a", ["/b"], ["/a"]],
    [
      "a rule is a prefix",
      all("Disallow: /fish"),
      ["/Fish", "/a/fish", "/fis"],
      ["/fish", "/fish.html", "/fish/s", "/fishheads"],
    ],
    ["a slash at the end counts", all("Disallow: /fish/"), ["/fish", "/fish.html"], ["/fish/", "/fish/a"]],
    ["a star at the end changes nothing", all("Disallow: /fish*"), ["/a"], ["/fish", "/fish.html"]],
    ["a star in the middle", all("Disallow: /a*c"), ["/ab", "/ba/c"], ["/ac", "/abc", "/a/b/cd"]],
    ["stars in a row are one", all("Disallow: /a***c"), ["/ab"], ["/ac", "/abxc"]],
    ["an anchor", all("Disallow: /*.php$"), ["/a.php?x", "/a.php5", "/a.php/"], ["/a.php", "/b/a.php"]],
    ["a dollar elsewhere is itself", all("Disallow: /a$b"), ["/a"], ["/a$b", "/a$bc"]],
    ["an anchor after a slash", all("Allow: /$", "Disallow: /"), ["/"], ["/a", "/?"]],
    ["a star before the anchor", all("Disallow: /a*$"), ["/b"], ["/a", "/abc?d"]],
    [
      "the longest rule wins, in any order",
      all("Disallow: /a", "Allow: /a/b", "Disallow: /a/b/c"),
      ["/a/b", "/a/b/d"],
      ["/a", "/a/c", "/a/b/c"],
    ],
    ["of two alike Allow wins", all("Disallow: /a", "Allow: /a"), ["/a"], []],
    ["alike in octets, not in what they match", all("Allow: /a*", "Disallow: /ab"), ["/ab"], []],
    ["a longer one with a star wins over a prefix", all("Allow: /p", "Disallow: /*.html"), ["/p"], ["/p.html"]],
    ["a star counts as an octet", all("Disallow: /page", "Allow: /*.htm"), ["/page.htm"], ["/page"]],
    ["the query is part of it", all("Disallow: /a?b=c"), ["/a", "/a?b=d"], ["/a?b=c", "/a?b=cd"]],
    ["the fragment is not", all("Disallow: /a$"), ["/ab#x"], ["/a#x", "/a"]],
    ["a comment ends a rule", all("Disallow: /a # not /b"), ["/b"], ["/a", "/ab"]],
    ["a comment of its own", "# hello\nUser-agent: * # all\n# x\nDisallow: /a", [], ["/a"]],
    ["blanks around", "  User-agent :  *  \n\tDisallow\t:\t/a\t", ["/b"], ["/a"]],
    ["no blank at all", "User-agent:*\nDisallow:/a", [], ["/a"]],
    ["CR alone ends a line", "User-agent: *\rDisallow: /a\rDisallow: /b", ["/c"], ["/a", "/b"]],
    ["CRLF", "User-agent: *\r\nDisallow: /a\r\n", ["/b"], ["/a"]],
    ["a BOM", "\uFEFFUser-agent: *\nDisallow: /a", [], ["/a"]],
    ["no line end at the end", "User-agent: *\nDisallow: /a", [], ["/a"]],
    ["blank lines do not end a group", "User-agent: *\n\n\nDisallow: /a\n\nDisallow: /b", [], ["/a", "/b"]],
    ["rules before any agent are nobody's", "Disallow: /a\nUser-agent: *\nDisallow: /b", ["/a"], ["/b"]],
    ["a line of one word is nothing", "User-agent: *\nnonsense\nDisallow: /b", ["/a"], ["/b"]],
    ["a blank does for a forgotten colon", "User-agent *\nDisallow /a", ["/b"], ["/a"]],
    ["unknown records are nothing", "User-agent: *\nNoindex: /a\nDisallow: /b", ["/a"], ["/b"]],
    // Agents.
    [
      "one's own group and not that of all",
      "User-agent: *\nDisallow: /a\nUser-agent: scout\nDisallow: /b",
      ["/a"],
      ["/b"],
    ],
    [
      "the order of groups does not matter",
      "User-agent: scout\nDisallow: /b\n\nUser-agent: *\nDisallow: /a",
      ["/a"],
      ["/b"],
    ],
    ["names without case", "User-agent: SCOUT\nDisallow: /a", ["/b"], ["/a"]],
    ["several agents of one group", "User-agent: other\nUser-agent: Scout\nUser-agent: more\nDisallow: /a", [], ["/a"]],
    [
      "an agent after a rule begins a group",
      "User-agent: Scout\nDisallow: /a\nUser-agent: other\nDisallow: /b",
      ["/b"],
      ["/a"],
    ],
    [
      "groups of one agent are one",
      "User-agent: Scout\nDisallow: /a\nUser-agent: x\nDisallow: /c\nUser-agent: Scout\nDisallow: /b",
      ["/c"],
      ["/a", "/b"],
    ],
    [
      "groups of all are one, too",
      all("Disallow: /a", "User-agent: x", "Disallow: /c", "User-agent: *", "Disallow: /b"),
      ["/c"],
      ["/a", "/b"],
    ],
    ["a group without rules allows all", "User-agent: *\nDisallow: /\nUser-agent: Scout", ["/a"], []],
    [
      "a Sitemap does not end the agents",
      "User-agent: Scout\nSitemap: https://example.com/s.xml\nUser-agent: other\nDisallow: /a",
      [],
      ["/a"],
    ],
    ["a Crawl-delay does not either", "User-agent: Scout\nCrawl-delay: 5\nUser-agent: other\nDisallow: /a", [], ["/a"]],
    ["the version of a line is cut off", "User-agent: Scout/2.1\nDisallow: /a", [], ["/a"]],
    ["what is behind a blank, too", "User-agent: Scout the crawler\nDisallow: /a", [], ["/a"]],
    ["a prefix is another", "User-agent: Sco\nDisallow: /a", ["/a"], []],
    ["a longer name is another", "User-agent: Scouts\nDisallow: /a", ["/a"], []],
    ["a part is another", "User-agent: my-scout\nDisallow: /a", ["/a"], []],
    ["an empty name is nobody", "User-agent:\nDisallow: /a", ["/a"], []],
    ["nobody is named and there is no star", "User-agent: other\nDisallow: /", ["/a"], []],
    // Octets.
    ["non-ASCII in the file", all("Disallow: /ä"), ["/a"], ["/ä", "/%C3%A4", "/%c3%a4"]],
    ["non-ASCII in the URL", all("Disallow: /%C3%A4"), ["/%C3%A5"], ["/ä"]],
    ["lower hex is upper hex", all("Disallow: /a%3cd"), [], ["/a%3Cd", "/a%3cd"]],
    ["unreserved ones are decoded", all("Disallow: /%61%7e"), [], ["/a~", "/%61~"]],
    ["a slash in hex is no slash", all("Disallow: /a%2Fb"), ["/a/b"], ["/a%2fb"]],
    ["nor the other way", all("Disallow: /a/b"), ["/a%2Fb"], ["/a/b"]],
    ["a star in hex is itself", all("Disallow: /a%2Ab"), ["/axb"], ["/a*b", "/a%2ab"]],
    ["a dollar in hex is itself", all("Disallow: /a%24"), ["/a"], ["/a$", "/a$b"]],
    ["a percent that is none", all("Disallow: /100%"), ["/100"], ["/100%", "/100%zz"]],
    ["length is that of the decoded rule", all("Disallow: /%61%62%63", "Allow: /abcd"), ["/abcd"], ["/abc"]],
    ["a rule without a slash in front", all("Disallow: a"), ["/b"], []],
    ["a star in front", all("Disallow: *.gif"), ["/a.png"], ["/a.gif", "/b/a.gif?x"]],
  ])("%s", (_why, file, may, mayNot) => {
    const robots = parseRobots(typeof file === "string" ? file : file.join("\n"));
    const allowed = (path: string): boolean => robots.isAllowed("Scout/9.9 (+https://scout.example)", SITE + path);
    expect(may.filter((path) => !allowed(path))).toEqual([]);
    expect(mayNot.filter(allowed)).toEqual([]);
  });

  it("counts an address without a path as the root", () => {
    const robots = parseRobots(all("Disallow: /$"));
    expect(robots.isAllowed("Scout", "https://example.com")).toBe(false);
    expect(robots.isAllowed("Scout", "https://example.com?a")).toBe(true);
  });

  it.each<[string, number | null]>([
    ["5", 5],
    ["0.5", 0.5],
    [".5", 0.5],
    ["0", 0],
    ["5 # s", 5],
    ["5s", null],
    ["-1", null],
    ["1e3", null],
    ["Infinity", null],
    ["0x5", null],
    ["", null],
    ["1,5", null],
  ])("reads a Crawl-delay of %j as %j", (value, expected) => {
    expect(parseRobots(all(`Crawl-delay: ${value}`)).crawlDelaySec("Scout")).toBe(expected);
  });

  it.each<[string, object | null]>([
    ["1/5", { requests: 1, seconds: 5 }],
    ["10/1m", { requests: 10, seconds: 60 }],
    ["1/2h", { requests: 1, seconds: 7_200 }],
    ["1/1d", { requests: 1, seconds: 86_400 }],
    ["1/10s 0600-0845", { requests: 1, seconds: 10, start: "0600", end: "0845" }],
    ["0/5", null],
    ["1/0", null],
    ["1", null],
    ["1/5 9999-0000", null],
  ])("reads a Request-rate of %j as %j", (value, expected) => {
    expect(parseRobots(all(`Request-rate: ${value}`)).requestRate("Scout")).toEqual(expected);
  });

  it.each([
    [{ status: 200 }, "parse"],
    [{ status: 204 }, "parse"],
    [{ status: 301, redirects: 6 }, "allow-all"],
    [{ status: 404 }, "allow-all"],
    [{ status: 401 }, "allow-all"],
    [{ status: 403 }, "allow-all"],
    [{ status: 410 }, "allow-all"],
    [{ status: 429 }, "defer"],
    [{ status: 500 }, "disallow-all"],
    [{ status: 503 }, "disallow-all"],
    [{ networkError: "ECONNREFUSED" }, "disallow-all"],
    [{ status: 503, cachedAgeHours: 5 }, "use-cached"],
    [{ networkError: "ENOTFOUND", cachedAgeHours: 700 }, "use-cached"],
    [{ status: 500, unreachableDays: 31 }, "allow-all"],
  ])("answers %j with %s", (outcome, expected) => expect(robotsAction(outcome)).toBe(expected));
});
