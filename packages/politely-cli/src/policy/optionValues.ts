import { UsageError } from "../errors.js";
import { countText } from "../words.js";
import { unitMs } from "./rateParts.js";

/** The bounds of an option's value, both included; of a duration in milliseconds. */
export interface Bounds {
  readonly least: number;
  readonly most: number;
}

/** Reads the whole number that the option `name` was given. Throws `UsageError` for anything else, and outside the bounds. */
export function countOption(name: string, text: string, { least, most }: Bounds): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  const range = `from ${countText(least)} to ${countText(most)}`;
  throw new UsageError(`${name} takes a whole number ${range}; got ${JSON.stringify(text)}`);
}

const DURATION = /^(\d+(?:\.\d+)?) ?(ms|s|m|min|h|d)$/;

/**
 * Reads the duration that the option `name` was given, in milliseconds: `200ms`, `1.5s`, `10min`, `2h`, `1d`, as in a policy. 0 needs no unit.
 *
 * Throws `UsageError` for anything else, and outside the bounds. A number without a unit is refused on every command line, since
 * it might mean seconds as well as milliseconds; `examples` are what somebody might write.
 */
export function durationOption(
  name: string,
  text: string,
  { least, most, examples = "30s, 10min or 2h" }: Bounds & { readonly examples?: string },
): number {
  const written = text.trim();
  const [, number, unit] = DURATION.exec(written) ?? [];
  const value = unit !== undefined ? Number(number) * unitMs(unit) : written === "0" ? 0 : Number.NaN;
  if (value >= least && value <= most) return value;
  const isBare = /^\d+(\.\d+)?$/.test(written) && written !== "0";
  const hint = isBare ? `. Add the unit: ${written}ms or ${written}s.` : "";
  const range = `from ${spelled(least)} to ${spelled(most)}`;
  throw new UsageError(`${name} takes a duration ${range}, such as ${examples}; got ${JSON.stringify(text)}${hint}`);
}

/** A bound as it may be written on the command line, in its largest unit: `0`, `500ms`, `10min`, `365d`. */
function spelled(ms: number): string {
  if (ms === 0) return "0";
  const unit = ["d", "h", "min", "s"].find((name) => ms % unitMs(name) === 0) ?? "ms";
  return `${ms / unitMs(unit)}${unit}`;
}
