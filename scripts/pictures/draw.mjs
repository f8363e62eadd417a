// Draws what happened on a time axis, in the colours of `politely plan`: light and dark, each with its own background.
import { escapeText, inBothColours } from "../../packages/politely-cli/dist/plan/markup.js";

/** @typedef {{ startMs: number; endMs: number; isRefused: boolean }} Answered one request that was sent */
/** @typedef {{ fromMs: number; toMs: number; label: string }} Span a time in which nothing starts */
/** @typedef {{ name: string; note: string; starts: ArrayLike<number>; holds?: readonly Span[]; refused?: readonly number[] }} Row */

const WIDTH = 780;
const LEFT = 236;
const RIGHT = 24;
const HEAD = 58;
const ROW = 66;
const DOT = 4.5;
const LINE = 19;

const STYLE =
  "text{font:13px system-ui,-apple-system,sans-serif}.name{font:600 13px ui-monospace,SFMono-Regular,Menlo,monospace}" +
  ".head{font-size:15px;font-weight:600}.small{font-size:12px}.end{text-anchor:end}.mid{text-anchor:middle}" +
  inBothColours(
    ({ paper, ink, faint, line, track, bar, last }) =>
      `text{fill:${ink}}.faint{fill:${faint}}.paper{fill:${paper}}.track{fill:${track}}.rule{stroke:${line}}` +
      `.good{fill:${bar}}.bad{fill:${last}}.hold{fill:${last};fill-opacity:.2}.wait{stroke:${faint};stroke-dasharray:2 3}` +
      `.held{fill:${last}}`,
  );

/**
 * Draws one row for each limit, with a dot for each start; starts of one instant stand on each other.
 *
 * @param {{ title: string; spanMs: number; tickMs: number; rows: readonly Row[] }} picture
 * @returns {string}
 */
export function drawRows({ title, spanMs, tickMs, rows }) {
  const height = HEAD + rows.length * ROW + 12;
  const x = scale(spanMs);
  return svg({
    title,
    description: rows.map((row) => `${row.name}, ${row.note}: ${startsInWords(row.starts, spanMs)}`).join("; "),
    height,
    parts: [
      ...axis(spanMs, tickMs, x, height),
      ...rows.map((row, index) => drawRow(row, HEAD + index * ROW, spanMs, x)),
    ],
  });
}

/** @param {Row} row @param {number} top @param {number} spanMs @param {(ms: number) => number} x */
function drawRow({ name, note, starts, holds = [], refused = [] }, top, spanMs, x) {
  const base = top + ROW - 22;
  /** @type {Map<number, number>} */
  const heights = new Map();
  const dots = Array.from(starts)
    .filter((ms) => ms <= spanMs)
    .map((ms) => {
      const level = heights.get(ms) ?? 0;
      heights.set(ms, level + 1);
      const kind = refused.includes(ms) ? "bad" : "good";
      return `<circle class="${kind}" cx="${x(ms)}" cy="${base - 6 - level * 2.4 * DOT}" r="${DOT}"/>`;
    });
  return [
    `<text class="name" x="16" y="${base - 18}">${escapeText(name)}</text>`,
    `<text class="faint small" x="16" y="${base}">${escapeText(note)}</text>`,
    `<line class="rule" x1="${x(0)}" x2="${x(spanMs)}" y1="${base}" y2="${base}"/>`,
    ...holds.map((span) => hold(span, top + 14, base, x)),
    ...dots,
  ].join("\n");
}

/**
 * Draws one line for each request: dashed while it waits, a bar while it is in flight.
 *
 * @param {{ title: string; spanMs: number; tickMs: number; requests: readonly Answered[]; holds: readonly Span[]; notes: readonly { atMs: number; line: number; text: string }[] }} picture
 * @returns {string}
 */
export function drawRequests({ title, spanMs, tickMs, requests, holds, notes }) {
  const height = HEAD + requests.length * LINE + 24;
  const x = scale(spanMs, 96);
  const y = (/** @type {number} */ line) => HEAD + 6 + line * LINE;
  const bars = requests.map(({ startMs, endMs, isRefused }, line) => {
    const wait = `<line class="wait" x1="${x(0)}" x2="${x(startMs)}" y1="${y(line) + 6}" y2="${y(line) + 6}"/>`;
    const width = round(x(Math.min(endMs, spanMs)) - x(startMs));
    const bar = `<rect class="${isRefused ? "bad" : "good"}" x="${x(startMs)}" y="${y(line)}" width="${width}" height="12" rx="2"/>`;
    return `<text class="faint small end" x="${x(0) - 10}" y="${y(line) + 10}">request ${line + 1}</text>\n${wait}\n${bar}`;
  });
  const words = requests.map(
    ({ startMs, endMs, isRefused }, line) =>
      `request ${line + 1} starts at ${seconds(startMs)} and ${isRefused ? "is refused" : "is answered"} at ${seconds(endMs)}`,
  );
  return svg({
    title,
    description: [
      ...holds.map(({ label, fromMs, toMs }) => `${label} from ${seconds(fromMs)} to ${seconds(toMs)}`),
      ...words,
    ].join("; "),
    height,
    parts: [
      ...axis(spanMs, tickMs, x, height),
      ...holds.map((span) => hold(span, HEAD, height - 18, x)),
      ...bars,
      ...notes.map(
        ({ atMs, line, text }) =>
          `<text class="small" x="${x(atMs) + 8}" y="${y(line) + 10}">${escapeText(text)}</text>`,
      ),
    ],
  });
}

/** @param {Span} span @param {number} top @param {number} bottom @param {(ms: number) => number} x */
function hold({ fromMs, toMs, label }, top, bottom, x) {
  const left = x(fromMs);
  const width = round(x(toMs) - left);
  return (
    `<rect class="hold" x="${left}" y="${top}" width="${width}" height="${bottom - top}"/>` +
    `<text class="held small mid" x="${round(left + width / 2)}" y="${top + 14}">${escapeText(label)}</text>`
  );
}

/** @param {number} spanMs @param {number} tickMs @param {(ms: number) => number} x @param {number} height */
function axis(spanMs, tickMs, x, height) {
  const parts = [];
  for (let ms = 0; ms <= spanMs; ms += tickMs) {
    parts.push(
      `<line class="rule" x1="${x(ms)}" x2="${x(ms)}" y1="${HEAD - 8}" y2="${height - 12}" stroke-opacity=".6"/>`,
      `<text class="faint small mid" x="${x(ms)}" y="${HEAD - 14}">${seconds(ms)}</text>`,
    );
  }
  return parts;
}

/** @param {{ title: string; description: string; height: number; parts: readonly string[] }} content */
function svg({ title, description, height, parts }) {
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title what">`,
    `<title id="title">${escapeText(title)}</title><desc id="what">${escapeText(description)}</desc>`,
    `<style>${STYLE}</style>`,
    `<rect class="paper" width="${WIDTH}" height="${height}" rx="6"/>`,
    `<text class="head" x="16" y="26">${escapeText(title)}</text>`,
    ...parts,
    "</svg>",
  ].join("\n")}\n`;
}

/** @param {number} spanMs @param {number} left @returns {(ms: number) => number} */
function scale(spanMs, left = LEFT) {
  return (ms) => round(left + (ms / spanMs) * (WIDTH - left - RIGHT));
}

/** @param {ArrayLike<number>} starts @param {number} spanMs */
function startsInWords(starts, spanMs) {
  const shown = Array.from(starts).filter((ms) => ms <= spanMs);
  return `starts at ${shown.map((ms) => seconds(ms)).join(", ")}`;
}

/** @param {number} ms */
function seconds(ms) {
  return ms === 0 ? "0" : `${round(ms / 1000)} s`;
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 100) / 100;
}
