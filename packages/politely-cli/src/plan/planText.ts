import { countText, durationText } from "../words.js";
import { densityOf } from "./density.js";
import type { HostPlan, Plan } from "./plan.js";
import { bindingText, endText, longPoleText, noteTexts } from "./planSentences.js";

/** How a plan is shown in a terminal. */
export interface PlanTextOptions {
  /** Columns that may be used, at least 40. */
  readonly columns: number;
  /** Whether blocks can be shown; else plain ASCII. */
  readonly isUnicode: boolean;
  /** How many hosts get a row. */
  readonly rows: number;
  /** When the plan begins, in milliseconds since 1970. */
  readonly wallMs: number;
  /** URLs that came twice. */
  readonly duplicates: number;
  readonly peakInFlight: number;
}

const BLOCKS = ["·", "░", "▒", "▓", "█"];
const LETTERS = [".", "-", "=", "+", "#"];
const LEAST_BAR = 10;

/** Writes a plan for people: when it ends, a picture of the slowest hosts, what holds them back, and what was assumed. Ends with a line break. */
export function planText(plan: Plan, options: PlanTextOptions): string {
  const lines = [endText(plan, options.wallMs), "", ...picture(plan, options), "", ...longPoleText(plan)];
  const notes = noteTexts(plan, options);
  return `${[...lines, "", ...notes].flatMap((line) => wrap(plain(line, options), options.columns)).join("\n")}\n`;
}

/** Whether a terminal with this environment shows more than ASCII. */
export function isUnicodeTerminal(env: Readonly<Record<string, string | undefined>>, platform: string): boolean {
  const locale = [env.LC_ALL, env.LC_CTYPE, env.LANG].find((value) => value !== undefined && value !== "");
  return locale === undefined ? platform === "win32" || platform === "darwin" : /utf-?8/i.test(locale);
}

/** The rows of the picture under a heading. Where the terminal is too narrow, limits are left out first, then counts. */
function picture(plan: Plan, options: PlanTextOptions): string[] {
  const shown = plan.hosts.slice(0, options.rows);
  const columns = Math.max(40, Math.min(options.columns, 200));
  const name = column(
    "",
    shown.map(({ key }) => key),
    Math.floor(columns * 0.3),
  );
  const end = column(
    "done in",
    shown.map(({ endsAtMs }) => durationText(endsAtMs)),
    columns,
  );
  const count = column(
    "requests",
    shown.map(({ requests }) => countText(requests)),
    columns,
  );
  const limit = column("waits for", shown.map(bindingText), Math.floor(columns * 0.3));
  const tails = [[end, count, limit], [end, count], [end]];
  const room = (tail: readonly Column[]): number =>
    tail.reduce((rest, { width }) => rest - width - 2, columns - name.width - 2);
  const tail = tails.find((some) => room(some) >= LEAST_BAR) ?? [end];
  const barWidth = Math.max(1, room(tail));
  const row = (index: number, drawn: string): string => {
    const cells = tail.map((each) => cell(each, index, options));
    return [cell(name, index, options), drawn.padEnd(barWidth), ...cells].join("  ").trimEnd();
  };
  const rows = shown.map((host, index) => row(index, bar(host, plan.durationMs, barWidth, options)));
  const more = plan.hosts.length - shown.length;
  if (more > 0) rows.push(`… and ${countText(more)} more, done by ${durationText(plan.hosts[shown.length].endsAtMs)}`);
  return [row(HEADING, ""), ...rows];
}

const HEADING = -1;

interface Column {
  readonly heading: string;
  readonly texts: readonly string[];
  readonly width: number;
}

function column(heading: string, texts: readonly string[], most: number): Column {
  const width = texts.reduce((widest, { length }) => Math.max(widest, length), heading.length);
  return { heading, texts, width: Math.min(width, most) };
}

/** One text of a column: words to the left, numbers and times to the right. */
function cell({ heading, texts, width }: Column, index: number, options: PlanTextOptions): string {
  const text = cut(index === HEADING ? heading : texts[index], width, options);
  return heading === "done in" || heading === "requests" ? text.padStart(width) : text.padEnd(width);
}

function bar(host: HostPlan, spanMs: number, width: number, { isUnicode }: PlanTextOptions): string {
  const marks = isUnicode ? BLOCKS : LETTERS;
  return densityOf(host, spanMs, width)
    .map((density) => (density < 0 ? " " : marks[Math.ceil(density * (marks.length - 1) - 1e-9)]))
    .join("");
}

/** The text in at most `width` columns. Names of hosts are ASCII, so characters are columns. */
function cut(text: string, width: number, { isUnicode }: PlanTextOptions): string {
  if (text.length <= width) return text;
  const mark = isUnicode ? "…" : "~";
  return `${text.slice(0, Math.max(0, width - 1))}${mark}`;
}

function plain(line: string, { isUnicode }: PlanTextOptions): string {
  return isUnicode ? line : line.replaceAll("…", "...");
}

/** Breaks a sentence between words. Rows of the picture, which have runs of blanks, stay whole. */
function wrap(line: string, columns: number): string[] {
  if (line.length <= columns || line.includes("  ")) return [line];
  const lines: string[] = [];
  let rest = "";
  for (const word of line.split(" ")) {
    if (rest !== "" && rest.length + word.length + 1 > columns) {
      lines.push(rest);
      rest = word;
    } else rest = rest === "" ? word : `${rest} ${word}`;
  }
  return [...lines, rest];
}
