/** How many names are offered at most. */
const maxCloseNames = 3;

/** A longer text is no typing mistake, and comparing takes time that grows with its length. */
const maxTextLength = 64;

/**
 * Finds up to three names that were probably meant, the closest first. Case, `_` and `-` do not count.
 *
 * About one mistake in three letters is forgiven, in the name or in its part before the first hyphen, so that `githb` finds
 * `github-rest`. Names that have the text in them, or stand in it, come after those.
 */
export function closeNames(text: string, names: readonly string[]): readonly string[] {
  if (text.length > maxTextLength) return [];
  const wanted = simplified(text);
  const most = Math.max(1, Math.floor(wanted.length / 3));
  const mistaken = names
    .map((name) => ({ name, mistakes: fewestMistakes(wanted, name) }))
    .filter(({ mistakes }) => mistakes <= most)
    .toSorted((one, other) => one.mistakes - other.mistakes)
    .map(({ name }) => name);
  const related = wanted.length < 3 ? [] : names.filter((name) => isRelated(wanted, simplified(name)));
  return [...new Set([...mistaken, ...related])].slice(0, maxCloseNames);
}

function fewestMistakes(wanted: string, name: string): number {
  const first = name.split("-")[0];
  return Math.min(mistakesBetween(wanted, simplified(name)), mistakesBetween(wanted, simplified(first)));
}

function isRelated(wanted: string, name: string): boolean {
  return name.includes(wanted) || (name.length >= 3 && wanted.includes(name));
}

function simplified(text: string): string {
  return text.toLowerCase().replace(/[_\s-]/g, "");
}

/** Counts the letters to add, drop, change or swap with their neighbour to turn one text into the other. */
function mistakesBetween(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const changed = last[column - 1] + (from[row - 1] === to[column - 1] ? 0 : 1);
      const isSwap = row > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      const swapped = isSwap ? beforeLast[column - 2] + 1 : Number.POSITIVE_INFINITY;
      current.push(Math.min(changed, swapped, last[column] + 1, current[column - 1] + 1));
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length];
}
