import { parseUrl } from "../../policy/host.js";
import { showValue } from "../../policy/showValue.js";
import { type Agent, agentToken, paceOf, type RobotsRecord, readAgents, type StatedPace } from "./agents.js";
import { octetsOf, readOctets, textOf } from "./octets.js";
import type { DailyHours, RequestRate } from "./pace.js";
import { compilePattern, createRuleTable, findRule, normalisePath, type Rule, type RuleTable } from "./rules.js";

/** A line of a robots.txt, to be shown to people. */
export interface RobotsLine {
  /** From 1. */
  readonly line: number;
  /** As it is written, without its comment; at most 200 characters. */
  readonly text: string;
}

/**
 * What a robots.txt says, to whoever asks. Made by `parseRobots`.
 *
 * `userAgent` is a product token, in any case; what follows it, a version say, is ignored. An agent that no line names is told what `*` is told.
 * Asked with anything but a text it throws `TypeError`; it throws nothing else.
 */
export interface Robots {
  /**
   * Tells whether the agent may fetch the URL. The longest rule that matches path and query decides, Allow where two are equally long;
   * without such a rule, and for `/robots.txt` itself, the answer is yes. A text that begins with `/` is taken for a path.
   * Whether the URL is on the site that sent this file is not asked.
   */
  isAllowed(userAgent: string, url: string | URL): boolean;
  /** The seconds of the agent's Crawl-delay; null when there is none. Not bounded: a day is a value that sites ask for. */
  crawlDelaySec(userAgent: string): number | null;
  /** The agent's Request-rate; null when there is none. */
  requestRate(userAgent: string): RequestRate | null;
  /** The time of the day at which the agent may come; null when there is none. */
  visitTime(userAgent: string): DailyHours | null;
  /** The line that decides about the URL; null when none does. */
  matchedRule(userAgent: string, url: string | URL): RobotsLine | null;
  /** The line behind `crawlDelaySec`, `requestRate` or `visitTime`; null when there is none. */
  pacingRule(userAgent: string, field: "crawlDelaySec" | "requestRate" | "visitTime"): RobotsLine | null;
}

/** What is kept about an agent that was asked about. */
interface Compiled {
  readonly table: RuleTable;
  readonly stated: StatedPace;
}

/** How many agents' rules are kept ready. A program goes by one name, or few; those that come beyond are sorted anew. */
const maxCompiled = 16;

const maxShownLength = 200;

const nothing: Agent = { groups: new Set(), paces: new Set() };

/**
 * Reads a robots.txt by RFC 9309, with Crawl-delay, Request-rate and Visit-time. Takes any text and any bytes, and never fails on them.
 *
 * Of a file above 500 KiB only the lines that end within the first 500 KiB count; the rest is not looked at. Bytes are UTF-8. Time and memory
 * grow in proportion to the part that is read. The rules of an agent are sorted when it is first asked about, and kept for the last 16 agents.
 * Throws `TypeError` when given neither a text nor bytes.
 */
export function parseRobots(text: string | Uint8Array): Robots {
  const agents = readAgents(readOctets(text));
  const compiled = new Map<Agent, Compiled>();

  const rulesFor = (userAgent: string): Compiled => {
    if (typeof userAgent !== "string") throw new TypeError(`userAgent must be a text; got ${showValue(userAgent)}.`);
    const agent = agents.get(agentToken(userAgent)) ?? agents.get("*") ?? nothing;
    return compiled.get(agent) ?? remember(compiled, agent);
  };
  const decide = (userAgent: string, url: string | URL): Rule | undefined => {
    const { table } = rulesFor(userAgent);
    const path = pathOfUrl(url);
    return path === "/robots.txt" ? undefined : findRule(table, path);
  };

  return {
    isAllowed: (userAgent, url) => decide(userAgent, url)?.isAllow ?? true,
    crawlDelaySec: (userAgent) => rulesFor(userAgent).stated.pace.crawlDelaySec,
    requestRate: (userAgent) => rulesFor(userAgent).stated.pace.requestRate,
    visitTime: (userAgent) => rulesFor(userAgent).stated.pace.visitTime,
    matchedRule: (userAgent, url) => shown(decide(userAgent, url)),
    pacingRule: (userAgent, field) => shown(rulesFor(userAgent).stated.lines[field]),
  };
}

function remember(compiled: Map<Agent, Compiled>, agent: Agent): Compiled {
  const [oldest] = compiled.size < maxCompiled ? [] : compiled.keys();
  if (oldest !== undefined) compiled.delete(oldest);
  const rules = [...agent.groups].flat().map(ruleOf);
  const entry = { table: createRuleTable(rules), stated: paceOf([...agent.paces].flat()) };
  compiled.set(agent, entry);
  return entry;
}

function ruleOf({ field, value, line, text }: RobotsRecord): Rule {
  return { isAllow: field === "allow", pattern: compilePattern(value), line, text };
}

function shown(from: { readonly line: number; readonly text: string } | undefined): RobotsLine | null {
  if (from === undefined) return null;
  // An octet is at most one character, so that no more of them are needed.
  return { line: from.line, text: textOf(from.text.slice(0, maxShownLength * 4)).slice(0, maxShownLength) };
}

const scheme = /^[a-z][a-z\d+.-]*:\/\//i;

/**
 * Gives path and query of a URL in the form in which they are compared with rules; the fragment is dropped, and an empty path is `/`.
 *
 * The URL is read as `fetch` reads it, so that `/a/../b` is about what is really sent, `/b`. A text that begins with `/` is a path,
 * and one without a scheme begins with a host. Text that no URL parser takes is compared as it is written.
 * Throws `TypeError` for anything but a text and a `URL`.
 */
export function pathOfUrl(url: string | URL): string {
  const href = hrefOf(url);
  const start = scheme.exec(href)?.[0].length ?? 0;
  const hash = href.indexOf("#", start);
  const rest = href.slice(start, hash === -1 ? href.length : hash);
  const pathStart = rest.search(/[/?]/);
  const path = pathStart === -1 ? "" : rest.slice(pathStart);
  const rooted = path.startsWith("/") ? path : `/${path}`;
  return normalisePath(/[^\0-\x7F]/.test(rooted) ? octetsOf(rooted) : rooted);
}

function hrefOf(url: string | URL): string {
  const given: unknown = typeof url === "string" ? url : url?.href;
  if (typeof given !== "string") throw new TypeError(`url must be a text or a URL; got ${showValue(url)}.`);
  const text = given.trim();
  if (text.startsWith("/")) return absoluteHref(`http://host${text}`);
  const direct = parseUrl(text);
  // Without a host it may still be one with a port, whose name passes for a scheme: localhost:8080/a
  if (direct !== undefined && direct.host !== "") return direct.href;
  return absoluteHref(scheme.test(text) ? text : `http://${text}`);
}

function absoluteHref(text: string): string {
  return parseUrl(text)?.href ?? text;
}
