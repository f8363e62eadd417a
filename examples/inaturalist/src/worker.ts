import { parentPort, workerData } from "node:worker_threads";
import { type PolicyInput, politely } from "politely";
import { threadStore } from "politely/threads";
import { INaturalistClient } from "./client.js";
import { sendTo } from "./standIn.js";

/** What a worker is given. */
export interface WorkerTask {
  readonly memory: SharedArrayBuffer;
  readonly policy: PolicyInput;
  readonly token: string | undefined;
  /** Where requests go; undefined: to the API itself. */
  readonly baseUrl: string | undefined;
  readonly ids: readonly number[];
}

/** What a worker tells. */
export type WorkerNews =
  | { readonly kind: "done"; readonly id: number; readonly callsRemaining: number | undefined }
  | { readonly kind: "failed"; readonly id: number; readonly message: string }
  | { readonly kind: "cooldown"; readonly holdMs: number; readonly because: string };

const { memory, policy, token, baseUrl, ids } = workerData as WorkerTask;
const tell = (news: WorkerNews): void => parentPort?.postMessage(news);

// All threads make a store of the same memory: so they have one window together.
const fetch = baseUrl === undefined ? undefined : sendTo(baseUrl);
const polite = politely(policy, { store: threadStore(memory), fetch });
polite.subscribe((event) => {
  if (event.type === "cooldown") tell({ kind: "cooldown", holdMs: event.untilMs - event.atMs, because: event.because });
});

const stop = new AbortController();
parentPort?.once("message", () => stop.abort());
const client = new INaturalistClient(polite, token);
for (const id of ids) {
  try {
    await client.getObservation(id, stop.signal);
    tell({ kind: "done", id, callsRemaining: (await client.getStats())?.callsRemaining });
  } catch (error) {
    if (stop.signal.aborted) break;
    tell({ kind: "failed", id, message: whyOf(error) });
  }
}
await polite.close();
parentPort?.close(); // the thread ends when it has nothing more to hear

/** What went wrong; fetch tells its reason as the cause. */
function whyOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}
