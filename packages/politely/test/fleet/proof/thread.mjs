// A thread of a proof: what worker.mjs is for a process. It is started with its input and the memory that all threads share.
import { parentPort, workerData } from "node:worker_threads";
import { machineUs } from "../member.mjs";
import { work } from "./work.mjs";

const { id, input, libraryUrl, memory } = workerData;
const stop = new AbortController();
/** @type {Map<string, (data: unknown) => void>} */
const acts = new Map([["stop", () => stop.abort()]]);
parentPort?.on("message", ({ command, data }) => acts.get(command)?.(data));

/** @param {object} entry */
const log = (entry) => parentPort?.postMessage({ ...entry, machineUs: machineUs() });
let starts = 0;

/** The same as what `joinFleet` gives a process. */
const member = {
  id,
  input,
  /** @param {string} path */
  library: (path) => import(new URL(path, libraryUrl).href),
  ready() {
    const went = new Promise((resolve) => acts.set("go", resolve));
    log({ type: "ready" });
    return went;
  },
  stopping: stop.signal,
  /** @param {string} name @param {(data: unknown) => void} act */
  onCommand: (name, act) => void acts.set(name, act),
  /** @param {object} start */
  start(start) {
    starts += 1;
    log({ ...start, type: "start", serial: starts });
    return starts;
  },
  /** @param {number} serial @param {object} end */
  release: (serial, end) => log({ ...end, type: "release", serial }),
  log,
  leave: () => parentPort?.unref(),
};

const { threadStore } = await member.library("threads.js");
await work(member, { store: threadStore(memory), close: () => parentPort?.close() });
