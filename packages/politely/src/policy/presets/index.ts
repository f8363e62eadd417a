import type { HostLimits, Limits, PolicyInput } from "../types.js";
import { sites } from "./sites.js";

/** What a site asks of the User-Agent header. */
export type UserAgentRule = "required, with contact" | "required, descriptive" | "recommended" | "no rule found";

/** How sure the limits are: published, published with gaps, or a cautious guess. */
export type Confidence = "high" | "medium" | "low";

/** The published limits of a known site. */
export interface Preset {
  readonly id: string;
  /** Whom it is for. Empty where it is software that runs on many hosts: such a preset is for reading only. */
  readonly hosts: readonly string[];
  /** Without a key, and identified as the site asks. Each host counts on its own, unless `countsTogether`. */
  readonly limits: HostLimits;
  /** The site counts its hosts as one: besides each on its own, all of them together keep the limits, as the scope `preset:` and the id. */
  readonly countsTogether?: true;
  readonly userAgent: UserAgentRule;
  /** The site wants to know how to reach the caller. */
  readonly requiresContact: boolean;
  readonly notes: string;
  readonly sources: readonly string[];
  /** Presets of low confidence apply only where they are named. */
  readonly confidence: Confidence;
  /** The day it was written down. */
  readonly date: string;
  /** All limits of a caller with a key or a login, where they differ. */
  readonly withKey?: HostLimits;
  /** All limits of a caller who gives no contact, where they differ. */
  readonly withoutContact?: HostLimits;
}

/** A preset that is a whole policy, with a default. It applies only where it is named. */
export interface PolicyPreset {
  readonly id: string;
  /** Its `default` applies where the user's policy has none. */
  readonly policy: Pick<PolicyInput, "default" | "hosts">;
  readonly notes: string;
  readonly date: string;
}

/** All known sites, by theme. */
export const presets: readonly Preset[] = sites
  .trim()
  .split(/\n(?=\S)/)
  .map(presetOf);

const reuters: Limits = { minDelay: 3_000, window: "2/min", backoff: "exponential" };
const eia: Limits = { minDelay: 1_000, window: "10/min", backoff: "none" };

/** A whole policy for collectors of financial news and energy data, with a careful default. */
export const collector: PolicyPreset = {
  id: "collector",
  policy: {
    default: { minDelay: 1_000, window: "5/min", backoff: "linear" },
    hosts: {
      "finance.yahoo.com": { minDelay: 2_000, window: "3/min", backoff: "exponential" },
      "reuters.com": reuters,
      "www.reuters.com": reuters,
      "*.company-ir": { minDelay: 1_000, window: "5/min", backoff: "linear" },
      "eia.gov": eia,
      "www.eia.gov": eia,
      "api.eia.gov": eia,
    },
  },
  notes: "A gap and a count per minute for each host. Chosen with care rather than published by the sites.",
  date: "2026-11-19",
};

const byId: ReadonlyMap<string, Preset> = new Map(presets.map((preset) => [preset.id, preset]));

/** Finds a known site by its id; undefined when there is none. */
export function findPreset(id: string): Preset | undefined {
  return byId.get(id);
}

/** Reads the two lines of one site. */
function presetOf(lines: string): Preset {
  const [facts, about] = lines.split("\n").map((line) => line.trim().split(" | "));
  const [id, hosts, limits, userAgent, confidence, date, ...variants] = facts;
  const [notes, ...sources] = about;
  const names = hosts.split(" ").filter((name) => name !== "any");
  const areTogether = names[0] === "together:";
  return {
    id,
    hosts: areTogether ? names.slice(1) : names,
    limits: limitsOf(limits),
    ...(areTogether ? { countsTogether: true } : {}),
    userAgent: userAgent as UserAgentRule,
    requiresContact: userAgent === "required, with contact",
    notes,
    sources,
    confidence: confidence as Confidence,
    date,
    ...Object.fromEntries(variants.map((text) => [text.split(":", 1)[0], limitsOf(text.replace(/^.*?: /, ""))])),
  };
}

/** Reads limits such as `window 30/s & 300/day; concurrency 1; search: window 10/min`. */
function limitsOf(text: string): HostLimits {
  const limits: Record<string, unknown> = {};
  const intents: Record<string, Record<string, unknown>> = {};
  for (const part of text.split("; ")) {
    const [, intent, field, value] = /^(?:(\S+): )?(\S+) (.+)$/.exec(part) ?? [];
    const values = value.split(" & ").map((each) => (/^\d+$/.test(each) ? Number(each) : each));
    const read = { [field]: values.length === 1 ? values[0] : values };
    if (intent === undefined) Object.assign(limits, read);
    else intents[intent] = { ...intents[intent], ...read };
  }
  return Object.keys(intents).length === 0 ? limits : { ...limits, intents };
}
