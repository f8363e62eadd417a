import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WallCalendar } from "../../src/core/calendar.js";
import { ROW } from "../../src/core/key.js";
import { HAS_GATE, HAS_REST, IS_IDLE, IS_OTHER, PROFILE_MASK, Slab } from "../../src/engine/slab.js";
import { seeded } from "../laws/seeded.js";

const { OWED, PROFILE } = ROW;

function newSlab(hasStats = false): Slab {
  return new Slab(hasStats, new WallCalendar(() => 0));
}

/** Fills a row with numbers made from `value`. */
function write(slab: Slab, slot: number, value: number): void {
  const word = slab.wordOf(slot);
  slab.chunkOf(slot).words.fill(value + 0.5, word, word + slab.stride);
}

function read(slab: Slab, slot: number): number[] {
  const word = slab.wordOf(slot);
  return [...slab.chunkOf(slot).words.subarray(word, word + slab.stride)];
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
    const slab = newSlab(true);
    const keep = slab.allocate();
    const fresh = read(slab, slab.allocate());
    expect(fresh).toEqual([Number.NEGATIVE_INFINITY, 0, Number.NEGATIVE_INFINITY, ...fresh.slice(3).map(() => 0)]);
    const used = slab.allocate();
    write(slab, used, 5_000);
    slab.setFlag(used, IS_IDLE, true);
    slab.key(used).needRest();
    slab.release(used);
    const again = slab.allocate();
    expect(again).toBe(used);
    expect(read(slab, again)).toEqual(fresh);
    expect([slab.hasFlag(again, IS_IDLE | HAS_REST), slab.key(again).rest, keep]).toEqual([false, undefined, 0]);
  });

  it("keeps its flags and the number of its profile apart", () => {
    const slab = newSlab();
    const slot = slab.allocate();
    const profile = (): number => slab.half(slot, PROFILE) & PROFILE_MASK;
    const flags = [HAS_REST, HAS_GATE, IS_IDLE, IS_OTHER];
    flags.forEach((flag, index) => {
      slab.setFlag(slot, flag, true);
      slab.setProfile(slot, 1_000 * index);
      expect(flags.map((each) => slab.hasFlag(slot, each))).toEqual(flags.map((_, other) => other <= index));
      expect(profile()).toBe(1_000 * index);
    });
    slab.setProfile(slot, PROFILE_MASK);
    for (const flag of flags) slab.setFlag(slot, flag, false);
    expect([slab.hasFlag(slot, HAS_GATE | IS_IDLE), profile()]).toEqual([false, PROFILE_MASK]);
  });

  it.each([false, true])("with statistics: %s, touches no other", (hasStats) => {
    const slab = newSlab(hasStats);
    const slots = Array.from({ length: 50 }, () => slab.allocate());
    for (const slot of slots) write(slab, slot, 1_000 * (slot + 1));
    for (const slot of slots) expect(new Set(read(slab, slot))).toEqual(new Set([1_000 * (slot + 1) + 0.5]));
  });

  it("has a rest once somebody needs one, until it is dropped", () => {
    const slab = newSlab();
    const [one, other] = [slab.allocate(), slab.allocate()];
    const rest = slab.key(one).needRest();
    expect([slab.key(other).rest, slab.key(one).rest]).toEqual([undefined, rest]);
    slab.dropRest(one);
    expect(slab.key(one).rest).toBeUndefined();
  });
});

describe("thousands of rows", () => {
  const count = 140_000;

  it("keep their numbers and contents while there come to be more of them", () => {
    const slab = newSlab();
    const slots = new Set<number>();
    for (let index = 0; index < count; index += 1) {
      const slot = slab.allocate();
      slab.chunkOf(slot).words[slab.wordOf(slot) + OWED] = slot + 1;
      slots.add(slot);
    }
    expect(slots.size).toBe(count);
    expect([...slots].every((slot) => slab.chunkOf(slot).words[slab.wordOf(slot) + OWED] === slot + 1)).toBe(true);
  });

  it("give their memory back when they are released, chunk by chunk, and can come again", () => {
    const slab = newSlab();
    const empty = wordCount(slab);
    const slots = Array.from({ length: count }, () => slab.allocate());
    const full = wordCount(slab);
    const [kept, ...others] = slots;
    for (const slot of others) slab.release(slot);
    // Only the chunk of the row that is kept stays.
    expect(wordCount(slab)).toBeLessThan(full / 2);
    slab.release(kept);
    expect(empty).toBe(0);
    expect(wordCount(slab)).toBeLessThan(1_000);
    const again = new Set(Array.from({ length: count }, () => slab.allocate()));
    expect(again.size).toBe(count);
    expect(wordCount(slab)).toBeLessThanOrEqual(full);
  });

  it("that come and go take no more memory than the most there were at once", () => {
    const slab = newSlab();
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
    const slab = newSlab();
    const kept = slab.allocate();
    slab.release(slab.allocate());
    const before = { words: wordCount(slab), bytes: heapBytes() };
    for (let round = 0; round < 4_000_000; round += 1) slab.release(slab.allocate());
    expect([wordCount(slab), slab.chunks.length]).toEqual([before.words, 1]);
    // One number remembered for each would be 32 MB.
    expect(heapBytes() - before.bytes).toBeLessThan(10_000_000);
    expect(slab.allocate()).not.toBe(kept);
  });
});

describe("rows", () => {
  it("hold what they held through any comings and goings", () => {
    const anyStep = fc.record({ isIn: fc.boolean(), pick: fc.nat() });
    fc.assert(
      fc.property(fc.boolean(), fc.array(anyStep, { maxLength: 150 }), (hasStats, steps) => {
        const slab = newSlab(hasStats);
        const owed = new Map<number, number>();
        steps.forEach(({ isIn, pick }, index) => {
          const slots = [...owed.keys()];
          if (isIn || slots.length === 0) {
            const slot = slab.allocate();
            expect(owed.has(slot)).toBe(false);
            slab.chunkOf(slot).words[slab.wordOf(slot) + OWED] = index;
            owed.set(slot, index);
          } else {
            slab.release(slots[pick % slots.length]);
            owed.delete(slots[pick % slots.length]);
          }
          for (const [slot, value] of owed) expect(slab.chunkOf(slot).words[slab.wordOf(slot) + OWED]).toBe(value);
        });
      }),
      seeded(60),
    );
  });
});
