import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Cells } from "../../src/stores/cells.js";
import { seeded } from "../laws/seeded.js";

/** One place with cells, opened for a run of the suite. */
export interface OpenCells {
  readonly cells: Cells;
  /** A second client of the same place, which shares nothing else with the first: a connection of its own at least. */
  another(): Promise<Cells>;
  /** Ends both clients. */
  close(): Promise<void>;
}

/** How far a place may stray from the ideal. */
export interface CellsTolerance {
  /** By how much the clocks of two clients may differ. Default 0: the store has one clock, and all clients read it. */
  readonly skewUs?: number;
}

const second = 1_000_000;
const minute = 60 * second;
/** How much later than promised an expired cell may be gone, and how far the store's clock may stray from ours in a short test. */
const slackUs = 50_000;
const inFlight = 8;

/**
 * Checks that a place keeps what `Cells` promises: atomic changes of several cells, expiry, one clock, every text intact.
 *
 * `open` is called once, and must find the place ready: servers started, tables created. Keys are new in every run, so the place may be
 * shared with other tests. Values have any character but U+0000, keys no control characters at all, as names in a policy.
 */
export function cellsSuite(name: string, open: () => Promise<OpenCells>, { skewUs = 0 }: CellsTolerance = {}): void {
  describe(`${name} as cells`, () => {
    let place: OpenCells;
    let clients: readonly [Cells, Cells];
    beforeAll(async () => {
      place = await open();
      clients = [place.cells, await place.another()];
    });
    afterAll(() => place.close());

    describeAtomicity(() => clients);
    describeContents(() => clients);
    describeTime(() => clients, skewUs);
  });
}

type Clients = () => readonly [Cells, Cells];

function describeAtomicity(clients: Clients): void {
  it("loses no change when two clients change one cell at once", async () => {
    const key = newKey("counter");
    const each = 150;
    await Promise.all(
      clients().flatMap((cells) =>
        workers(each, async () => {
          await cells.change([key], ([old]) => ({
            writes: [write(0, String(Number(old ?? 0) + 1))],
            answer: undefined,
          }));
        }),
      ),
    );
    expect(await read(clients()[1], [key])).toEqual([String(2 * each)]);
  });

  it("moves amounts between overlapping cells in any order, and neither deadlocks nor changes the sum", async () => {
    const anyMove = fc.record({
      keys: fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: 2, maxLength: 4 }),
      amount: fc.integer({ min: 1, max: 50 }),
    });
    const anyMoves = fc.array(anyMove, { minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(anyMoves, anyMoves, async (ours, theirs) => {
        const keys = [0, 1, 2, 3, 4].map((index) => newKey(`account-${index}`));
        await put(clients()[0], Object.fromEntries(keys.map((key) => [key, "100"])));
        const moves = [ours, theirs].flatMap((list, client) =>
          list.map((step) => ({ ...step, cells: clients()[client] })),
        );
        await Promise.all(
          moves.map(({ cells, keys: order, amount }) => {
            const named = order.map((index) => keys[index]);
            return cells.change(named, (values) => ({ writes: moved(values, amount), answer: undefined }));
          }),
        );
        const sums = await Promise.all(clients().map(async (cells) => total(await read(cells, keys))));
        expect(sums).toEqual([500, 500]);
      }),
      seeded(10),
    );
  });

  it("shows readers all of a change or nothing of it", async () => {
    const keys = ["a", "b", "c"].map(newKey);
    const [writer, reader] = clients();
    let isOver = false;
    const writing = (async () => {
      for (let round = 1; round <= 100; round++) {
        await put(writer, Object.fromEntries(keys.map((key) => [key, String(round)])));
      }
      isOver = true;
    })();
    // At least one look after the last write, so that a look at nothing but undefined cannot pass.
    for (let last = ""; last !== "100"; ) {
      const wasOver = isOver;
      const [a, b, c] = await read(reader, keys);
      expect([b, c]).toEqual([a, a]);
      last = a ?? "";
      if (wasOver) expect(last).toBe("100");
    }
    await writing;
  });

  it("passes on what a change throws, and has changed nothing", async () => {
    const keys = ["a", "b"].map(newKey);
    await put(clients()[0], { [keys[0]]: "before" });
    const problem = new RangeError("not today");
    const failing = clients()[0].change(keys, () => {
      throw problem;
    });
    await expect(failing).rejects.toBe(problem);
    expect(await read(clients()[1], keys)).toEqual(["before", undefined]);

    await put(clients()[0], { [keys[1]]: "after" });
    expect(await read(clients()[1], keys)).toEqual(["before", "after"]);
  });

  it("changes nothing with an empty list of writes", async () => {
    const keys = ["full", "empty"].map(newKey);
    await put(clients()[0], { [keys[0]]: "kept" });
    const answer = await clients()[1].change(keys, (values) => ({ writes: [], answer: values.length }));
    expect(answer).toBe(2);
    expect(await read(clients()[0], keys)).toEqual(["kept", undefined]);
  });

  it("changes those of its cells that are written, and leaves the others", async () => {
    const keys = Array.from({ length: 12 }, (_, index) => newKey(String(index)));
    await put(clients()[0], Object.fromEntries(keys.map((key, index) => [key, `old ${index}`])));
    await clients()[1].change(keys, (values) => ({
      writes: [write(7, `${values[7]}, new`), write(2, `${values[2]}, new`)],
      answer: undefined,
    }));
    const expected = keys.map((_, index) => ([2, 7].includes(index) ? `old ${index}, new` : `old ${index}`));
    expect(await read(clients()[0], keys)).toEqual(expected);
  });
}

function describeContents(clients: Clients): void {
  it("keeps values of any characters, under keys of any printable ones", async () => {
    const anyValue = fc.string({
      unit: fc.oneof(fc.constantFrom(..."\n\t'\"\\%_$\u007f\uffff".split("")), anyCharacter(1)),
      maxLength: 40,
    });
    const anyKey = fc.string({
      unit: fc.oneof(fc.constantFrom(..."'\"\\%_{}:*? /|".split("")), anyCharacter(0xa0)),
      maxLength: 40,
    });
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(anyKey, { minLength: 1, maxLength: 4 }), anyValue, async (names, value) => {
        const prefix = newKey("text");
        const keys = names.map((text) => prefix + text);
        await put(clients()[0], Object.fromEntries(keys.map((key, index) => [key, value + index])));
        expect(await read(clients()[1], keys)).toEqual(keys.map((_, index) => value + index));
      }),
      seeded(30),
    );
  });

  it("tells the empty text from no text", async () => {
    const keys = ["empty", "missing"].map(newKey);
    await put(clients()[0], { [keys[0]]: "" });
    expect(await read(clients()[1], keys)).toEqual(["", undefined]);
  });

  it("tells keys apart that differ in case, in a space at the end, or in how an accent is written", async () => {
    const key = newKey("caf");
    const keys = [`${key}é`, `${key}e\u0301`, `${key}É`, `${key}é `, ` ${key}é`];
    await put(clients()[0], Object.fromEntries(keys.map((each, index) => [each, String(index)])));
    expect(await read(clients()[1], keys)).toEqual(["0", "1", "2", "3", "4"]);
  });

  it("keeps 200,000 characters", async () => {
    const key = newKey("long");
    const value = "0123456789abcdefghij…".repeat(10_000).slice(0, 200_000);
    await put(clients()[0], { [key]: value });
    const [kept] = await read(clients()[1], [key]);
    expect(kept?.length).toBe(200_000);
    expect(kept === value).toBe(true);
  });

  it.each(["x", "é"])("tells keys of 2,000 characters %s apart by the last one", async (letter) => {
    const stem = newKey("").padEnd(1_999, letter);
    await put(clients()[0], { [`${stem}a`]: "a", [`${stem}b`]: "b" });
    expect(await read(clients()[1], [`${stem}b`, `${stem}a`])).toEqual(["b", "a"]);
  });
}

function describeTime(clients: Clients, skewUs: number): void {
  it("keeps a cell until it expires, and reads it as missing then", async () => {
    const ttlUs = second / 4;
    const keys = ["short", "long"].map(newKey);
    const writtenUs = await clients()[0].change(keys, (_, nowUs) => ({
      writes: [write(0, "short", ttlUs), write(1, "long")],
      answer: nowUs,
    }));
    const expiresUs = writtenUs + ttlUs;
    for (let seenUs = writtenUs; seenUs < expiresUs + slackUs + skewUs; ) {
      const { nowUs, values } = await look(clients()[1], keys);
      if (nowUs < expiresUs - skewUs) expect(values).toEqual(["short", "long"]);
      if (nowUs >= expiresUs + slackUs + skewUs) expect(values).toEqual([undefined, "long"]);
      seenUs = nowUs;
    }
  });

  it("counts the lifetime from the last write, and takes up an expired cell again", async () => {
    const key = newKey("again");
    await put(clients()[0], { [key]: "first" }, 1_000);
    await passed(clients()[0], 1_000 + slackUs + skewUs);
    const wasUs = await clients()[1].change([key], ([old], nowUs) => {
      expect(old).toBe(undefined);
      return { writes: [write(0, "second", 1_000)], answer: nowUs };
    });
    await put(clients()[1], { [key]: "third" });
    const { values, nowUs } = await passed(clients()[1], 1_000 + slackUs, [key]);
    expect(nowUs).toBeGreaterThan(wasUs);
    expect(values).toEqual(["third"]);
  });

  it("has a clock of whole microseconds that never goes back and keeps pace with ours", async () => {
    const key = newKey("clock");
    for (const cells of clients()) {
      const beforeMs = performance.now();
      const first = await look(cells, [key]);
      const startedMs = performance.now();
      let lastUs = first.nowUs;
      let askedMs = startedMs;
      while (askedMs - startedMs < 150) {
        askedMs = performance.now();
        const { nowUs } = await look(cells, [key]);
        expect(Number.isSafeInteger(nowUs)).toBe(true);
        expect(nowUs).toBeGreaterThanOrEqual(lastUs);
        lastUs = nowUs;
      }
      const wentUs = lastUs - first.nowUs;
      expect(wentUs).toBeGreaterThanOrEqual((askedMs - startedMs) * 1_000 - slackUs - skewUs);
      expect(wentUs).toBeLessThanOrEqual((performance.now() - beforeMs) * 1_000 + slackUs + skewUs);
    }
  });

  it("has one clock for all clients", async () => {
    const key = newKey("clock");
    let lastUs = 0;
    for (let round = 0; round < 40; round++) {
      const { nowUs } = await look(clients()[round % 2], [key]);
      expect(nowUs).toBeGreaterThanOrEqual(lastUs - skewUs);
      lastUs = nowUs;
    }
  });
}

let keyCount = 0;
const run = Math.trunc(Math.random() * 2 ** 40).toString(36);

/** A key that no other test and no other run has. */
function newKey(label: string): string {
  keyCount += 1;
  return `suite:${run}:${keyCount}:${label}`;
}

/** Any code point from `first` on that is no half of a pair. */
function anyCharacter(first: number): fc.Arbitrary<string> {
  return fc
    .oneof(fc.integer({ min: first, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
    .map((code) => String.fromCodePoint(code));
}

function write(index: number, value: string, ttlUs = 10 * minute): { index: number; value: string; ttlUs: number } {
  return { index, value, ttlUs };
}

async function put(cells: Cells, values: Readonly<Record<string, string>>, ttlUs?: number): Promise<void> {
  const writes = Object.values(values).map((value, index) => write(index, value, ttlUs));
  await cells.change(Object.keys(values), () => ({ writes, answer: undefined }));
}

async function look(cells: Cells, keys: readonly string[]): Promise<{ values: (string | undefined)[]; nowUs: number }> {
  // A loop of looks at a place in memory would otherwise keep everything else from running.
  await nextTurn();
  return cells.change(keys, (values, nowUs) => ({ writes: [], answer: { values: [...values], nowUs } }));
}

async function read(cells: Cells, keys: readonly string[]): Promise<(string | undefined)[]> {
  return (await look(cells, keys)).values;
}

/** Looks until `spanUs` have passed on the store's clock, and gives the last look. */
async function passed(
  cells: Cells,
  spanUs: number,
  keys: readonly string[] = [newKey("wait")],
): ReturnType<typeof look> {
  const first = await look(cells, keys);
  for (;;) {
    const last = await look(cells, keys);
    if (last.nowUs - first.nowUs >= spanUs) return last;
  }
}

/** Does `task` `times` times, with a few under way at once. */
function workers(times: number, task: () => Promise<void>): Promise<void>[] {
  let left = times;
  return Array.from({ length: inFlight }, async () => {
    while (left > 0) {
      left -= 1;
      await task();
    }
  });
}

/** Takes `amount` from the first of the cells and shares it out among the others. */
function moved(values: readonly (string | undefined)[], amount: number): ReturnType<typeof write>[] {
  const numbers = values.map(Number);
  numbers[0] -= amount;
  for (let unit = 0; unit < amount; unit++) {
    numbers[1 + (unit % (numbers.length - 1))] += 1;
  }
  return numbers.map((number, index) => write(index, String(number)));
}

function total(values: readonly (string | undefined)[]): number {
  return values.reduce((sum, value) => sum + Number(value), 0);
}

/** Writes what is none of the library's values, for `storeSuite`. */
export function spoilIn(cells: Cells): (key: string) => Promise<void> {
  return (key) => cells.change([key], () => ({ writes: [write(0, '["politely",999]')], answer: undefined }));
}
