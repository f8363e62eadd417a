// @ts-check

const NAME_WIDTH = 27;

/**
 * One block of the table, ready to print.
 *
 * @param {import("../measures/types.d.ts").Row} row
 * @param {import("./summary.mjs").Result} result
 */
export function formatResult(row, result) {
  const widths = row.metrics.map(({ title }) => Math.max(title.length, row.rounds > 1 ? 25 : 10) + 2);
  const lines = [
    "",
    result.title,
    " ".repeat(NAME_WIDTH) +
      row.metrics.map(({ title }, i) => title.padStart(widths[i])).join("") +
      (row.hasRatio === false ? "" : "politely is".padStart(15)),
  ];
  for (const entry of result.entries) {
    const name = `  ${entry.name}`.padEnd(NAME_WIDTH);
    if (entry.error !== undefined) {
      lines.push(`${name}  ${entry.error}`);
      continue;
    }
    const cells = row.metrics.map((metric, i) => formatSpread(metric, entry.metrics[metric.key]).padStart(widths[i]));
    const ratio = entry.ratio === undefined || entry.name.startsWith("politely") ? "" : `× ${entry.ratio.toFixed(2)}`;
    lines.push(`${name}${cells.join("")}${ratio.padStart(15)}${entry.note ? `  (${entry.note})` : ""}`.trimEnd());
  }
  for (const goal of result.goals) lines.push(`  goal: ${goal.text}: ${verdict(goal)}`);
  return lines.join("\n");
}

/** @param {{ digits: number }} metric @param {import("./summary.mjs").Spread} spread */
function formatSpread({ digits }, { median, lowest, highest, rounds }) {
  const middle = number(median, digits);
  return rounds.length > 1 ? `${middle} (${number(lowest, digits)} … ${number(highest, digits)})` : middle;
}

/** @param {number} value @param {number} digits */
function number(value, digits) {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** @param {import("./summary.mjs").Verdict} goal */
function verdict({ isReached, value, bound }) {
  if (isReached === undefined || value === undefined || bound === undefined) return "not judged, a side is missing";
  return `${isReached ? "reached" : "MISSED"} (${Number(value.toPrecision(4))}, bound ${bound})`;
}
