import { Worker } from "node:worker_threads";
import type { ThreadPatience } from "../../../src/stores/threads.js";

/** A worker that was started, and what it says. */
export interface Started {
  /** Resolves when it has said `message`; rejects when it fails before. */
  says(message: string): Promise<void>;
  /** Tells it to begin. */
  go(): void;
  /** Ends it, wherever it is. */
  terminate(): Promise<unknown>;
}

/** Starts a program of this folder in a thread of its own. */
export function startWorker(
  program: string,
  data: { readonly patience: ThreadPatience } & Record<string, unknown>,
): Started {
  const worker = new Worker(new URL(program, import.meta.url), { workerData: data });
  const said = new Set<unknown>();
  let failure: unknown;
  const listeners = new Set<() => void>();
  const tell = (): void => {
    for (const listener of listeners) listener();
  };
  worker.on("message", (message) => {
    said.add(message);
    tell();
  });
  worker.on("error", (error) => {
    failure = error;
    tell();
  });
  return {
    says: (message) =>
      new Promise((resolve, reject) => {
        const listener = (): void => {
          if (said.has(message)) resolve();
          else if (failure !== undefined) reject(failure);
          else return;
          listeners.delete(listener);
        };
        listeners.add(listener);
        listener();
      }),
    go: () => worker.postMessage("go"),
    terminate: () => worker.terminate(),
  };
}
