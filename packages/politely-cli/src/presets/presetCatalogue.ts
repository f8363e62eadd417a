import { collector, type PolicyPreset, type Preset, presets } from "politely/presets";
import { UsageError } from "../errors.js";
import { closeNames } from "../policy/closeNames.js";

/** Every preset, sites first, whole policies last. */
export const catalogue: readonly (Preset | PolicyPreset)[] = [...presets, collector];

/** The hosts a preset is for; empty for software that runs on many. */
export function hostsOf(preset: Preset | PolicyPreset): readonly string[] {
  return "policy" in preset ? Object.keys(preset.policy.hosts ?? {}) : preset.hosts;
}

/** Finds a preset by its name; case does not count. Throws a `UsageError` with the closest names, or those of presets for a host that was given. */
export function presetNamed(name: string): Preset | PolicyPreset {
  const found = catalogue.find(({ id }) => id === name.toLowerCase());
  if (found !== undefined) return found;
  const ids = catalogue.map(({ id }) => id);
  const forHost = catalogue.filter((preset) => isForHost(preset, name)).map(({ id }) => id);
  const close = forHost.length > 0 ? forHost : closeNames(name, ids);
  const hint = close.length === 0 ? "politely presets lists them all" : `did you mean ${close.join(" or ")}?`;
  throw new UsageError(`there is no preset ${JSON.stringify(name)}; ${hint}`);
}

/**
 * Finds the presets that have every word of a text in their name, hosts, notes or sources; case does not count.
 *
 * A word that is a host also finds the presets that are for it: `de.wikipedia.org` finds the one for `*.wikipedia.org`.
 */
export function searchPresets(text: string): readonly (Preset | PolicyPreset)[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return catalogue.filter((preset) => {
    const about = [preset.id, ...hostsOf(preset), preset.notes, ...("sources" in preset ? preset.sources : [])];
    const whole = about.join("\n").toLowerCase();
    return words.every((word) => whole.includes(word) || isForHost(preset, word));
  });
}

function isForHost(preset: Preset | PolicyPreset, given: string): boolean {
  const host = given
    .toLowerCase()
    .replace(/^[a-z]+:\/\//, "")
    .replace(/[:/].*$/, "");
  return hostsOf(preset).some((pattern) =>
    pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) && host.length > pattern.length - 1 : host === pattern,
  );
}
