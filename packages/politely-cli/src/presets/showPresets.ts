import { UsageError } from "../errors.js";
import type { ExitCode, Io } from "../io.js";
import { catalogue, presetNamed, searchPresets } from "./presetCatalogue.js";
import { presetList, presetPage } from "./presetText.js";

/** What `presets` is asked for. Nothing: all of them. */
export interface PresetsOptions {
  /** All of one. */
  readonly name?: string;
  /** Those that have every word of this. */
  readonly search?: string;
  /** JSON on stdout: one object for a name, else a list. Default false. */
  readonly json?: boolean;
}

/** Writes presets to stdout. Exit code 1 when a search finds none. Throws a `UsageError` for a name there is none of. */
export function showPresets(
  { name, search, json = false }: PresetsOptions,
  io: Pick<Io, "stdout" | "stderr">,
): ExitCode {
  if (name !== undefined && search !== undefined) {
    throw new UsageError("presets takes a name or --search, not both");
  }
  if (search !== undefined && search.trim() === "") throw new UsageError("--search needs a word to look for");
  if (name !== undefined) {
    const preset = presetNamed(name);
    io.stdout.write(json ? jsonText(preset) : presetPage(preset));
    return 0;
  }
  const list = search === undefined ? catalogue : searchPresets(search);
  if (json) io.stdout.write(jsonText(list));
  else if (list.length > 0) io.stdout.write(presetList(list));
  if (list.length > 0) return 0;
  io.stderr.write(`politely: no preset has ${JSON.stringify(search)} in it\n`);
  return 1;
}

function jsonText(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
