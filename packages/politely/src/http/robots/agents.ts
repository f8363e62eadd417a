import { textOf } from "./octets.js";
import { type DailyHours, type RequestRate, readCrawlDelay, readDailyHours, readRequestRate } from "./pacingValues.js";
import { type RobotsRecord, readRecords } from "./records.js";

/** A value with the line it stands on. */
export interface Stated<Value> {
  readonly value: Value;
  readonly record: RobotsRecord;
}

/** What the lines under one run of user-agent lines say about the pace. */
export interface Pacing {
  crawlDelaySec?: Stated<number>;
  requestRate?: Stated<RequestRate>;
  visitTime?: Stated<DailyHours>;
}

/** What robots.txt says to one agent. Lists are shared with other agents of the same lines. */
export interface Agent {
  /** The Allow and Disallow lines of each group that names it, empty ones left out. */
  readonly groups: (readonly RobotsRecord[])[];
  readonly pacings: Pacing[];
}

/** Ends the product token of an agent: a version, a comment or a second name follows. */
const tokenEnd = /[\s/,;()[\]{}<>]/;

/** Cuts the product token out of a user agent, in lower case: `"Scout/9.9 (like Jay)"` gives `"scout"`. */
export function agentToken(userAgent: string): string {
  const text = userAgent.trimStart();
  const end = text.search(tokenEnd);
  return (end === -1 ? text : text.slice(0, end)).toLowerCase();
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
  let pacing: Pacing = {};
  let isRunOpen = false;
  let isPaced = false;

  for (const record of readRecords(octets)) {
    if (record.field === "user-agent") {
      if (!isRunOpen || rules === undefined) rules = [];
      if (!isRunOpen || isPaced) pacing = {};
      isRunOpen = true;
      isPaced = false;
      addAgent(agents, record.value, rules, pacing);
    } else if (record.field === "allow" || record.field === "disallow") {
      // An empty value says nothing about any path, but it does end the user-agent lines.
      if (record.value !== "") rules?.push(record);
      isRunOpen = false;
    } else if (rules !== undefined) {
      readPacing(record, pacing);
      isPaced = true;
    }
  }
  return agents;
}

function addAgent(agents: Map<string, Agent>, value: string, rules: RobotsRecord[], pacing: Pacing): void {
  const token = agentToken(/[\x80-\xFF]/.test(value) ? textOf(value) : value);
  // Names nobody, but its rules must not fall to the agents before.
  if (token === "") return;
  const agent = agents.get(token);
  if (agent === undefined) {
    agents.set(token, { groups: [rules], pacings: [pacing] });
    return;
  }
  if (agent.groups.at(-1) !== rules) agent.groups.push(rules);
  if (agent.pacings.at(-1) !== pacing) agent.pacings.push(pacing);
}

/** Of several lines about the same, the one that asks for the longest gap stays; of several times of the day the first. */
function readPacing(record: RobotsRecord, pacing: Pacing): void {
  if (record.field === "crawl-delay") {
    const value = readCrawlDelay(record.value);
    if (value !== null) keep(pacing, { crawlDelaySec: { value, record } });
  } else if (record.field === "request-rate") {
    const value = readRequestRate(record.value);
    if (value !== null) keep(pacing, { requestRate: { value, record } });
  } else {
    const value = readDailyHours(record.value);
    if (value !== null) keep(pacing, { visitTime: { value, record } });
  }
}

/** Puts together what the groups of one agent say: the longest gap each way, and the first time of the day. */
export function mergePacings(pacings: readonly Pacing[]): Pacing {
  const merged: Pacing = {};
  for (const pacing of pacings) keep(merged, pacing);
  return merged;
}

function keep(pacing: Pacing, { crawlDelaySec, requestRate, visitTime }: Pacing): void {
  if (crawlDelaySec !== undefined && crawlDelaySec.value > (pacing.crawlDelaySec?.value ?? -1)) {
    pacing.crawlDelaySec = crawlDelaySec;
  }
  if (requestRate !== undefined && gapSec(requestRate.value) > gapSec(pacing.requestRate?.value)) {
    pacing.requestRate = requestRate;
  }
  if (visitTime !== undefined) pacing.visitTime ??= visitTime;
}

function gapSec(rate: RequestRate | undefined): number {
  return rate === undefined ? 0 : rate.seconds / rate.requests;
}
