import type { Readable, Writable } from "node:stream";

/** Where a command reads and writes. Tests give their own. */
export interface Io {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Paths are relative to this. */
  readonly cwd: string;
  /** Somebody watches stderr: it may be drawn on. */
  readonly isTerminal: boolean;
  /** Columns of that terminal; 80 where there is none. */
  readonly columns: number;
  /** Aborted by the first Ctrl-C: finish what is in flight. */
  readonly interrupted: AbortSignal;
  /** Aborted by the second Ctrl-C: stop at once. */
  readonly stopped: AbortSignal;
}

/** What a command ends with: 0 fine, 1 the work failed or a violation was found. Wrong usage is a `UsageError`, and 2. */
export type ExitCode = 0 | 1;
