// Moves units between accounts once it is told to: so many times, or until the thread is ended. Says "moving" after the first.
import { once } from "node:events";
import { parentPort, workerData } from "node:worker_threads";

const { store, memory, keys, times, patience } = workerData;
const { threadCells } = await import(store);
const cells = threadCells(memory, patience);

const amount = (value) => Number(value.split("|")[0]);
const value = (units) => `${units}|${"x".repeat(Math.trunc(Math.random() * 600))}`;

const told = once(parentPort, "message");
parentPort.postMessage("ready");
await told;
for (let done = 0; done < times; done++) {
  const from = Math.trunc(Math.random() * keys.length);
  const to = (from + 1 + Math.trunc(Math.random() * (keys.length - 1))) % keys.length;
  await cells.change([keys[from], keys[to]], ([ours, theirs]) => ({
    writes: [
      { index: 0, value: value(amount(ours) - 1), ttlUs: 3_600_000_000 },
      { index: 1, value: value(amount(theirs) + 1), ttlUs: 3_600_000_000 },
    ],
    answer: undefined,
  }));
  if (done === 0) parentPort.postMessage("moving");
}
parentPort.postMessage("done");
