import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/errors.js";
import { SharedLog, TURN_MASK } from "../../src/stores/sharedLog.js";
import { threadCells, threadMemory, threadStore } from "../../src/stores/threads.js";
import { storeSuite } from "../../src/testing/storeSuite.js";
import { cellsSuite, spoilIn } from "./cellsSuite.js";
import { accounts, moveOne, total } from "./threads/accounts.js";
import { look, memoryWithAccounts, put } from "./threads/cells.js";
import { apply, isCopying } from "./threads/play.js";
import { endedAt } from "./threads/stepping.js";

const patience = { busyMs: 30_000 };
const hourUs = 3_600_000_000;

cellsSuite("shared memory", async () => {
  const memory = threadMemory();
  return {
    cells: threadCells(memory, patience),
    another: async () => threadCells(memory, patience),
    close: async () => undefined,
  };
});

describe("shared memory as a store", () => {
  const open = async () => {
    const memory = threadMemory();
    const another = async () => threadStore(memory);
    const spoil = spoilIn(threadCells(memory, patience));
    return { store: await another(), another, spoil, close: async () => undefined };
  };
  for (const { title, run } of storeSuite("shared memory", open)) it(`${title}`, run);
});

describe("a thread", () => {
  it("goes on after 0.1 s when another one was ended during its turn", async () => {
    const { memory, cells } = await memoryWithAccounts();
    const ended = new SharedLog(memory, () => 1);
    expect(ended.take(ended.look())).toBe(true);
    const sinceMs = performance.now();
    expect(total(await look(cells, accounts))).toBe(500);
    expect(performance.now() - sinceMs).toBeGreaterThan(95);
    // The turn was taken away, and given back: nobody has it.
    expect(ended.look() & TURN_MASK).toBe(0n);
  });

  it("gives another one 20 times as long that copies, since it could go on with that", async () => {
    const { memory } = await memoryWithAccounts();
    const ended = new SharedLog(memory, () => 1);
    const before = ended.look();
    for (let step = 1; !isCopying(ended); step++) {
      endedAt(step, () => apply(ended, accounts.slice(0, 2), (values) => moveOne(values, 3)));
    }
    const sinceMs = performance.now();
    expect(total(await look(threadCells(memory, { busyMs: 30_000, stuckMs: 10 }), accounts))).toBe(500);
    expect(performance.now() - sinceMs).toBeGreaterThan(195);
    expect(ended.look() & TURN_MASK).toBe(0n);
    expect(ended.look() - before).toBe(0n);
  });

  it("fails with what to do when others are at it all the time", async () => {
    const { memory } = await memoryWithAccounts();
    const log = new SharedLog(memory, () => 1);
    let isOver = false;
    const others = (async () => {
      while (!isOver) {
        log.take(log.look());
        await nextTurn();
      }
    })();
    const waiting = look(threadCells(memory, { busyMs: 40 }), accounts);
    await expect(waiting).rejects.toThrow(StoreError);
    await expect(waiting).rejects.toThrow(
      "Other threads kept the shared memory busy for 40 ms. Send less through it, or raise busyMs.",
    );
    isOver = true;
    await others;
  });

  it("carries out changes in the order in which they are asked for", async () => {
    const cells = threadCells(threadMemory(), patience);
    const order: number[] = [];
    const changes = Array.from({ length: 300 }, (_, number) =>
      cells.change(["key"], () => {
        order.push(number);
        return { writes: [{ index: 0, value: String(number), ttlUs: hourUs }], answer: undefined };
      }),
    );
    await Promise.all(changes);
    expect(order).toEqual(Array.from({ length: 300 }, (_, number) => number));
    expect(await look(cells, ["key"])).toEqual(["299"]);
  });
});

describe("keys", () => {
  it("that differ in half a character are two, for every thread", async () => {
    const memory = threadMemory();
    const keys = ["\ud800", "\ud801", "\ufffd"];
    for (const [index, key] of keys.entries()) await put(threadCells(memory, patience), key, `${index}`, hourUs);
    expect(await look(threadCells(memory, patience), keys)).toEqual(["0", "1", "2"]);
  });
});

describe("a memory", () => {
  it("that is full refuses new cells, says how large to make it, and drops nothing that still counts", async () => {
    const cells = threadCells(threadMemory(65_536), patience);
    const keys: string[] = [];
    const fill = async (): Promise<void> => {
      for (let number = 0; number < 1_000; number++) {
        await put(cells, `host:${number}`, "x".repeat(400), hourUs);
        keys.push(`host:${number}`);
      }
    };
    await expect(fill()).rejects.toThrow(
      /^The shared memory is full: \d+ cells of \d+ bytes still count, and a change of \d+ bytes finds no room\. Make it larger: threadMemory\(131072\)\.$/,
    );
    expect(keys.length).toBeGreaterThanOrEqual(80);
    expect((await look(cells, keys)).every((value) => value?.length === 400)).toBe(true);
    // What is there can be changed all the same.
    await put(cells, "host:5", "y".repeat(400), hourUs);
    expect(await look(cells, ["host:5"])).toEqual(["y".repeat(400)]);
  });

  it("makes room by dropping what has expired", async () => {
    const cells = threadCells(threadMemory(65_536), patience);
    for (let number = 0; number < 5_000; number++) await put(cells, `host:${number}`, "x".repeat(400), 1);
    await put(cells, "last", "z", hourUs);
    expect(await look(cells, ["last"])).toEqual(["z"]);
  });

  it("refuses a change that is too large for it, and says how large it would have to be", async () => {
    const cells = threadCells(threadMemory(65_536), patience);
    await expect(put(cells, "large", "x".repeat(10_000), hourUs)).rejects.toThrow(
      "A change of 10032 bytes is too large for this shared memory. Make it larger: threadMemory(131072).",
    );
    const larger = threadCells(threadMemory(131_072), patience);
    await put(larger, "large", "x".repeat(10_000), hourUs);
    expect((await look(larger, ["large"]))[0]?.length).toBe(10_000);
  });

  it("is claimed by the first store, and refused when it holds something else", () => {
    const memory = threadMemory();
    expect(threadStore(memory)).toMatchObject({ name: "threads", timeline: "machine" });
    expect(threadStore(memory)).toMatchObject({ name: "threads" });

    for (const at of [0, 5, 40_000, 65_535]) {
      const foreign = new SharedArrayBuffer(65_536);
      new Uint8Array(foreign)[at] = 7;
      expect(() => threadStore(foreign)).toThrow(StoreError);
      expect(() => threadStore(foreign)).toThrow("holds something else. Give threadStore a memory of its own");
    }
  });

  it("of another version is refused", () => {
    const memory = threadMemory();
    threadStore(memory);
    new Int32Array(memory)[0] += 1;
    expect(() => threadStore(memory)).toThrow("laid out in version 3, and this is version 2");
  });

  it("that something else writes to is noticed, and nothing is granted", async () => {
    const memory = threadMemory(65_536);
    const cells = threadCells(memory, patience);
    await put(cells, "key", "value", hourUs);
    new Uint8Array(memory).fill(0xff, 64);
    await expect(look(threadCells(memory, patience), ["key"])).rejects.toThrow(
      "The shared memory is damaged at block 0",
    );
  });

  it("has a size within bounds, and is a SharedArrayBuffer of fixed length", () => {
    expect(threadMemory().byteLength).toBe(4_194_304);
    for (const bytes of [0, 65_535, 268_435_457, 1e6 + 0.5, Number.NaN]) {
      expect(() => threadMemory(bytes)).toThrow(`A shared memory has 65536 to 268435456 bytes; got ${bytes}`);
    }
    expect(() => threadStore(new SharedArrayBuffer(1_000))).toThrow(RangeError);
    expect(() => threadStore(new ArrayBuffer(65_536) as never)).toThrow("got ArrayBuffer. An ArrayBuffer is copied");
    expect(() => threadStore(undefined as never)).toThrow(TypeError);
    const growable = Reflect.construct(SharedArrayBuffer, [65_536, { maxByteLength: 131_072 }]) as SharedArrayBuffer;
    expect(() => threadStore(growable)).toThrow("got a growable one");
    for (const busyMs of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => threadStore(threadMemory(), { busyMs })).toThrow(`busyMs must be 0 to 3600000; got ${busyMs}`);
    }
  });
});
