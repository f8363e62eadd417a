import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  HAS_COOLDOWN,
  HAS_GATE,
  HAS_PAUSE,
  IS_IDLE,
  IS_RESERVED,
  layoutFor,
  PROFILE_MASK,
  ROW,
  Slab,
} from "../../src/scheduler/slab.js";
import { seeded } from "../laws/seeded.js";

const { FLIGHT, LAST_US, OWED, SEEN_US, UNITS } = ROW;

/** Fills every part of a row with numbers made from `value`. */
function write(slab: Slab, slot: number, value: number): void {
  const { words, halves } = slab.chunkOf(slot);
  const word = slab.wordOf(slot);
  const { windowsAt, windowCount, quotaAt, statsAt } = slab.layout;
  words[word + LAST_US] = value + 0.5;
  words[word + OWED] = value + 1;
  words[word + SEEN_US] = value + 2;
  slab.setProfileNumber(slot, value & PROFILE_MASK);
  halves[2 * word + FLIGHT] = value + 3;
  halves[2 * word + UNITS] = value + 4;
  for (let index = 0; index < windowCount; index += 1) halves[2 * word + windowsAt + index] = value + 10 + index;
  if (quotaAt >= 0) words.set([value + 20, value + 21], word + quotaAt);
  if (statsAt >= 0) words.set([value + 30, value + 31, value + 32, value + 33, value + 34], word + statsAt);
}

/** What a row holds, part by part; parts that the layout does not have are left out. */
function read(slab: Slab, slot: number): number[][] {
  const { words, halves } = slab.chunkOf(slot);
  const word = slab.wordOf(slot);
  const { windowsAt, windowCount, quotaAt, statsAt } = slab.layout;
  return [
    [...words.subarray(word, word + 3)],
    [slab.profileNumber(slot), halves[2 * word + FLIGHT], halves[2 * word + UNITS]],
    [...halves.subarray(2 * word + windowsAt, 2 * word + windowsAt + windowCount)],
    quotaAt < 0 ? [] : [...words.subarray(word + quotaAt, word + quotaAt + 2)],
    statsAt < 0 ? [] : [...words.subarray(word + statsAt, word + statsAt + 5)],
  ];
}

/** What a row of that layout holds once `write` has filled it. */
function written(layout: Slab["layout"], value: number): number[][] {
  const slab = new Slab(layout);
  const slot = slab.allocate();
  write(slab, slot, value);
  return read(slab, slot);
}

/** What the program really keeps, in bytes. */
function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}

function wordCount(slab: Slab): number {
  return slab.chunks.reduce((sum, { words }) => sum + words.length, 0);
}

describe("a row", () => {
  it("says that nothing ever happened when it is new, also when it was another's before", () => {
    const slab = new Slab(layoutFor(2, true, true));
    const keep = slab.allocate();
    const fresh = read(slab, slab.allocate());
    expect(fresh[0]).toEqual([Number.NEGATIVE_INFINITY, 0, Number.NEGATIVE_INFINITY]);
    expect(
      fresh
        .slice(1)
        .flat()
        .every((word) => word === 0),
    ).toBe(true);
    const used = slab.allocate();
    write(slab, used, 5_000);
    slab.setFlag(used, HAS_COOLDOWN, true);
    slab.release(used);
    const again = slab.allocate();
    expect(again).toBe(used);
    expect(read(slab, again)).toEqual(fresh);
    expect([slab.hasFlag(again, HAS_COOLDOWN), slab.live, keep]).toEqual([false, 3, 0]);
  });

  it("keeps its flags and the number of its profile apart", () => {
    const slab = new Slab(layoutFor(0, false, false));
    const slot = slab.allocate();
    const flags = [HAS_COOLDOWN, HAS_PAUSE, HAS_GATE, IS_RESERVED, IS_IDLE];
    flags.forEach((flag, index) => {
      slab.setFlag(slot, flag, true);
      slab.setProfileNumber(slot, 1_000 * index);
      expect(flags.map((each) => slab.hasFlag(slot, each))).toEqual(flags.map((_, other) => other <= index));
      expect(slab.profileNumber(slot)).toBe(1_000 * index);
    });
    slab.setProfileNumber(slot, PROFILE_MASK);
    for (const flag of flags) slab.setFlag(slot, flag, false);
    expect([slab.hasFlag(slot, HAS_GATE | IS_IDLE), slab.profileNumber(slot)]).toEqual([false, PROFILE_MASK]);
  });

  it.each([
    { windows: 0, hasQuota: false, hasStats: false },
    { windows: 1, hasQuota: false, hasStats: true },
    { windows: 2, hasQuota: true, hasStats: false },
    { windows: 5, hasQuota: true, hasStats: true },
  ])("has room for $windows windows, quota $hasQuota, statistics $hasStats, and touches no other", (shape) => {
    const slab = new Slab(layoutFor(shape.windows, shape.hasQuota, shape.hasStats));
    const slots = Array.from({ length: 50 }, () => slab.allocate());
    for (const slot of slots) write(slab, slot, 1_000 * (slot + 1));
    for (const slot of slots) expect(read(slab, slot)).toEqual(written(slab.layout, 1_000 * (slot + 1)));
  });
});

describe("thousands of rows", () => {
  const count = 140_000;

  it("keep their numbers and contents while there come to be more of them", () => {
    const slab = new Slab(layoutFor(0, false, false));
    const slots = new Set<number>();
    for (let index = 0; index < count; index += 1) {
      const slot = slab.allocate();
      slab.chunkOf(slot).words[slab.wordOf(slot) + OWED] = slot + 1;
      slots.add(slot);
    }
    expect([slots.size, slab.live]).toEqual([count, count]);
    expect([...slots].every((slot) => slab.chunkOf(slot).words[slab.wordOf(slot) + OWED] === slot + 1)).toBe(true);
  });

  it("give their memory back when they are released, chunk by chunk, and can come again", () => {
    const slab = new Slab(layoutFor(0, false, false));
    const empty = wordCount(slab);
    const slots = Array.from({ length: count }, () => slab.allocate());
    const full = wordCount(slab);
    const [kept, ...others] = slots;
    for (const slot of others) slab.release(slot);
    // Only the chunk of the row that is kept stays.
    expect(wordCount(slab)).toBeLessThan(full / 2);
    slab.release(kept);
    expect([empty, slab.live]).toEqual([0, 0]);
    expect(wordCount(slab)).toBeLessThan(1_000);
    const again = new Set(Array.from({ length: count }, () => slab.allocate()));
    expect([again.size, slab.live]).toEqual([count, count]);
    expect(wordCount(slab)).toBeLessThanOrEqual(full);
  });

  it("that come and go take no more memory than the most there were at once", () => {
    const slab = new Slab(layoutFor(0, false, false));
    const slots = Array.from({ length: 1_000 }, () => slab.allocate());
    const before = wordCount(slab);
    for (let round = 0; round < 50_000; round += 1) {
      slab.release(slots[round % 1_000]);
      slots[round % 1_000] = slab.allocate();
    }
    expect(new Set(slots).size).toBe(1_000);
    expect(wordCount(slab)).toBe(before);
  });

  it("that come and go beside one that stays leave nothing behind, four million times over", () => {
    const slab = new Slab(layoutFor(0, false, false));
    const kept = slab.allocate();
    slab.release(slab.allocate());
    const before = { words: wordCount(slab), bytes: heapBytes() };
    for (let round = 0; round < 4_000_000; round += 1) slab.release(slab.allocate());
    expect([wordCount(slab), slab.chunks.length, slab.live]).toEqual([before.words, 1, 1]);
    // One number remembered for each would be 32 MB.
    expect(heapBytes() - before.bytes).toBeLessThan(10_000_000);
    expect(slab.allocate()).not.toBe(kept);
  });
});

describe("rows made wider", () => {
  it("hold what they held, those returned stay free, and the new parts are empty", () => {
    const narrow = layoutFor(1, false, true);
    const wide = layoutFor(4, true, true);
    const slab = new Slab(narrow);
    const slots = Array.from({ length: 3_000 }, () => slab.allocate());
    for (const slot of slots) write(slab, slot, 7 * slot);
    const gone = slots.filter((slot) => slot % 3 === 1);
    for (const slot of gone) slab.release(slot);
    slab.relayout(wide);
    for (const slot of slots.filter((each) => each % 3 !== 1)) {
      const [times, counts, windows, quota, stats] = written(narrow, 7 * slot);
      expect(quota).toEqual([]);
      expect(read(slab, slot)).toEqual([times, counts, [...windows, 0, 0, 0], [0, 0], stats]);
    }
    const again = gone.map(() => slab.allocate()).sort((a, b) => a - b);
    expect(again).toEqual(gone);
    expect(slab.live).toBe(3_000);
  });

  it("hold what they held through any comings, goings and widenings", () => {
    const anyStep = fc.record({
      kind: fc.constantFrom("in", "in", "in", "out", "wider"),
      windows: fc.integer({ min: 0, max: 5 }),
      pick: fc.nat(),
    });
    fc.assert(
      fc.property(fc.boolean(), fc.array(anyStep, { maxLength: 150 }), (hasStats, steps) => {
        const slab = new Slab(layoutFor(0, false, hasStats));
        const owed = new Map<number, number>();
        steps.forEach(({ kind, windows, pick }, index) => {
          const slots = [...owed.keys()];
          if (kind === "wider") {
            const { windowCount, quotaAt } = slab.layout;
            slab.relayout(layoutFor(Math.max(windowCount, windows), quotaAt >= 0 || pick % 2 === 0, hasStats));
          } else if (kind === "in" || slots.length === 0) {
            const slot = slab.allocate();
            expect(owed.has(slot)).toBe(false);
            slab.chunkOf(slot).words[slab.wordOf(slot) + OWED] = index;
            owed.set(slot, index);
          } else {
            slab.release(slots[pick % slots.length]);
            owed.delete(slots[pick % slots.length]);
          }
          expect(slab.live).toBe(owed.size);
          for (const [slot, value] of owed) expect(slab.chunkOf(slot).words[slab.wordOf(slot) + OWED]).toBe(value);
        });
      }),
      seeded(60),
    );
  });
});
