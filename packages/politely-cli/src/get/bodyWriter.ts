import { createHash } from "node:crypto";
import { closeSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { makeFolder } from "./makeFolder.js";

/** Bodies to be written, one behind the other: a message between threads has a price for each thing in it. */
export interface BodyBatch {
  /** Where each body goes. Folders on the way there are made. */
  readonly paths: readonly string[];
  /** How long each body is. */
  readonly lengths: readonly number[];
  /** The bodies, and maybe some room behind them. */
  readonly bytes: Uint8Array;
}

/** What became of a batch. The memory it came in goes back, to be used again. */
export interface BatchAnswer {
  /** For each body its SHA-256 in hexadecimal, or why it could not be written. */
  readonly results: readonly (string | WriteProblem)[];
  readonly bytes: Uint8Array;
}

/** The parts of a system error that survive the way between threads. */
export interface WriteProblem {
  readonly message: string;
  readonly code?: string;
  readonly syscall?: string;
}

/** Writes bodies. Answers for each with its SHA-256 in hexadecimal, or why it could not be written. Never throws. */
export function writeBodies({ paths, lengths, bytes }: BodyBatch): (string | WriteProblem)[] {
  let at = 0;
  return paths.map((path, index) => {
    const body = bytes.subarray(at, at + lengths[index]);
    at += lengths[index];
    return writeBody(path, body);
  });
}

/** Writes a body whole or not at all: under another name beside its place, and then renames it. */
function writeBody(path: string, body: Uint8Array): string | WriteProblem {
  const temporary = `${path}~part`;
  try {
    const file = openIn(temporary);
    try {
      for (let written = 0; written < body.length; ) written += writeSync(file, body, written);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
    return createHash("sha256").update(body).digest("hex");
  } catch (error) {
    rmSync(temporary, { force: true });
    const { message, code, syscall } = error as NodeJS.ErrnoException;
    return { message, ...(code === undefined ? {} : { code }), ...(syscall === undefined ? {} : { syscall }) };
  }
}

/** Opens a new file, and makes its folder if that is missing. */
function openIn(path: string): number {
  try {
    return openSync(path, "w");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    makeFolder(dirname(path));
    return openSync(path, "w");
  }
}
