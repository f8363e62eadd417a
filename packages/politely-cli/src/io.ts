import { addAbortSignal, type Readable, type Writable } from "node:stream";

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
  /** Aborted by the first Ctrl-C or SIGTERM, and when nobody reads stdout any more: finish what is in flight. */
  readonly interrupted: AbortSignal;
  /** Aborted by the second Ctrl-C or SIGTERM: stop at once. Five seconds later the process ends, whatever is left. */
  readonly stopped: AbortSignal;
}

/** What a command ends with: 0 fine, 1 the work failed or a violation was found. Wrong usage is a `UsageError`, and 2. */
export type ExitCode = 0 | 1;

/**
 * The same stream, which ends with an `AbortError` when `interrupted` is aborted: one that has no end, such as stdin, would keep the
 * process otherwise. It is destroyed then.
 */
export function untilInterrupted(stream: Readable, interrupted: AbortSignal | undefined): Readable {
  return interrupted === undefined ? stream : addAbortSignal(interrupted, stream);
}
