// Asks from the main thread and from a worker.
import { once } from "node:events";
import { isMainThread, Worker, workerData } from "node:worker_threads";

const url = isMainThread ? process.argv[2] : workerData;
await (await fetch(url)).text();
if (isMainThread) await once(new Worker(new URL(import.meta.url), { workerData: url }), "exit");
