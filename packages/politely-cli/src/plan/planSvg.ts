import { countText, durationText } from "../words.js";
import { densityOf } from "./density.js";
import { escapeText, inBothColours } from "./markup.js";
import type { HostPlan, Plan } from "./plan.js";
import { bindingText, endText } from "./planSentences.js";

const WIDTH = 960;
const NAME_WIDTH = 230;
const TAIL_WIDTH = 130;
const BAR_LEFT = NAME_WIDTH + 12;
const BAR_WIDTH = WIDTH - BAR_LEFT - TAIL_WIDTH;
const ROW = 26;
const TOP = 66;
const CELLS = 120;
const MOST_ROWS = 40;
/** Characters of a name that fit, at 12 px. */
const NAME_CHARACTERS = 32;

/**
 * Draws a plan as an SVG file of its own: a row for each of the 40 slowest hosts, darker where it is busier.
 *
 * It loads nothing, follows the reader's light or dark setting, and says in its description what it shows.
 */
export function planSvg(plan: Plan, wallMs: number): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${svgElement(plan, wallMs)}\n`;
}

/** The same without the heading of a file, to stand in a page. */
export function svgElement(plan: Plan, wallMs: number): string {
  const shown = plan.hosts.slice(0, MOST_ROWS);
  const more = plan.hosts.length - shown.length;
  const height = TOP + shown.length * ROW + (more > 0 ? ROW : 0) + 34;
  const title = escapeText(endText(plan, wallMs));
  const description = escapeText(shown.map((host) => `${host.key}: ${summary(host)}`).join("; "));
  return [
    `<svg class="plan" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="plan-title plan-what">`,
    `<title id="plan-title">${title}</title><desc id="plan-what">${description}</desc>`,
    `<style>${SVG_STYLE}</style>`,
    `<rect class="paper" width="${WIDTH}" height="${height}"/>`,
    `<text class="head" x="12" y="28">${title}</text>`,
    ...axis(plan, height - (more > 0 ? ROW : 0)),
    ...shown.map((host, index) => row(host, TOP + index * ROW, plan)),
    more > 0 ? text("faint", BAR_LEFT, height - 16, `and ${countText(more)} more, done sooner`) : "",
    "</svg>",
  ]
    .filter((line) => line !== "")
    .join("\n");
}

const SHAPES = `.plan text{font:12px system-ui,sans-serif}.plan .head{font-size:16px;font-weight:600}.plan .end{text-anchor:end}`;
const SVG_STYLE =
  SHAPES +
  inBothColours(
    ({ paper, ink, faint, line, track, bar, last }) =>
      `.plan text{fill:${ink}}.plan .faint{fill:${faint}}.plan .paper{fill:${paper}}.plan .track{fill:${track}}` +
      `.plan .tick{stroke:${line}}.plan .bar{fill:${bar}}.plan .last .bar{fill:${last}}`,
  );

function row(host: HostPlan, y: number, { durationMs, longPole }: Plan): string {
  const name = host.key.length > NAME_CHARACTERS ? `${host.key.slice(0, NAME_CHARACTERS - 1)}…` : host.key;
  const isLast = host.key === longPole?.key;
  return [
    `<g${isLast ? ' class="last"' : ""}><title>${escapeText(`${host.key}: ${summary(host)}`)}</title>`,
    `<text class="end" x="${NAME_WIDTH}" y="${y + 14}">${escapeText(name)}</text>`,
    `<rect class="track" x="${BAR_LEFT}" y="${y + 2}" width="${BAR_WIDTH}" height="16" rx="2"/>`,
    ...cells(host, durationMs, y + 2),
    text("faint", WIDTH - TAIL_WIDTH + 10, y + 14, durationText(host.endsAtMs)),
    "</g>",
  ].join("");
}

/** One rectangle for each run of parts that are equally busy. */
function cells(host: HostPlan, spanMs: number, y: number): string[] {
  const levels = densityOf(host, spanMs, CELLS).map((density) => (density < 0 ? -1 : Math.ceil(density * 4 - 1e-9)));
  const parts: string[] = [];
  for (let from = 0; from < CELLS; ) {
    let to = from + 1;
    while (to < CELLS && levels[to] === levels[from]) to += 1;
    // The last part ends where the host does, not where the part does.
    const endsAt = Math.min((to * BAR_WIDTH) / CELLS, (host.endsAtMs / Math.max(spanMs, 0.001)) * BAR_WIDTH);
    const left = (from * BAR_WIDTH) / CELLS;
    if (levels[from] >= 0) {
      const width = Math.max(1, endsAt - left);
      const opacity = [0.12, 0.35, 0.55, 0.78, 1][levels[from]];
      parts.push(
        `<rect class="bar" x="${round(BAR_LEFT + left)}" y="${y}" width="${round(width)}" height="16" opacity="${opacity}"/>`,
      );
    }
    from = to;
  }
  return parts;
}

function axis({ durationMs }: Plan, bottom: number): string[] {
  return [0, 0.25, 0.5, 0.75, 1].flatMap((part) => {
    const x = round(BAR_LEFT + part * BAR_WIDTH);
    const label = part === 0 ? "0" : durationText(part * durationMs);
    return [
      `<line class="tick" x1="${x}" y1="${TOP - 8}" x2="${x}" y2="${bottom - 28}"/>`,
      `<text class="faint" text-anchor="middle" x="${x}" y="${TOP - 14}">${escapeText(label)}</text>`,
    ];
  });
}

function summary(host: HostPlan): string {
  return `${countText(host.requests)} requests, done in ${durationText(host.endsAtMs)}, waits for ${bindingText(host)}`;
}

function text(className: string, x: number, y: number, content: string): string {
  return `<text class="${className}" x="${x}" y="${y}">${escapeText(content)}</text>`;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
