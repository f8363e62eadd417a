// A recording of a terminal as one SVG that plays by itself, without a script or a font of its own.
import { escapeText, inBothColours } from "../../packages/politely-cli/dist/plan/markup.js";
import { parseLines } from "./ansi.mjs";

/** @typedef {import("./record.mjs").Frame} Frame */
/** @typedef {{ row: number; markup: string; shown: { fromMs: number; toMs: number }[]; isLast: boolean }} Piece a line as it looks for a time */

const cell = { width: 7.8, height: 18 };
const padding = 16;
const bar = 34;
/** How long the end stands still before everything begins anew. */
const restMs = 8_000;

const layout =
  'text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}.bold{font-weight:600}';
const paints = inBothColours(
  ({ paper, ink, faint, line, track }) =>
    `text{fill:${ink}}text.dim{fill:${faint}}.paper{fill:${paper};stroke:${line}}.top,.empty{fill:${track}}.dot{fill:${line}}`,
);
/** The colours a program asked for, in a light room and in a dark one: as strong as `text{…}`, and after it. */
const asked =
  `${inks({ green: "#1a7f37", red: "#cf222e", yellow: "#9a6700", blue: "#0b6bcb", cyan: "#0b6bcb" })}@media (prefers-color-scheme:dark){` +
  `${inks({ green: "#3fb950", red: "#f85149", yellow: "#d29922", blue: "#58a6ff", cyan: "#58a6ff" })}}`;
const style = layout + paints + asked;

/**
 * Draws a recording. Whoever wants no motion, or has a viewer without it, sees the last frame.
 *
 * @param {readonly Frame[]} frames
 * @param {{ columns: number; rows: number; title: string; description: string }} options
 * @returns {string}
 */
export function terminalSvg(frames, { columns, rows, title, description }) {
  const totalMs = (frames.at(-1)?.atMs ?? 0) + restMs;
  const width = Math.ceil(columns * cell.width + 2 * padding);
  const height = rows * cell.height + 2 * padding + bar;
  const pieces = piecesOf(frames, totalMs);
  const motions = pieces.map((piece, index) => motion(piece, index, totalMs));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">`,
    `<title id="title">${escapeText(title)}</title><desc id="description">${escapeText(description)}</desc>`,
    `<style>${style}${motions.map(({ frames: steps }) => steps).join("")}`,
    `@media (prefers-reduced-motion:no-preference){g{animation:${round(totalMs / 1_000)}s step-end infinite}${motions.map(({ rule }) => rule).join("")}}</style>`,
    `<rect class="paper" x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="8"/>`,
    `<path class="top" d="M1 ${bar}V9a8 8 0 0 1 8-8H${width - 9}a8 8 0 0 1 8 8V${bar}Z"/>`,
    ...[0, 1, 2].map((each) => `<circle class="dot" cx="${20 + each * 18}" cy="${bar / 2}" r="5.5"/>`),
    `<text class="dim" x="${width / 2}" y="${bar / 2 + 4.5}" text-anchor="middle">${escapeText(title)}</text>`,
    ...pieces.map(({ row, markup, isLast }, index) => {
      const attributes = `${motions[index]?.attribute ?? ""}${isLast ? "" : ' visibility="hidden"'}`;
      return `<g transform="translate(${padding} ${bar + padding + row * cell.height})"${attributes}>${markup}</g>`;
    }),
    "</svg>",
    "",
  ].join("\n");
}

/**
 * Each line once for each way it looks, with the times at which it looks so.
 *
 * @param {readonly Frame[]} frames
 * @param {number} totalMs
 */
function piecesOf(frames, totalMs) {
  /** @type {Map<string, Piece>} */
  const pieces = new Map();
  frames.forEach(({ atMs, lines }, index) => {
    const toMs = frames[index + 1]?.atMs ?? totalMs;
    parseLines(lines).forEach((runs, row) => {
      if (runs.length === 0) return;
      const markup = runs.map(draw).join("");
      const piece = pieces.get(`${row} ${markup}`) ?? { row, markup, shown: [], isLast: false };
      pieces.set(`${row} ${markup}`, piece);
      const before = piece.shown.at(-1);
      if (before?.toMs === atMs) before.toMs = toMs;
      else piece.shown.push({ fromMs: atMs, toMs });
      piece.isLast = index === frames.length - 1;
    });
  });
  return [...pieces.values()];
}

/** @param {import("./ansi.mjs").Run} run */
function draw({ column, text, style: look }) {
  const x = round(column * cell.width);
  const width = round(text.length * cell.width);
  const kind = /^[█▒]/.test(text) ? "" : text.startsWith("░") ? "empty" : undefined;
  if (kind !== undefined)
    return `<rect class="${`${kind} ${look}`.trim()}" x="${x}" y="3" width="${width}" height="12"/>`;
  // The length is said, so that columns stay columns in whatever font there is.
  const name = look === "" ? "" : ` class="${look}"`;
  return `<text${name} x="${x}" y="13.5" textLength="${width}" lengthAdjust="spacingAndGlyphs">${escapeText(text)}</text>`;
}

/**
 * The rules that show a piece at its times, over and over. What is always there needs none.
 *
 * @param {Piece} piece
 * @param {number} index
 * @param {number} totalMs
 */
function motion({ shown }, index, totalMs) {
  if (shown.length === 1 && shown[0]?.fromMs === 0 && shown[0].toMs === totalMs)
    return { frames: "", rule: "", attribute: "" };
  const percent = (/** @type {number} */ ms) => `${round((ms / totalMs) * 100)}%`;
  const isFirst = shown[0]?.fromMs === 0;
  const steps = shown.flatMap(({ fromMs, toMs }) => [
    `${percent(fromMs)}{visibility:visible}`,
    `${percent(toMs)}{visibility:${toMs === totalMs ? "visible" : "hidden"}}`,
  ]);
  const name = `p${index}`;
  return {
    frames: `@keyframes ${name}{${isFirst ? "" : "0%{visibility:hidden}"}${steps.join("")}}`,
    rule: `#${name}{animation-name:${name}}`,
    attribute: ` id="${name}"`,
  };
}

/** @param {Record<string, string>} colours */
function inks(colours) {
  return Object.entries(colours)
    .map(([name, value]) => `text.${name},rect.${name}{fill:${value}}`)
    .join("");
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 100) / 100;
}
