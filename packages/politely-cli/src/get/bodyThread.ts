// The thread that writes small bodies. It gets some at a time, and answers with what became of them.
import { parentPort } from "node:worker_threads";
import { type BatchAnswer, type BodyBatch, writeBodies } from "./bodyWriter.js";

parentPort?.on("message", (batch: BodyBatch) => {
  const answer: BatchAnswer = { results: writeBodies(batch), bytes: batch.bytes };
  parentPort?.postMessage(answer, [batch.bytes.buffer as ArrayBuffer]);
});
