import type { HostProgress, HostWait } from "../get/observer.js";
import { countText, durationText } from "../words.js";
import { bytesText, percentText, rateText } from "./amounts.js";
import { barText } from "./bar.js";
import type { Look } from "./look.js";
import { fitText, padText, safeText, textWidth } from "./width.js";

/** All that a picture of a run shows, at one moment. */
export interface LiveSnapshot {
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly inFlight: number;
  readonly bytes: number;
  /** Starts of the whole run a second, now. */
  readonly startsPerSec: number;
  /** Time until everything is done; absent while nobody knows. */
  readonly leftMs?: number | undefined;
  readonly isStopping: boolean;
  /** Those to be shown, in this order. */
  readonly hosts: readonly LiveHost[];
  /** Hosts with something left that are not shown. */
  readonly moreHosts: number;
}

/** One host of the picture. */
export interface LiveHost extends HostProgress {
  readonly wait?: HostWait | undefined;
}

/** Rows of a picture besides those of the hosts: the line of those not shown, and the total. */
export const OTHER_ROWS = 2;

const BAR = { least: 8, most: 30 };
const NAME = { least: 8, most: 36 };
/** Room for the longest usual rate: `0.25/min`. It is not less, so that lines do not jump. */
const RATE_WIDTH = 8;
/** What stands behind a bar is worth this much room: `next in 12 s`. */
const NOTE_WIDTH = 14;
const GAP = "  ";

/**
 * The picture as lines, each at most `look.columns` wide: a bar for each host, how many more there are, and the total.
 *
 * In a narrow terminal the bar goes first, then the note, then the rate. What sites wrote is made harmless.
 */
export function liveLines(snapshot: LiveSnapshot, look: Look): string[] {
  const columns = columnsFor(snapshot, look.columns);
  const lines = snapshot.hosts.map((host) => hostLine(host, columns, look));
  if (snapshot.moreHosts > 0) {
    const text = `${look.glyphs.more} and ${countText(snapshot.moreHosts)} more hosts`;
    lines.push(look.paint.dim(fitText(text, look.columns, look.glyphs.more)));
  }
  lines.push(totalLine(snapshot, columns, look));
  return lines;
}

/** How wide each part is; 0 leaves it out. */
interface Columns {
  readonly name: number;
  readonly bar: number;
  readonly counts: number;
  readonly rate: number;
  readonly note: number;
}

function columnsFor({ hosts, total, done, startsPerSec }: LiveSnapshot, columns: number): Columns {
  const counts = Math.max(countsText({ total, done }).length, ...hosts.map((host) => countsText(host).length));
  const longest = Math.max(NAME.least, ...hosts.map(({ key }) => textWidth(safeText(key))));
  const name = Math.max(Math.min(longest, NAME.most, Math.floor(columns * 0.35)), 1);
  let room = columns - name - GAP.length - counts;
  const take = (width: number): number => {
    if (room < width + GAP.length) return 0;
    room -= width + GAP.length;
    return width;
  };
  const rates = [startsPerSec, ...hosts.map((host) => host.startsPerSec)].map((perSec) => rateText(perSec).length);
  const rate = take(Math.max(RATE_WIDTH, ...rates));
  const note = take(NOTE_WIDTH);
  const least = take(BAR.least);
  // What is still free goes to the bar up to a third of the line, then to the note.
  const more = least === 0 ? 0 : Math.max(0, Math.min(room, BAR.most - least, Math.floor(columns / 4) - least));
  return { name, bar: least + more, counts, rate, note: note === 0 ? 0 : note + room - more };
}

function hostLine(host: LiveHost, columns: Columns, look: Look): string {
  const { paint, glyphs } = look;
  const { text, tone } = noteOf(host);
  const note = fitText(safeText(text), columns.note, glyphs.more);
  return joinParts(host, columns, look, {
    title: safeText(host.key),
    paintTitle: (title) => title,
    rate: rateText(host.startsPerSec),
    note: tone === "plain" ? note : paint[tone](note),
  });
}

function totalLine(snapshot: LiveSnapshot, columns: Columns, look: Look): string {
  // The total has more to say than a host, and the most important first.
  const notes = totalNotes(snapshot).join(", ");
  return joinParts(snapshot, columns, look, {
    title: "total",
    paintTitle: (title) => look.paint.bold(title),
    rate: rateText(snapshot.startsPerSec),
    note: look.paint.bold(fitText(notes, columns.note, look.glyphs.more)),
  });
}

function totalNotes(snapshot: LiveSnapshot): string[] {
  const { total, done, failed, inFlight, bytes, leftMs, isStopping } = snapshot;
  const notes: string[] = [];
  if (isStopping) notes.push(`stopping: ${countText(inFlight)} still in flight`);
  else if (leftMs !== undefined && done < total) notes.push(`${durationText(leftMs)} left`);
  notes.push(percentText(done, total));
  if (failed > 0) notes.push(`${countText(failed)} failed`);
  if (!isStopping) notes.push(`${countText(inFlight)} in flight`);
  notes.push(bytesText(bytes));
  return notes;
}

interface Parts {
  readonly title: string;
  readonly paintTitle: (title: string) => string;
  readonly rate: string;
  /** Fits already. */
  readonly note: string;
}

function joinParts(
  progress: { readonly total: number; readonly done: number; readonly failed: number },
  columns: Columns,
  look: Look,
  { title, paintTitle, rate, note }: Parts,
): string {
  const counts = padText(countsText(progress), columns.counts, "right");
  if (columns.counts > look.columns) return fitText(counts.trim(), look.columns, look.glyphs.more);
  const isNamed = columns.name + GAP.length + columns.counts <= look.columns;
  const parts = [
    isNamed ? padText(paintTitle(fitText(title, columns.name, look.glyphs.more)), columns.name) : undefined,
    columns.bar > 0 ? barText(progress, columns.bar, look) : undefined,
    counts,
    columns.rate > 0 ? padText(rate, columns.rate, "right") : undefined,
    columns.note > 0 ? note : undefined,
  ];
  return parts.filter((part) => part !== undefined).join(GAP);
}

interface Note {
  readonly text: string;
  readonly tone: "plain" | "yellow" | "dim";
}

/** What a host waits for; else its limit, so that everybody sees what its rate is measured by. */
function noteOf({ key, wait, limit, done, total }: LiveHost): Note {
  if (done >= total) return { text: "done", tone: "dim" };
  if (wait !== undefined && wait.cooldownMs > 0) {
    const because = wait.because === undefined ? "" : `: ${wait.because}`;
    return { text: `cooldown ${durationText(wait.cooldownMs)}${because}`, tone: "yellow" };
  }
  if (wait !== undefined && (wait.nextStartMs > 0 || wait.reason !== undefined)) {
    const because = wait.reason === undefined ? "" : `: ${shortReason(wait.reason, key)}`;
    return { text: `next in ${durationText(wait.nextStartMs)}${because}`, tone: "plain" };
  }
  return { text: limit, tone: "dim" };
}

/** A sentence about a wait without what the line says already: whose it is, and how long. */
function shortReason(reason: string, key: string): string {
  const own = reason.startsWith(`${key}: `) ? reason.slice(key.length + 2) : reason;
  return own.replace(/, [\d.]+ (?:ms|s|min|h) to go$/, "");
}

function countsText({ total, done }: { readonly total: number; readonly done: number }): string {
  return `${countText(done)}/${countText(total)}`;
}
