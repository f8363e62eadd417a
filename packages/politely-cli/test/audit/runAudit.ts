import { Readable, Writable } from "node:stream";
import { addAudit } from "../../src/commands/audit.js";
import { main } from "../../src/main.js";
import { type Ended, folderWith } from "../policy/captured.js";

/** What a run is given beside its arguments. */
export interface Setup {
  /** Files of the folder it runs in. `p.json` is the policy of all runs that say no other. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly stdin?: readonly string[];
  /** A folder that exists already. Default: a new one. */
  readonly cwd?: string;
}

/** Runs `politely audit` with these arguments. */
export async function runAudit(args: readonly string[], { files = {}, stdin = [], cwd }: Setup = {}): Promise<Ended> {
  const folder = cwd ?? (await folderWith(files));
  const stdout = new Collector();
  const stderr = new Collector();
  const never = new AbortController().signal;
  const io = {
    stdin: Readable.from(stdin.map((text) => Buffer.from(text))),
    stdout,
    stderr,
    env: {},
    cwd: folder,
    isTerminal: false,
    columns: 80,
    interrupted: never,
    stopped: never,
  };
  const code = await main(["audit", ...args], io, [addAudit]);
  return { code, stdout: stdout.text, stderr: stderr.text };
}

/** A policy file with these default limits. */
export function policyFile(limits: object): string {
  return JSON.stringify({ default: limits });
}

class Collector extends Writable {
  text = "";

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}
