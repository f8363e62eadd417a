// @ts-check
import { median } from "./timing.mjs";

/**
 * @typedef {import("../measures/types.d.ts").Row} Row
 * @typedef {import("../measures/types.d.ts").Goal} Goal
 * @typedef {{ median: number; lowest: number; highest: number; rounds: number[] }} Spread
 * @typedef {{ name: string; note?: string; error?: string; metrics: Record<string, Spread>; ratio?: number }} Entry
 * @typedef {{ text: string; isReached: boolean | undefined; value?: number; bound?: number }} Verdict
 * @typedef {{ id: string; title: string; entries: Entry[]; goals: Verdict[]; seconds: number }} Result
 */

/**
 * Puts the rounds of one row together.
 *
 * `ratio` is politely's first metric divided by the rival's, taken in each round and then the median: what slows a whole round
 * down slows both.
 *
 * @param {Row} row
 * @param {Record<string, number | string>[][]} answers by contender, then by round
 * @param {Result[]} earlier
 * @returns {Result}
 */
export function summarize(row, answers, earlier) {
  const entries = row.contenders.map((contender, i) => {
    const error = answers[i].find((answer) => answer.error !== undefined)?.error;
    /** @type {Entry} */
    const entry = { name: contender.name, metrics: {} };
    if (contender.note) entry.note = contender.note;
    if (error !== undefined) entry.error = String(error);
    else
      for (const { key } of row.metrics) entry.metrics[key] = spread(answers[i].map((answer) => Number(answer[key])));
    return entry;
  });
  const { key } = row.metrics[0];
  const [ours] = entries;
  for (const entry of row.hasRatio === false ? [] : entries.slice(1)) {
    if (ours.error === undefined && entry.error === undefined)
      entry.ratio = pairedRatio(ours.metrics[key], entry.metrics[key]);
  }
  /** @type {Result} */
  const result = { id: row.id, title: row.title, entries, goals: [], seconds: 0 };
  result.goals = row.goals.map((goal) => judge(goal, result, earlier));
  return result;
}

/** @param {number[]} rounds @returns {Spread} */
function spread(rounds) {
  return { median: median(rounds), lowest: Math.min(...rounds), highest: Math.max(...rounds), rounds };
}

/** @param {Spread} ours @param {Spread} theirs */
function pairedRatio(ours, theirs) {
  return median(ours.rounds.map((value, i) => value / theirs.rounds[i]));
}

/**
 * `isReached` is undefined where one side is missing.
 *
 * @param {Goal} goal
 * @param {Result} result
 * @param {Result[]} earlier
 * @returns {Verdict}
 */
function judge(goal, result, earlier) {
  const find = (/** @type {Result | undefined} */ where, /** @type {string} */ name) =>
    where?.entries.find((entry) => entry.name === name)?.metrics[goal.metric];
  const own = find(result, goal.of ?? "politely");
  let value = own?.median;
  if (goal.against) {
    const other = find(result, goal.against);
    value = own && other && pairedRatio(own, other);
  } else if (goal.againstRow) {
    const other = find(
      earlier.find(({ id }) => id === goal.againstRow),
      goal.of ?? "politely",
    );
    value = own && other && own.median / other.median;
  }
  const bound = goal.atMost ?? goal.atLeast;
  if (value === undefined || bound === undefined || Number.isNaN(value))
    return { text: goal.text, isReached: undefined };
  return { text: goal.text, isReached: goal.atMost === undefined ? value >= bound : value <= bound, value, bound };
}
