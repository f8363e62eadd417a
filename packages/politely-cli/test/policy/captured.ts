import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { onTestFinished } from "vitest";
import type { Io } from "../../src/io.js";
import { type AddCommand, main } from "../../src/main.js";

/** What a command wrote, and what it ended with. */
export interface Ended {
  readonly code: 0 | 1 | 2;
  readonly stdout: string;
  readonly stderr: string;
}

/** Makes a folder with these files, which is gone after the test. */
export async function folderWith(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "politely-cli-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await Promise.all(Object.entries(files).map(([name, content]) => writeFile(join(folder, name), content)));
  return folder;
}

/** Runs a command line in a folder. */
export async function run(add: AddCommand, args: readonly string[], cwd: string): Promise<Ended> {
  const stdout = new Collector();
  const stderr = new Collector();
  const never = new AbortController().signal;
  const io: Io = {
    stdin: Readable.from([]),
    stdout,
    stderr,
    env: {},
    cwd,
    isTerminal: false,
    columns: 80,
    interrupted: never,
    stopped: never,
  };
  const code = await main(args, io, [add]);
  return { code, stdout: stdout.text, stderr: stderr.text };
}

class Collector extends Writable {
  text = "";

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}
