// Counts up one cell so many times, with a few changes under way at once.
import { parentPort, workerData } from "node:worker_threads";

const { store, memory, key, times, patience } = workerData;
const { threadCells } = await import(store);
const cells = threadCells(memory, patience);

let left = times;
const atOnce = Array.from({ length: 4 }, async () => {
  while (left > 0) {
    left -= 1;
    await cells.change([key], ([old]) => ({
      writes: [{ index: 0, value: String(Number(old ?? 0) + 1), ttlUs: 3_600_000_000 }],
      answer: undefined,
    }));
  }
});
await Promise.all(atOnce);
parentPort.postMessage("done");
