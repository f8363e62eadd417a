const maxShownLength = 60;

/**
 * Writes a value for a message: short, on one line, and without looking inside objects.
 *
 * Text longer than 60 characters is cut, so that a message stays readable whatever it is about.
 */
export function showValue(value: unknown): string {
  if (typeof value === "string") {
    return value.length > maxShownLength
      ? `${JSON.stringify(value.slice(0, maxShownLength))}… (${value.length} characters)`
      : JSON.stringify(value);
  }
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : `a list of ${value.length}`;
  if (typeof value === "function") return "a function";
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "bigint" ? `${value}n` : String(value);
}
