import { textOf } from "./octets.js";
import { type RobotsPace, readCrawlDelay, readDailyHours, readRequestRate } from "./pace.js";

/** What a line of robots.txt is about, where it is something that is obeyed. */
type Field = "user-agent" | "allow" | "disallow" | PaceField;
type PaceField = keyof RobotsPace;

/** One line that is obeyed. Texts have one character for each octet. */
export interface RobotsRecord {
  readonly field: Field;
  /** What follows the name, without the blanks around it; may be empty. */
  readonly value: string;
  /** Where it stands, from 1. */
  readonly line: number;
  /** The line without its comment and the blanks around it. */
  readonly text: string;
}

/** What robots.txt says to one agent. Lists are shared with other agents of the same lines. */
export interface Agent {
  /** The Allow and Disallow lines of each group that names it, empty ones left out. */
  readonly groups: Set<readonly RobotsRecord[]>;
  /** The lines about the pace under each run of user-agent lines that names it. */
  readonly paces: Set<readonly RobotsRecord[]>;
}

/** Names as they are compared: without case, blanks, hyphens and underscores. Misspellings seen in the wild count as what is meant. */
const fieldsByName = new Map<string, Field>([
  ...["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw", "desallow"].map(
    (name) => [name, "disallow"] as const,
  ),
  ["useragent", "user-agent"],
  ["allow", "allow"],
  ["crawldelay", "crawlDelaySec"],
  ["requestrate", "requestRate"],
  ["visittime", "visitTime"],
]);

/** Ends the product token of an agent: a version, a comment or a second name follows. */
const tokenEnd = /[\s/,;()[\]{}<>].*/s;

/** Cuts the product token out of a user agent, in lower case: `"Scout/9.9 (like Jay)"` gives `"scout"`. */
export function agentToken(userAgent: string): string {
  return userAgent.trimStart().replace(tokenEnd, "").toLowerCase();
}

/**
 * Sorts the lines of a robots.txt by the agents they are for, by product token.
 *
 * A user-agent line after an Allow or Disallow begins a group; other lines in between do not. Lines about the pace are for the user-agent
 * lines right above them, back to the previous line about the pace, so that agents who share their rules may differ in their pace.
 * Lines before the first user-agent line are for nobody. Time and memory grow with the number of lines, however many agents share them.
 */
export function readAgents(octets: string): ReadonlyMap<string, Agent> {
  const agents = new Map<string, Agent>();
  let rules: RobotsRecord[] | undefined;
  let pace: RobotsRecord[] = [];
  let isRunOpen = false;

  // CR, LF and CRLF all end a line.
  octets.split(/\r\n?|\n/).forEach((whole, index) => {
    const record = readLine(whole, index + 1);
    if (record === undefined) return;
    const { field, value } = record;
    if (field === "user-agent") {
      if (!isRunOpen || rules === undefined) rules = [];
      if (!isRunOpen || pace.length > 0) pace = [];
      isRunOpen = true;
      const token = agentToken(/[\x80-\xFF]/.test(value) ? textOf(value) : value);
      // An empty name names nobody, but its rules must not fall to the agents before.
      const agent = (token === "" ? undefined : agents.get(token)) ?? { groups: new Set(), paces: new Set() };
      agent.groups.add(rules);
      agent.paces.add(pace);
      if (token !== "") agents.set(token, agent);
    } else if (field === "allow" || field === "disallow") {
      // An empty value says nothing about any path, but it does end the user-agent lines.
      if (value !== "") rules?.push(record);
      isRunOpen = false;
    } else if (rules !== undefined) {
      pace.push(record);
    }
  });
  return agents;
}

/** What the groups of one agent say about its pace, and in which lines: of several the longest gap each way, and the first time of the day. */
export interface StatedPace {
  readonly pace: RobotsPace;
  readonly lines: Partial<Record<PaceField, RobotsRecord>>;
}

/** Puts together what lines say about the pace. Values that cannot be read are skipped. */
export function paceOf(records: Iterable<RobotsRecord>): StatedPace {
  const lines: Partial<Record<PaceField, RobotsRecord>> = {};
  const pace: { -readonly [Name in PaceField]: RobotsPace[Name] } = {
    crawlDelaySec: null,
    requestRate: null,
    visitTime: null,
  };
  for (const record of records) {
    const { field, value } = record;
    if (field === "crawlDelaySec") {
      const seconds = readCrawlDelay(value);
      if (seconds === null || seconds <= (pace.crawlDelaySec ?? -1)) continue;
      pace.crawlDelaySec = seconds;
    } else if (field === "requestRate") {
      const rate = readRequestRate(value);
      const { requestRate: before } = pace;
      if (rate === null || (before !== null && rate.seconds / rate.requests <= before.seconds / before.requests))
        continue;
      pace.requestRate = rate;
    } else if (field === "visitTime") {
      const hours = readDailyHours(value);
      if (hours === null || pace.visitTime !== null) continue;
      pace.visitTime = hours;
    } else continue;
    lines[field] = record;
  }
  return { pace, lines };
}

/** Between name and value stands a colon; where it was forgotten a blank will do. `#` starts a comment. Undefined for a line that is not obeyed. */
function readLine(whole: string, line: number): RobotsRecord | undefined {
  const text = trimBlanks(whole.replace(/#.*/s, ""));
  const colon = text.indexOf(":");
  // `disallow /a` and `crawl delay 5`: a name of one word or two, then the value.
  const [words = "", first = "", second] = /^([A-Za-z_-]{1,32})[ \t]+(?:([A-Za-z]{1,32})[ \t]+)?/.exec(text) ?? [];
  const names: readonly (readonly [string, number])[] = [
    [colon === -1 ? "" : text.slice(0, colon), colon + 1],
    [first, first.length],
    [second === undefined ? "" : first + second, words.length],
  ];
  for (const [name, end] of names) {
    const field = fieldsByName.get(name.replace(/[-_\s]/g, "").toLowerCase());
    if (field !== undefined) return { field, value: trimBlanks(text.slice(end)), line, text };
  }
  return undefined;
}

/** Without blanks, tabs, vertical tabs and form feeds around it; other blanks may be octets of UTF-8. */
function trimBlanks(text: string): string {
  return /[^ \t\v\f](?:.*[^ \t\v\f])?/s.exec(text)?.[0] ?? "";
}
