import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { Readable } from "node:stream";
import { UsageError, WorkError } from "../errors.js";
import { type Io, untilInterrupted } from "../io.js";
import { LineError, readLines } from "./lines.js";
import { beginsWithHost, parseUrl } from "./parseUrl.js";

/** One URL somebody wants, and where it was written. */
export interface ListedUrl {
  /** Absolute, http or https, without a fragment, in the form `new URL` gives it. */
  readonly url: string;
  /** The file's name as it was given, `"stdin"`, or `"argument"`. */
  readonly source: string;
  /** Counted from 1: the line of the file, or which argument it was. */
  readonly line: number;
}

/** Where lists are read. */
export type ListIo = Pick<Io, "stdin" | "cwd"> & Partial<Pick<Io, "interrupted">>;

/** Endings of names that a list may have and a host hardly ever. */
const LIST_NAME = /\.(txt|csv|tsv|lst|list|urls|json|jsonl|md|log)$/i;

/**
 * Reads URLs from arguments: an existing file is a list, one URL a line, `-` is stdin, anything else is a URL itself.
 *
 * Blank lines and lines that begin with `#` are skipped; `example.com/x` means `https://example.com/x`. A URL that is written twice
 * comes twice. It streams: a list of any length takes the memory of one piece of it. Throws `UsageError` with file and line for
 * what is no URL or not UTF-8, for a missing file, one that cannot be read and an empty argument; `WorkError` when `interrupted` is aborted while a file or stdin is read.
 */
export async function* readUrls(args: readonly string[], io: ListIo): AsyncIterable<ListedUrl> {
  // Before stdin is waited for. A shell makes an empty argument of a variable that is not set.
  if (args.includes("")) {
    throw new UsageError("an argument is empty. Give a URL, a file with one URL a line, or - for stdin.");
  }
  for (const [index, arg] of args.entries()) {
    if (arg === "-") {
      yield* readList("stdin", io.stdin, io);
      continue;
    }
    const path = resolve(io.cwd, arg);
    const kind = await kindOf(path);
    if (kind === "folder") throw new UsageError(`${arg} is a folder. Give a file with one URL a line, or a URL.`);
    if (kind === "file") yield* readList(arg, createReadStream(path), io);
    else yield { url: urlOfArgument(arg), source: "argument", line: index + 1 };
  }
}

async function* readList(source: string, stream: Readable, { interrupted }: ListIo): AsyncIterable<ListedUrl> {
  let line = 0;
  try {
    for await (const lines of readLines(untilInterrupted(stream, interrupted))) {
      for (const text of lines) {
        line += 1;
        const trimmed = text.trim();
        if (trimmed === "" || trimmed.startsWith("#")) continue;
        yield { url: parseUrl(trimmed, `${source}:${line}: `), source, line };
      }
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    if (error instanceof LineError) throw new UsageError(`${source}:${line + 1}: ${error.message}`);
    if (interrupted?.aborted === true) {
      throw new WorkError(`interrupted while ${source} was read, after line ${line}; nothing was begun.`);
    }
    const problem = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${source} could not be read after line ${line}: ${problem}`);
  }
}

function urlOfArgument(arg: string): string {
  if (looksLikePath(arg)) {
    throw new UsageError(`${arg}: no such file. A URL begins with https:// or http://; a list has one URL a line.`);
  }
  return parseUrl(arg, "");
}

/** Whether somebody who wrote this more likely meant a file. */
function looksLikePath(arg: string): boolean {
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(arg)) return false;
  if (/^[./~\\]/.test(arg) || /^[a-z]:[\\/]/i.test(arg)) return true;
  return !beginsWithHost(arg) || (LIST_NAME.test(arg) && !arg.includes("?") && !arg.includes("/"));
}

async function kindOf(path: string): Promise<"file" | "folder" | "none"> {
  try {
    return (await stat(path)).isDirectory() ? "folder" : "file";
  } catch {
    return "none";
  }
}
