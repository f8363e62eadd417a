import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import type { GetOptions } from "../../src/get/getOptions.js";
import type { IndexLine } from "../../src/get/indexLine.js";
import { type GetObserver, type GetSummary, silentObserver } from "../../src/get/observer.js";
import { runGet } from "../../src/get/runGet.js";
import type { Io } from "../../src/io.js";

/** A folder of its own, gone after the test. */
export class Place implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "politely-get-"));

  file(name: string, text: string): string {
    const path = join(this.path, name);
    writeFileSync(path, text);
    return path;
  }

  read(name: string): string {
    return readFileSync(join(this.path, name), "utf8");
  }

  index(folder = "out"): IndexLine[] {
    const lines = this.read(`${folder}/index.jsonl`).split("\n");
    // What stands behind the last line end was not written to its end.
    return lines.slice(0, -1).map((line) => JSON.parse(line) as IndexLine);
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** What a run in this process came to. */
export interface Ran {
  readonly summary: GetSummary | undefined;
  /** What it threw; undefined when everything was fetched. */
  readonly error: Error | undefined;
  readonly stdout: string;
  readonly lines: readonly string[];
}

/** How a run in this process goes. */
export interface RunOptions extends Partial<GetOptions> {
  readonly stdin?: string;
  readonly interrupted?: AbortSignal;
  readonly stopped?: AbortSignal;
  readonly observer?: Partial<GetObserver>;
}

/** Runs `get` in this process, into `out` of the place. */
export async function run(place: Place, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { stdin = "", interrupted, stopped, observer, ...rest } = options;
  const stdout = new PassThrough();
  const lines: string[] = [];
  let summary: GetSummary | undefined;
  const never = new AbortController().signal;
  const io: Io = {
    stdin: Readable.from([stdin]),
    stdout,
    stderr: new PassThrough(),
    env: {},
    cwd: place.path,
    isTerminal: false,
    columns: 80,
    interrupted: interrupted ?? never,
    stopped: stopped ?? never,
  };
  const watching: GetObserver = {
    ...silentObserver,
    ...observer,
    log: (line) => lines.push(line),
    end: (ended) => {
      summary = ended;
    },
  };
  let text = "";
  stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  let error: Error | undefined;
  try {
    await runGet({ args, policy: {}, out: "out", isRobots: false, ...rest }, io, watching);
  } catch (caught) {
    error = caught as Error;
  }
  return { summary, error, stdout: text, lines };
}
