import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** How an invocation ended. `error` is what the handler threw; then there is no status. */
export interface Answer {
  readonly requestId: string;
  readonly statusCode?: number;
  readonly body?: { readonly heldBy?: string; readonly remainingMs?: number; readonly [name: string]: unknown };
  readonly error?: string;
}

/** A line that the handler wrote: metrics, or what the limiter did. */
export interface LogLine {
  readonly type?: string;
  readonly startedAtMs?: number;
  readonly [name: string]: unknown;
}

/** A process that runs the handler, as Lambda does. */
export interface Machine {
  /** What the handler wrote so far. */
  readonly log: readonly LogLine[];
  /** Invokes the handler, which is told that it has `timeoutMs` (default 5 min). Rejects when the process ends before it answers. */
  invoke(trigger: "schedule" | "manual", requestId: string, timeoutMs?: number): Promise<Answer>;
  /** Sends a signal: `"SIGKILL"` ends it in the middle of things, `"SIGSTOP"` freezes it. */
  kill(signal: NodeJS.Signals): void;
  /** Kills it, a frozen one too, and resolves when it is gone. */
  end(): Promise<void>;
}

/** What to start. */
export interface MachineOptions {
  /** The compiled `machine.js`. */
  readonly program: string;
  /** The handler to load instead of the one beside the program: a bundle, say. */
  readonly handler?: string;
  /** The environment of the function. Nothing of this process's own but PATH is in it. */
  readonly env: Readonly<Record<string, string>>;
}

/** Starts a machine. Resolves when the handler is loaded; rejects with what it wrote to standard error when that fails. */
export async function startMachine({ program, handler, env }: MachineOptions): Promise<Machine> {
  const args = handler === undefined ? [program] : [program, handler];
  const child = spawn(process.execPath, args, { env: { PATH: process.env.PATH, ...env }, stdio: "pipe" });
  const ended = once(child, "exit");
  const log: LogLine[] = [];
  const waiting = new Map<string, { resolve(answer: Answer): void; reject(error: Error): void }>();
  let complaint = "";
  child.stdin.on("error", () => undefined);
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint = (complaint + text).slice(-10_000);
  });

  const settle = (answer: Answer): void => {
    waiting.get(answer.requestId)?.resolve(answer);
    waiting.delete(answer.requestId);
  };

  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (text) => {
      const line = JSON.parse(text) as LogLine;
      if (line.type === "ready") resolve();
      else if (line.type !== "answer") log.push(line);
      else settle(line as unknown as Answer);
    });
    child.once("close", () => {
      const error = new Error(`The machine ended. ${complaint}`);
      reject(error);
      for (const each of waiting.values()) each.reject(error);
    });
  });

  return {
    log,
    invoke(trigger, requestId, timeoutMs = 300_000) {
      const answered = new Promise<Answer>((resolve, reject) => waiting.set(requestId, { resolve, reject }));
      // Whoever ends the machine need not wait for what it was at.
      answered.catch(() => undefined);
      child.stdin.write(`${JSON.stringify({ trigger, requestId, timeoutMs })}\n`);
      return answered;
    },
    kill: (signal) => void child.kill(signal),
    async end() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
