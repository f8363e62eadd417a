import { developer } from "./developer.js";
import { finance } from "./finance.js";
import { government } from "./government.js";
import { knowledge } from "./knowledge.js";
import { media } from "./media.js";
import type { Preset } from "./preset.js";
import { science } from "./science.js";

export { collector } from "./collector.js";
export type { Confidence, PolicyPreset, Preset, UserAgentRule } from "./preset.js";

/** All known sites, by theme. */
export const presets: readonly Preset[] = [...science, ...knowledge, ...government, ...finance, ...developer, ...media];

const byId: ReadonlyMap<string, Preset> = new Map(presets.map((preset) => [preset.id, preset]));

/** Finds a known site by its id; undefined when there is none. */
export function findPreset(id: string): Preset | undefined {
  return byId.get(id);
}
