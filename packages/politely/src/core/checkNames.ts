/** Throws `TypeError` when `value` is no object, or has a field that nobody would read. */
export function checkNames(value: object, known: readonly string[], what: string): void {
  if (typeof value !== "object" || value === null)
    throw new TypeError(`${what} must be an object; got ${String(value)}.`);
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new TypeError(`${what} has no field "${unknown}". Known: ${known.join(", ")}.`);
}
