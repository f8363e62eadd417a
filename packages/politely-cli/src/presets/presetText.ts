import type { HostLimits, Limits } from "politely";
import type { PolicyPreset, Preset } from "politely/presets";
import { limitWords } from "../check/limitWords.js";
import { hostsOf } from "./presetCatalogue.js";

/** How many hosts a list names; the others are counted. */
const maxListedHosts = 3;
const YEAR_MS = 365 * 86_400_000;

/** Writes presets as a list: name, hosts, date and confidence on one line, the limits in words on the next. */
export function presetList(list: readonly (Preset | PolicyPreset)[]): string {
  return list.map((preset) => `${headOf(preset)}\n    ${limitsLine(preset)}\n`).join("");
}

/** Writes all that is known about a preset. */
export function presetPage(preset: Preset | PolicyPreset): string {
  const rows: [string, readonly string[]][] = "policy" in preset ? policyRows(preset) : siteRows(preset);
  const width = Math.max(...rows.map(([title]) => title.length)) + 2;
  const lines = rows.flatMap(([title, texts]) =>
    texts.map((text, index) => `  ${(index === 0 ? title : "").padEnd(width)}${text}`),
  );
  return `${[preset.id, ...lines].join("\n")}\n`;
}

function headOf(preset: Preset | PolicyPreset): string {
  const hosts = hostsOf(preset);
  const shown = hosts.slice(0, maxListedHosts).join(", ");
  const more = hosts.length > maxListedHosts ? ` and ${hosts.length - maxListedHosts} more` : "";
  const confidence = "confidence" in preset ? `confidence ${preset.confidence}` : "a whole policy";
  return `${preset.id}  ${hosts.length === 0 ? "software on many hosts" : shown + more}  (${dateWords(preset.date)}, ${confidence})`;
}

/** A day, with a mark where it is so long ago that the limits may have changed. */
function dateWords(date: string): string {
  return Date.now() - Date.parse(date) > YEAR_MS ? `${date}, over a year ago` : date;
}

function limitsLine(preset: Preset | PolicyPreset): string {
  if (!("policy" in preset)) return withIntents(preset.limits).join("; ");
  return `default: ${limitWords(preset.policy.default ?? {}).join("; ")}`;
}

function siteRows(preset: Preset): [string, readonly string[]][] {
  const { hosts, limits, withKey, withoutContact, userAgent, requiresContact, notes, sources, confidence } = preset;
  return [
    ["hosts", hosts.length === 0 ? ["software on many hosts: copy the limits to the hosts you call"] : hosts],
    ["limits", [...withIntents(limits), ...(preset.countsTogether === true ? ["for all its hosts together"] : [])]],
    ...optionalRow("with a key", withKey),
    ...optionalRow("without contact", withoutContact),
    ["User-Agent", [userAgent]],
    ["contact", [requiresContact ? "required: set http.contact" : "not required"]],
    ["notes", [notes]],
    ["sources", sources.length === 0 ? ["none"] : sources],
    ["date", [dateWords(preset.date)]],
    ["confidence", [confidence === "low" ? "low: applies only where it is named in presets" : confidence]],
  ];
}

function policyRows({ policy, notes, date }: PolicyPreset): [string, readonly string[]][] {
  return [
    ["applies", ["only where it is named in presets"]],
    ["default", limitWords(policy.default ?? {})],
    ...Object.entries(policy.hosts ?? {}).map(([host, limits]): [string, readonly string[]] => [
      host,
      withIntents(limits),
    ]),
    ["notes", [notes]],
    ["date", [dateWords(date)]],
  ];
}

function optionalRow(title: string, limits: HostLimits | undefined): [string, readonly string[]][] {
  return limits === undefined ? [] : [[title, withIntents(limits)]];
}

function withIntents({ intents = {}, ...limits }: HostLimits): readonly string[] {
  const own = limitWords(limits);
  return [...own, ...Object.entries(intents).flatMap(([name, more]: [string, Limits]) => intentWords(name, more))];
}

function intentWords(name: string, limits: Limits): readonly string[] {
  return limitWords(limits).map((words) => `intent ${name}: ${words}`);
}
