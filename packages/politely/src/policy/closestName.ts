const maxCloseNames = 3;

/**
 * Finds the name that was probably meant, or undefined when none is close.
 *
 * Case, `_` and `-` do not count. About one mistake in three letters is forgiven; of equally close names the first wins.
 */
export function closestName(text: string, names: readonly string[]): string | undefined {
  return namesByMistakes(text, names).at(0);
}

/**
 * Finds up to three names that were probably meant, the closest first: those `closestName` chooses from,
 * then those that begin with the text or have it after a hyphen, as `"github"` for `"github-search"`.
 */
export function closeNames(text: string, names: readonly string[]): readonly string[] {
  const wanted = text.toLowerCase();
  const isLongEnough = wanted.length >= 3;
  const related = isLongEnough ? names.filter((name) => `-${name.toLowerCase()}`.includes(`-${wanted}`)) : [];
  return [...new Set([...namesByMistakes(text, names), ...related])].slice(0, maxCloseNames);
}

/** Lists the names within about one mistake in three letters, fewest mistakes first. */
function namesByMistakes(text: string, names: readonly string[]): readonly string[] {
  // A longer text is no typing mistake, and the comparison takes time that grows with the length.
  if (text.length > 64) return [];
  const wanted = simplified(text);
  const most = Math.max(1, Math.floor(wanted.length / 3));
  return names
    .map((name) => ({ name, mistakes: editDistance(wanted, simplified(name)) }))
    .filter(({ mistakes }) => mistakes <= most)
    .sort((one, other) => one.mistakes - other.mistakes)
    .map(({ name }) => name);
}

function simplified(text: string): string {
  return text.toLowerCase().replace(/[_-]/g, "");
}

/** Counts the letters to add, drop, change or swap with their neighbour to turn one text into the other. */
function editDistance(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= from.length; row++) {
    const [above, current] = [rows[row - 1], [row]];
    for (let column = 1; column <= to.length; column++) {
      const [letter, other] = [from[row - 1], to[column - 1]];
      const isSwap = row > 1 && column > 1 && letter === to[column - 2] && from[row - 2] === other;
      current[column] = Math.min(
        above[column] + 1,
        current[column - 1] + 1,
        above[column - 1] + (letter === other ? 0 : 1),
        isSwap ? rows[row - 2][column - 2] + 1 : Number.POSITIVE_INFINITY,
      );
    }
    rows.push(current);
  }
  return rows[from.length][to.length];
}
