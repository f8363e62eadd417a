// Moves units in three threads until stdin ends, then says what the sum is and what failed.
// node stopped.mjs <store>
import { Worker } from "node:worker_threads";

const store = process.argv[2];
const { threadCells } = await import(store);
const memory = new SharedArrayBuffer(131_072);
const keys = ["a", "b", "c", "d", "e"];
// So short that a stop would use it up, if it counted.
const patience = { busyMs: 400 };
const cells = threadCells(memory, patience);
await cells.change(keys, () => ({
  writes: keys.map((_, index) => ({ index, value: "100|", ttlUs: 3_600_000_000 })),
  answer: undefined,
}));

const failures = [];
const workers = [1, 2].map(() => {
  const worker = new Worker(new URL("move.mjs", import.meta.url), {
    workerData: { store, memory, keys, times: Number.POSITIVE_INFINITY, patience },
  });
  worker.on("error", (error) => failures.push(error.message));
  worker.postMessage("go");
  return worker;
});
const sumOf = () =>
  cells.change(keys, (values) => ({
    writes: [],
    answer: values.reduce((sum, value) => sum + Number(value.split("|")[0]), 0),
  }));

let isOver = false;
process.stdin.on("end", () => {
  isOver = true;
});
process.stdin.resume();
let sum = await sumOf();
while (!isOver && sum === 500) {
  sum = await sumOf();
  await new Promise((resolve) => setImmediate(resolve));
}
await Promise.all(workers.map((worker) => worker.terminate()));
console.log(JSON.stringify({ sum, failures }));
