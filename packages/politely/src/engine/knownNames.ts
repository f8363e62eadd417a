/** Throws `TypeError` when `value` is no object, or has a field that nobody would read. */
export function checkNames(value: object, known: readonly string[], what: string): void {
  if (typeof value !== "object" || value === null)
    throw new TypeError(`${what} must be an object; got ${String(value)}.`);
  for (const name of Object.keys(value)) {
    if (!known.includes(name)) throw new TypeError(`${what} has no field "${name}". Known: ${known.join(", ")}.`);
  }
}
