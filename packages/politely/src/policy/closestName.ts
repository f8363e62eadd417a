/**
 * Finds the name that was probably meant, or undefined when none is close.
 *
 * Case, `_` and `-` do not count. About one mistake in three letters is forgiven; of equally close names the first wins.
 */
export function closestName(text: string, names: readonly string[]): string | undefined {
  // A longer text is no typing mistake, and the comparison takes time that grows with the length.
  if (text.length > 64) return undefined;
  const wanted = simplified(text);
  let best: string | undefined;
  let bestMistakes = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const name of names) {
    const mistakes = editDistance(wanted, simplified(name));
    if (mistakes < bestMistakes) {
      best = name;
      bestMistakes = mistakes;
    }
  }
  return best;
}

function simplified(text: string): string {
  return text.toLowerCase().replace(/[_-]/g, "");
}

/** Counts the letters to add, drop, change or swap with their neighbour to turn one text into the other. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      let cost = Math.min(last[column] + 1, current[column - 1] + 1, last[column - 1] + (isSame ? 0 : 1));
      const isSwap = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (isSwap) cost = Math.min(cost, beforeLast[column - 2] + 1);
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length];
}
