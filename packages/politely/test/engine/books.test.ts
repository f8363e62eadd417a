import { describe, expect, it } from "vitest";
import { WallCalendar } from "../../src/core/calendar.js";
import { Books, type Counts } from "../../src/engine/books.js";
import { Slab } from "../../src/engine/slab.js";

const kinds = ["delayed", "cancelled", "refused", "expired", "throttled"] as const;

function books(hasStats: boolean) {
  const slab = new Slab(hasStats, new WallCalendar(() => 0));
  return { slab, books: new Books(slab), one: slab.allocate(), other: slab.allocate() };
}

function noCounts(): Counts {
  return new Books(new Slab(false, new WallCalendar(() => 0))).folded;
}

function countTimes(each: Books, slot: number, kind: (typeof kinds)[number], times: number): void {
  for (let time = 0; time < times; time++) each.count(slot, kind);
}

describe("the books of a host", () => {
  it("are blank until something is counted, whatever it is", () => {
    // What is delayed is granted, too.
    for (const kind of kinds.filter((each) => each !== "delayed")) {
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

  it("know the first start, also when it is recorded later", () => {
    const { books: each, one } = books(true);
    for (const startedUs of [50, 5, 6]) each.granted(one, startedUs, 0);
    expect(each.read(one)).toEqual({ ...noCounts(), granted: 3, firstUs: 5 });
  });

  it("keep every kind of count, and every host, apart", () => {
    const { books: each, one, other } = books(true);
    for (const [index, kind] of kinds.entries()) countTimes(each, one, kind, index + 1);
    each.count(other, "refused");
    each.lapsed(one, 6);
    const { delayed, cancelled, refused, expired, throttled, lapsed } = each.read(one);
    expect([delayed, cancelled, refused, expired, throttled, lapsed]).toEqual([1, 2, 3, 4, 5, 6]);
    expect(each.read(other)).toEqual({ ...noCounts(), refused: 1 });
  });

  it("of a row that is given back are not those of the next host there", () => {
    const { books: each, slab, one } = books(true);
    each.granted(one, 700, 20_000);
    each.lapsed(one, 5);
    slab.release(one);
    expect(slab.allocate()).toBe(one);
    expect(each.read(one)).toEqual(noCounts());
  });

  it("are read as a copy", () => {
    const { books: each, one } = books(true);
    const before = each.read(one);
    each.granted(one, 5, 0);
    expect([before.granted, each.read(one).granted]).toEqual([0, 1]);
  });

  it("are added to the folded ones when the host goes", () => {
    const { books: each, one, other } = books(true);
    each.granted(one, 700, 20_000);
    each.granted(other, 100, 1);
    countTimes(each, other, "throttled", 3);
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
    expect([each.foldedHosts, each.folded]).toEqual([0, { ...noCounts(), granted: 3, carried: 3 }]);
  });

  it("begin again with those in flight, as if they had just been granted", () => {
    const { books: each, one } = books(true);
    for (const kind of kinds) each.count(one, kind);
    each.granted(one, 700, 20_000);
    each.clear(one, 2, 900, false);
    expect(each.read(one)).toEqual({ ...noCounts(), granted: 2, firstUs: 900, carried: 2 });
    each.clear(one, 0, 950, false);
    expect(each.read(one)).toEqual(noCounts());
  });
});

describe("books that are not kept by host", () => {
  it("count everything in the folded ones", () => {
    const { books: each, one, other } = books(false);
    each.granted(one, 700, 20_000);
    each.granted(other, 5, 0);
    for (const kind of kinds) countTimes(each, other, kind, 2);
    each.lapsed(other, 2);
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

  it("have nothing to fold or clear for one host", () => {
    const { books: each, one } = books(false);
    each.granted(one, 700, 0);
    each.fold(one);
    each.clear(one, 3, 0, false);
    expect([each.isBlank(one), each.foldedHosts, each.folded.granted]).toEqual([true, 1, 1]);
    expect(each.read(one)).toEqual(each.folded);
  });
});
