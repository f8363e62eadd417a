import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Readable } from "node:stream";
import type { TraceAudit } from "politely/testing";
import { UsageError, WorkError } from "../errors.js";
import { type Io, untilInterrupted } from "../io.js";
import { whyNot } from "../policy/readText.js";
import { accessLineReader, isAccessLine } from "./accessLine.js";
import { isHar, readHar, readHarEntry } from "./harFile.js";
import { isIndexLine, readJsonLine } from "./jsonLine.js";
import type { LogFormat } from "./logFormat.js";
import { type LogLine, logLines, maxLineLength } from "./logLines.js";
import type { FoundRequest, Reading } from "./reading.js";

/** How logs are read. */
export interface ReadOptions {
  /** Default: whichever the content looks like. */
  readonly format?: LogFormat | undefined;
  /** The site whose access log it is. */
  readonly host?: string | undefined;
  /** Only lines, or HAR requests, that contain this text. */
  readonly only?: string | undefined;
}

/** What became of a log's lines. */
export interface LogTally {
  /** As given; `-` is stdin. */
  readonly path: string;
  format: LogFormat | undefined;
  /** Lines, blank ones left out, or entries of a HAR file. */
  lines: number;
  /** Requests that were found in them. */
  requests: number;
  /** Lines of something that was never sent. */
  skipped: number;
  /** Lines without the text of `--only`. */
  others: number;
  /** Lines, or entries, of which something could not be read. */
  broken: number;
  /** The first few that could not be read. */
  readonly brokenLines: { readonly line: number; readonly problem: string }[];
}

const maxBrokenNamed = 5;
const maxLinesToDetect = 20;
/** How a gzip file begins, read as text. */
const PACKED = "\u001f\ufffd";

/**
 * Adds every request of a log to an audit. Lines that cannot be read are counted.
 *
 * Throws a `UsageError` for a file that cannot be opened, a `WorkError` where reading fails or is interrupted, or the format cannot be told.
 */
export async function readLog(path: string, io: Io, audit: TraceAudit, options: ReadOptions): Promise<LogTally> {
  const tally: LogTally = {
    path,
    format: options.format,
    lines: 0,
    requests: 0,
    skipped: 0,
    others: 0,
    broken: 0,
    brokenLines: [],
  };
  const reader = new LogReader(tally, audit, options);
  const stream = path === "-" ? io.stdin : await openFile(path, io.cwd);
  try {
    for await (const lines of logLines(untilInterrupted(stream, io.interrupted))) {
      for (const line of lines) reader.take(line);
    }
  } catch (error) {
    if (io.interrupted.aborted) {
      throw new WorkError(`interrupted while ${nameOf(path)} was read; nothing was judged.`);
    }
    if (error instanceof WorkError || error instanceof UsageError) throw error;
    throw new WorkError(`${nameOf(path)} could not be read to its end: ${whyNot(error)}`);
  }
  reader.finish();
  return tally;
}

/** How a log is called in messages. */
export function nameOf(path: string): string {
  return path === "-" ? "stdin" : path;
}

class LogReader {
  readonly #tally: LogTally;
  readonly #audit: TraceAudit;
  readonly #options: ReadOptions;
  readonly #source: string;
  /** Lines that wait for the format to be known, or for the rest of a HAR file. */
  #held: LogLine[] = [];
  #heldLength = 0;
  #read: ((text: string) => Reading) | undefined;

  constructor(tally: LogTally, audit: TraceAudit, options: ReadOptions) {
    this.#tally = tally;
    this.#audit = audit;
    this.#options = options;
    this.#source = nameOf(tally.path);
    if (options.format !== undefined) this.#begin(options.format);
  }

  take(line: LogLine): void {
    if (line.text.trim() === "") return;
    if (this.#read !== undefined) {
      this.#takeLine(line);
      return;
    }
    this.#held.push(line);
    this.#heldLength += line.text.length;
    if (this.#heldLength > maxLineLength) {
      throw new WorkError(`${this.#source} is larger than ${maxLineLength} characters; divide the HAR file`);
    }
    if (this.#tally.format === "har") return;
    const format = formatOf(line.text);
    if (format !== undefined) this.#begin(format);
    else if (this.#held.length >= maxLinesToDetect) this.#begin(this.#guess());
  }

  finish(): void {
    if (this.#held.length === 0) return;
    if (this.#tally.format === undefined) this.#begin(this.#guess());
    if (this.#tally.format !== "har") return;
    const text = this.#held.map((line) => line.text).join("\n");
    this.#held = [];
    for (const [index, entry] of readHar(text, this.#source).entries()) {
      this.#tally.lines += 1;
      if (this.#isOther(() => JSON.stringify(entry))) continue;
      this.#add(readHarEntry(entry), index + 1);
    }
  }

  #begin(format: LogFormat): void {
    this.#tally.format = format;
    if (format === "har") return;
    this.#read = format === "access" ? accessLineReader(this.#options.host) : readJsonLine;
    const held = this.#held;
    this.#held = [];
    for (const line of held) this.#takeLine(line);
  }

  /** No line says by itself what this is: JSON over several lines is a HAR file, if anything. */
  #guess(): LogFormat {
    if (this.#held[0].text.trimStart().startsWith("{")) return "har";
    if (this.#held[0].text.startsWith(PACKED)) {
      throw new WorkError(`${this.#source} is compressed; unpack it first: zcat ${this.#source} | politely audit -`);
    }
    const start = JSON.stringify(this.#held[0].text.slice(0, 60));
    throw new WorkError(
      `${this.#source} is neither an index, JSON Lines, HAR nor an access log in the combined format; line ${this.#held[0].number} begins ${start}. Say which with --format`,
    );
  }

  #takeLine({ number, text }: LogLine): void {
    this.#tally.lines += 1;
    if (this.#isOther(() => text)) return;
    if (this.#read !== undefined) this.#add(this.#read(text), number);
  }

  #isOther(text: () => string): boolean {
    const { only } = this.#options;
    if (only === undefined || text().includes(only)) return false;
    this.#tally.others += 1;
    return true;
  }

  #add(reading: Reading, line: number): void {
    if (reading.kind === "skipped") this.#tally.skipped += 1;
    else if (reading.kind === "broken") this.#break(line, reading.problem);
    else {
      const problems = reading.entries.map((entry) => this.#addRequest(entry, line));
      // A line counts once, however many of its requests are wrong.
      const problem = problems.find((one) => one !== undefined) ?? reading.problem;
      if (problem !== undefined) this.#break(line, problem);
    }
  }

  /** Adds a request to the audit, or returns what is wrong with it. */
  #addRequest(entry: FoundRequest, line: number): string | undefined {
    try {
      // Not a copy: it would take as long as all the rest.
      entry.line = line;
      entry.source = this.#source;
      this.#audit.add(entry);
      this.#tally.requests += 1;
      return undefined;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error instanceof RangeError ? new WorkError(error.message) : error;
      return error.message;
    }
  }

  #break(line: number, problem: string): void {
    this.#tally.broken += 1;
    if (this.#tally.brokenLines.length < maxBrokenNamed) this.#tally.brokenLines.push({ line, problem });
  }
}

function formatOf(text: string): LogFormat | undefined {
  if (isAccessLine(text)) return "access";
  if (!text.trimStart().startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (isHar(value)) return "har";
    return isIndexLine(value) ? "index" : "jsonl";
  } catch {
    return undefined;
  }
}

/** Opens a log. A folder that `politely get` wrote stands for the index in it. */
async function openFile(path: string, cwd: string): Promise<Readable> {
  const full = resolve(cwd, path);
  const isFolder = await isDirectory(full, path);
  const file = isFolder ? join(full, "index.jsonl") : full;
  if (isFolder && (await stat(file).catch(() => undefined)) === undefined) {
    throw new UsageError(`${path} is a directory without an index.jsonl; name the log`);
  }
  return createReadStream(file, { highWaterMark: 1 << 18 });
}

async function isDirectory(full: string, path: string): Promise<boolean> {
  try {
    return (await stat(full)).isDirectory();
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${whyNot(error)}`);
  }
}
