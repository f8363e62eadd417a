/** Throws `TypeError` for options that are no object, or have a field that nobody would read. */
export function checkOptionNames(options: object | undefined, known: readonly string[], who: string): void {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`${who} takes options as an object; got ${String(options)}.`);
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw new TypeError(`${who} has no option "${name}". Known: ${known.join(", ")}.`);
  }
}
