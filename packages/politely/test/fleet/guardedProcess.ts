import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";

const stoppedWithinMs = 5_000;
/** What `setpriv` ends with when there is no such program. */
const notFoundCode = 127;

/** How a process ended. */
export interface Ending {
  /** Null when a signal ended it, or it never began. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The program does not exist, or `setpriv`, which is to guard it, does not. */
  readonly isMissing: boolean;
}

/** A process that ends with `end`, and at the latest with the one that started it. */
export interface GuardedProcess {
  readonly child: ChildProcess;
  /** 0 when it never began. */
  readonly pid: number;
  /** Undefined while it runs. */
  readonly ending: Ending | undefined;
  /** Resolves when it is gone. Never rejects. */
  readonly ended: Promise<Ending>;
  /** Asks it to end, kills it 5 s later if it has not, and resolves when it is gone. Any number of calls is fine. */
  end(): Promise<void>;
  /** Kills it, a paused one too, and resolves when it is gone. */
  kill(): Promise<void>;
}

const atExitActions = new Set<() => void>();

/** Runs `action` when this process exits by itself, unless the function returned is called before. One listener serves all. */
export function atExit(action: () => void): () => void {
  if (atExitActions.size === 0) process.on("exit", runAtExit);
  atExitActions.add(action);
  return () => {
    atExitActions.delete(action);
    if (atExitActions.size === 0) process.off("exit", runAtExit);
  };
}

function runAtExit(): void {
  for (const action of atExitActions) action();
}

/**
 * Starts `program`. It does not keep this process alive.
 *
 * On Linux the kernel kills it when the thread that started it dies, however that happens, even while it is paused.
 * Elsewhere that is only so when this process exits by itself.
 */
export function guardedProcess(program: string, args: readonly string[], options: SpawnOptions): GuardedProcess {
  const [command, commandArgs] =
    process.platform === "linux" ? ["setpriv", ["--pdeathsig", "KILL", program, ...args]] : [program, [...args]];
  const child = spawn(command, commandArgs, options);
  child.unref();
  let ending: Ending | undefined;
  const forget = atExit(() => child.kill("SIGKILL"));
  const ended = new Promise<Ending>((resolve) => {
    const settle = (end: Ending): void => {
      ending ??= end;
      forget();
      resolve(ending);
    };
    child.once("exit", (code, signal) => settle({ code, signal, isMissing: code === notFoundCode }));
    child.on("error", () => {
      // A signal that could not be sent is an error too, but no end.
      if (child.pid === undefined) settle({ code: null, signal: null, isMissing: true });
    });
  });

  const endBy = async (signal: "SIGTERM" | "SIGKILL"): Promise<void> => {
    if (ending !== undefined) return;
    child.ref();
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), stoppedWithinMs);
    await ended;
    clearTimeout(timer);
  };
  return {
    child,
    pid: child.pid ?? 0,
    get ending() {
      return ending;
    },
    ended,
    end: () => endBy("SIGTERM"),
    kill: () => endBy("SIGKILL"),
  };
}
