import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { type BatchAnswer, type BodyBatch, type WriteProblem, writeBodies } from "./bodyWriter.js";

/** One keeps up with a disk as well as two do, and each takes 5 MB. */
const THREADS = 1;
/** So many bodies go together at most: what they hold is in memory twice for a moment. */
const MAX_TOGETHER = 100;
const LEAST_MEMORY = 262_144;
/** They hold next to nothing. */
const THREAD_LIMITS = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 32 };

/** A body that waits for a thread. Its pieces are bytes of somebody else, and copied when it goes. */
interface Job {
  readonly path: string;
  readonly pieces: readonly Uint8Array[];
  readonly length: number;
  readonly resolve: (sha256: string) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Writes small bodies on threads of their own, those that arrive while a thread is busy together. Creating a file may take long, and
 * asking `node:fs` for it costs four trips to its threads for each body.
 *
 * Where there is no compiled program to start a thread with, as in tests, it writes them itself.
 */
export class BodyThreads {
  readonly #threads: Worker[] = [];
  /** Those with nothing to do. */
  readonly #idle: Worker[] = [];
  readonly #sent = new Map<Worker, readonly Job[]>();
  /** Pieces of memory that came back. */
  readonly #memory: Uint8Array[] = [];
  #jobs: Job[] = [];
  #isSending = false;
  #failure: Error | undefined = undefined;

  constructor() {
    const program = new URL("./bodyThread.js", import.meta.url);
    if (!existsSync(fileURLToPath(program))) return;
    for (let index = 0; index < THREADS; index++) {
      const thread = new Worker(program, { resourceLimits: THREAD_LIMITS });
      thread.on("message", ({ results, bytes }: BatchAnswer) => {
        const jobs = this.#sent.get(thread) ?? [];
        this.#sent.delete(thread);
        this.#idle.push(thread);
        this.#memory.push(bytes);
        settle(jobs, results);
        this.#sendSoon();
      });
      thread.on("error", (error) => this.#break(error instanceof Error ? error : new Error(String(error))));
      this.#threads.push(thread);
      this.#idle.push(thread);
    }
  }

  /** Writes a body, and resolves to its SHA-256 in hexadecimal. Rejects with what the file system says. */
  write(path: string, pieces: readonly Uint8Array[], length: number): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) {
        reject(this.#failure);
        return;
      }
      this.#jobs.push({ path, pieces, length, resolve, reject });
      this.#sendSoon();
    });
  }

  /** Ends the threads. What is not written by now may stay so. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }

  #sendSoon(): void {
    const isFree = this.#threads.length === 0 || this.#idle.length > 0;
    if (this.#isSending || this.#jobs.length === 0 || !isFree) return;
    this.#isSending = true;
    setImmediate(() => {
      this.#isSending = false;
      this.#send();
      this.#sendSoon();
    });
  }

  #send(): void {
    const jobs = this.#jobs.splice(0, MAX_TOGETHER);
    const thread = this.#idle.pop();
    const batch = batchOf(jobs, this.#memory.pop());
    if (thread === undefined) {
      settle(jobs, writeBodies(batch));
      return;
    }
    this.#sent.set(thread, jobs);
    thread.postMessage(batch, [batch.bytes.buffer as ArrayBuffer]);
  }

  /** A thread has ended that should not: nothing can be written any more. */
  #break(error: Error): void {
    this.#failure = error;
    for (const { reject } of [...this.#jobs, ...[...this.#sent.values()].flat()]) reject(error);
    this.#jobs = [];
    this.#sent.clear();
  }
}

function batchOf(jobs: readonly Job[], memory: Uint8Array | undefined): BodyBatch {
  const length = jobs.reduce((sum, job) => sum + job.length, 0);
  const bytes =
    memory !== undefined && memory.length >= length ? memory : new Uint8Array(Math.max(length, LEAST_MEMORY));
  let at = 0;
  for (const { pieces } of jobs) {
    for (const piece of pieces) {
      bytes.set(piece, at);
      at += piece.length;
    }
  }
  return { paths: jobs.map(({ path }) => path), lengths: jobs.map(({ length }) => length), bytes };
}

function settle(jobs: readonly Job[], answers: readonly (string | WriteProblem)[]): void {
  for (const [index, { resolve, reject }] of jobs.entries()) {
    const answer = answers[index];
    if (typeof answer === "string") resolve(answer);
    else reject(Object.assign(new Error(answer.message), answer));
  }
}
