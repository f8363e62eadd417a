import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Cells } from "../../../src/stores/cells.js";
import { threadCells } from "../../../src/stores/threads.js";
import { accounts, total } from "./accounts.js";
import { look, memoryWithAccounts } from "./cells.js";
import { type CompiledEntry, compileEntry } from "./compileEntry.js";
import { type Started, startWorker } from "./startWorker.js";

const patience = { busyMs: 30_000 };
/** How many workers are ended. `FC_TIMES=10` makes it a thousand. */
const endTimes = 100 * Number(process.env.FC_TIMES ?? 1);

describe("workers that share a memory", () => {
  let compiled: CompiledEntry;
  beforeAll(() => {
    compiled = compileEntry("stores/threads.ts");
  });
  afterAll(() => compiled.remove());

  it("lose no change when four of them count at once", async () => {
    const memory = new SharedArrayBuffer(65_536);
    const data = { store: compiled.url, memory, key: "counter", times: 2_000, patience };
    const workers = Array.from({ length: 4 }, () => startWorker("count.mjs", data));
    await Promise.all(workers.map((worker) => worker.says("done")));
    await Promise.all(workers.map((worker) => worker.terminate()));
    expect(await look(threadCells(memory, patience), ["counter"])).toEqual(["8000"]);
  });

  it("see the same sum at every look while four of them move units about", async () => {
    const { memory, cells } = await memoryWithAccounts();
    const data = { store: compiled.url, memory, keys: accounts, times: 1_500, patience };
    const workers = await startMovers(data);
    const done = Promise.all(workers.map((worker) => worker.says("done")));
    expect(await sumsUntil(cells, done)).toEqual(new Set([500]));
    await Promise.all(workers.map((worker) => worker.terminate()));
  });

  it("keep the sum, and go on, when they are ended at any moment", { timeout: endTimes * 2_000 }, async () => {
    const { memory, cells } = await memoryWithAccounts();
    const hasty = { busyMs: 30_000, stuckMs: 10 };
    const data = { store: compiled.url, memory, keys: accounts, times: Number.POSITIVE_INFINITY, patience: hasty };
    const sums = new Set<number>();
    for (let round = 0; round < endTimes / 4; round++) {
      const workers = await startMovers(data);
      const moving = Promise.race(workers.map((worker) => worker.says("moving")));
      for (const sum of await sumsUntil(cells, moving)) sums.add(sum);
      // At once, or some looks later. There is hardly a moment at which they do nothing.
      for (let looks = round % 10; looks > 0; looks--) sums.add(total(await look(cells, accounts)));
      await Promise.all(workers.map((worker) => worker.terminate()));
      sums.add(total(await look(threadCells(memory, hasty), accounts)));
    }
    expect(sums).toEqual(new Set([500]));
  });

  it("go on where they were after the whole process was stopped, for longer than a turn may take", async () => {
    const program = fileURLToPath(new URL("stopped.mjs", import.meta.url));
    const child = spawn(process.execPath, [program, compiled.url], { stdio: ["pipe", "pipe", "inherit"] });
    const said = text(child.stdout);
    const exited = once(child, "exit");
    for (let stops = 0; stops < 3; stops++) {
      await delay(100);
      child.kill("SIGSTOP");
      await delay(500);
      child.kill("SIGCONT");
    }
    child.stdin.end();
    expect(await exited).toEqual([0, null]);
    expect(JSON.parse(await said)).toEqual({ sum: 500, failures: [] });
  });
});

/** Four workers that have all begun to move units at the same time. */
async function startMovers(data: Parameters<typeof startWorker>[1]): Promise<Started[]> {
  const workers = Array.from({ length: 4 }, () => startWorker("move.mjs", data));
  await Promise.all(workers.map((worker) => worker.says("ready")));
  for (const worker of workers) worker.go();
  return workers;
}

/** All sums that are seen until `done`, which must not reject. */
async function sumsUntil(cells: Cells, done: Promise<unknown>): Promise<Set<number>> {
  const sums = new Set<number>();
  let isDone = false;
  const over = done.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    sums.add(total(await look(cells, accounts)));
    // Leaves the processor to those that are looked at.
    await delay(1);
  }
  await over;
  return sums;
}
