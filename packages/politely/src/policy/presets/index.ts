import type { HostLimits, PolicyInput } from "../types.js";
import { notes } from "./notes.js";
import { sites } from "./sites.js";

export { collector } from "./sites.js";

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

const lines = notes.trim().split("\n");

/** All known sites, by theme. */
export const presets: readonly Preset[] = sites.map((site) => {
  const [, text = "", ...sources] = lines.find((line) => line.startsWith(`${site.id} | `))?.split(" | ") ?? [];
  return { ...site, notes: text, sources };
});

/** Finds a known site by its id; undefined when there is none. */
export function findPreset(id: string): Preset | undefined {
  return presets.find((preset) => preset.id === id);
}
