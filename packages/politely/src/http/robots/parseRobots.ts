import { showValue } from "../../policy/showValue.js";
import { type Agent, agentToken, mergePacings, type Pacing, readAgents } from "./agents.js";
import { readOctets, textOf } from "./octets.js";
import type { DailyHours, RequestRate } from "./pacingValues.js";
import { pathOfUrl } from "./pathOfUrl.js";
import { compilePattern } from "./pattern.js";
import type { RobotsRecord } from "./records.js";
import { createRuleTable, findRule, type Rule, type RuleTable } from "./ruleTable.js";

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
  readonly pacing: Pacing;
}

/** How many agents' rules are kept ready. A program goes by one name, or few; those that come beyond are sorted anew. */
const maxCompiled = 16;

const maxShownLength = 200;

const nothing: Agent = { groups: [], pacings: [] };

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
    crawlDelaySec: (userAgent) => rulesFor(userAgent).pacing.crawlDelaySec?.value ?? null,
    requestRate: (userAgent) => rulesFor(userAgent).pacing.requestRate?.value ?? null,
    visitTime: (userAgent) => rulesFor(userAgent).pacing.visitTime?.value ?? null,
    matchedRule: (userAgent, url) => shown(decide(userAgent, url)),
    pacingRule: (userAgent, field) => shown(rulesFor(userAgent).pacing[field]?.record),
  };
}

function remember(compiled: Map<Agent, Compiled>, agent: Agent): Compiled {
  for (const oldest of compiled.keys()) {
    if (compiled.size < maxCompiled) break;
    compiled.delete(oldest);
  }
  const entry = {
    table: createRuleTable(agent.groups.flatMap((records) => records.map(ruleOf))),
    pacing: mergePacings(agent.pacings),
  };
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
