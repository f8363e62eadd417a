import { Worker } from "node:worker_threads";
import type { FleetEntry } from "../fleetMember.js";
import { until } from "../until.js";

const maxEntries = 100_000;
const readyWithinMs = 20_000;

/** Threads of this process that share a memory. What they log comes together here, as that of a fleet of processes does. */
export class ThreadFleet {
  readonly entries: FleetEntry[] = [];
  readonly #threads = new Map<string, Worker>();
  readonly #ready = new Set<string>();
  readonly #problems: string[] = [];

  constructor(
    readonly libraryUrl: string,
    readonly memory: SharedArrayBuffer,
    readonly input: Readonly<Record<string, unknown>>,
  ) {}

  /** Those that were neither terminated nor have ended. */
  get ids(): string[] {
    return [...this.#threads.keys()];
  }

  /** Starts a thread, and lets it begin once it is ready. */
  async add(id: string): Promise<void> {
    const { libraryUrl, memory, input } = this;
    const thread = new Worker(new URL("thread.mjs", import.meta.url), {
      workerData: { id, input, libraryUrl, memory },
      // The runner's own options are not the thread's.
      execArgv: [],
    });
    this.#threads.set(id, thread);
    thread.on("message", (entry: FleetEntry) => {
      if (entry.type === "ready") this.#ready.add(id);
      else if (this.entries.length < maxEntries) this.entries.push({ ...entry, member: id });
    });
    thread.on("error", (error) => this.#problems.push(`Thread ${id} failed: ${String(error)}`));
    thread.on("exit", () => this.#threads.delete(id));
    await until(`thread ${id} is ready`, readyWithinMs, () => this.#ready.has(id) || !this.#threads.has(id));
    thread.postMessage({ command: "go" });
  }

  /** Ends a thread in the middle of whatever it does. */
  async terminate(id: string): Promise<void> {
    await this.#threads.get(id)?.terminate();
  }

  /** Tells all to stop, and resolves with the log, by time, once they have. Rejects with what went wrong with any of them. */
  async finish(withinMs: number): Promise<FleetEntry[]> {
    for (const thread of this.#threads.values()) thread.postMessage({ command: "stop" });
    await until("every thread has ended after stop", withinMs, () => this.#threads.size === 0);
    if (this.#problems.length > 0) throw new Error(this.#problems.join("\n"));
    return this.entries.toSorted((a, b) => a.machineUs - b.machineUs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.ids.map((id) => this.terminate(id)));
  }
}
