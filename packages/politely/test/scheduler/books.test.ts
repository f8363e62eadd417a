import { describe, expect, it } from "vitest";
import { Books, noCounts } from "../../src/scheduler/books.js";
import { layoutFor, Slab } from "../../src/scheduler/slab.js";

const kinds = ["delayed", "cancelled", "refused", "expired", "lapsed", "throttled"] as const;

function books(hasStats: boolean) {
  const slab = new Slab(layoutFor(1, true, hasStats));
  return { slab, books: new Books(slab), one: slab.allocate(), other: slab.allocate() };
}

describe("the books of a host", () => {
  it("are blank until something is counted, whatever it is", () => {
    for (const kind of kinds) {
      const { books: each, one } = books(true);
      expect([each.isBlank(one), each.read(one)]).toEqual([true, noCounts()]);
      each.count(one, kind);
      expect([each.isBlank(one), each.read(one)]).toEqual([false, { ...noCounts(), [kind]: 1 }]);
    }
  });

  it("count grants, the time waited, and as delayed those that waited more than 10 ms", () => {
    const { books: each, one } = books(true);
    each.granted(one, 700, 0);
    each.granted(one, 800, 10_000);
    each.granted(one, 900, 10_001);
    expect(each.read(one)).toEqual({ ...noCounts(), granted: 3, waitedUs: 20_001, firstUs: 700, delayed: 1 });
  });

  it("count a grant at once like any other", () => {
    const { books: each, slab, one } = books(true);
    for (const nowUs of [5, 6]) each.grantedAtOnce(slab.chunkOf(one).words, slab.wordOf(one), nowUs);
    expect(each.read(one)).toEqual({ ...noCounts(), granted: 2, firstUs: 5 });
  });

  it("keep every kind of count, and every host, apart", () => {
    const { books: each, one, other } = books(true);
    for (const [index, kind] of kinds.entries()) each.count(one, kind, index + 1);
    each.count(other, "refused");
    const { delayed, cancelled, refused, expired, lapsed, throttled } = each.read(one) ?? noCounts();
    expect([delayed, cancelled, refused, expired, lapsed, throttled]).toEqual([1, 2, 3, 4, 5, 6]);
    expect(each.read(other)).toEqual({ ...noCounts(), refused: 1 });
  });

  it("of a row that is given back are not those of the next host there", () => {
    const { books: each, slab, one } = books(true);
    each.count(one, "lapsed", 5);
    each.keepLast(one, 700);
    slab.release(one);
    expect(slab.allocate()).toBe(one);
    expect([each.read(one), each.lastUs(one)]).toEqual([noCounts(), Number.NEGATIVE_INFINITY]);
  });

  it("are read as a copy", () => {
    const { books: each, one } = books(true);
    const before = each.read(one);
    each.granted(one, 5, 0);
    expect([before?.granted, each.read(one)?.granted]).toEqual([0, 1]);
  });

  it("are added to the folded ones when the host goes", () => {
    const { books: each, one, other } = books(true);
    each.granted(one, 700, 20_000);
    each.granted(other, 100, 1);
    each.count(other, "throttled", 3);
    each.fold(one);
    each.fold(other);
    expect(each.foldedHosts).toBe(2);
    expect(each.folded).toEqual({ ...noCounts(), granted: 2, waitedUs: 20_001, delayed: 1, throttled: 3 });
    each.clearFolded(0);
    expect([each.foldedHosts, each.folded]).toEqual([0, noCounts()]);
  });

  it("begin the folded ones again with those in flight that are counted there", () => {
    const { books: each, one } = books(true);
    for (const kind of kinds) each.count(one, kind);
    each.granted(one, 700, 20_000);
    each.fold(one);
    each.clearFolded(3);
    expect([each.foldedHosts, each.folded]).toEqual([0, { ...noCounts(), granted: 3 }]);
  });

  it("begin again with those in flight, as if they had just been granted", () => {
    const { books: each, one } = books(true);
    for (const kind of kinds) each.count(one, kind);
    each.granted(one, 700, 20_000);
    each.clear(one, 2, 900);
    expect(each.read(one)).toEqual({ ...noCounts(), granted: 2, firstUs: 900 });
    each.clear(one, 0, 950);
    expect(each.isBlank(one)).toBe(true);
  });
});

describe("books that are not kept by host", () => {
  it("count everything in the folded ones", () => {
    const { books: each, slab, one, other } = books(false);
    each.granted(one, 700, 20_000);
    each.grantedAtOnce(slab.chunkOf(other).words, slab.wordOf(other), 5);
    for (const kind of kinds) each.count(other, kind, 2);
    expect(each.folded).toEqual({
      ...noCounts(),
      granted: 2,
      waitedUs: 20_000,
      delayed: 3,
      cancelled: 2,
      refused: 2,
      expired: 2,
      lapsed: 2,
      throttled: 2,
    });
  });

  it("have nothing to read, fold or clear for one host", () => {
    const { books: each, one } = books(false);
    each.granted(one, 700, 0);
    each.fold(one);
    each.clear(one, 3, 0);
    expect([each.read(one), each.isBlank(one), each.foldedHosts, each.folded.granted]).toEqual([undefined, true, 1, 1]);
  });
});
