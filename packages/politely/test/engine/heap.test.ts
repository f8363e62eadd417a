import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Heap, type Positioned } from "../../src/engine/heap.js";
import { seeded } from "../laws/seeded.js";

class Item implements Positioned {
  position = -1;

  constructor(
    readonly id: number,
    public order: number,
  ) {}
}

function isBefore(a: Item, b: Item): boolean {
  return a.order === b.order ? a.id < b.id : a.order < b.order;
}

function sorted(items: readonly Item[]): number[] {
  return [...items].sort((a, b) => a.order - b.order || a.id - b.id).map(({ id }) => id);
}

/** Takes everything out, first in order first. */
function drain(heap: Heap<Item>): number[] {
  const ids: number[] = [];
  for (let top = heap.peek(); top !== undefined; top = heap.peek()) {
    heap.remove(top);
    ids.push(top.id);
  }
  return ids;
}

describe("a heap", () => {
  it("is empty at first", () => {
    const heap = new Heap(isBefore);
    expect([heap.size, heap.peek()]).toEqual([0, undefined]);
  });

  it("gives its items in order, and tells each that it is outside", () => {
    const heap = new Heap(isBefore);
    const items = [5, 3, 9, 1, 3, 7].map((order, id) => new Item(id, order));
    for (const item of items) heap.push(item);
    expect(drain(heap)).toEqual([3, 1, 4, 0, 5, 2]);
    expect(items.map(({ position }) => position)).toEqual(items.map(() => -1));
  });

  it("moves an item whose order changed, up or down, and takes one in that was outside", () => {
    const heap = new Heap(isBefore);
    const items = [1, 2, 3, 4, 5].map((order, id) => new Item(id, order));
    for (const item of items) heap.update(item);
    items[4].order = 0;
    heap.update(items[4]);
    expect(heap.peek()).toBe(items[4]);
    items[4].order = 9;
    heap.update(items[4]);
    expect(drain(heap)).toEqual([0, 1, 2, 3, 4]);
  });

  it("moves the one that fills a gap up when it belongs above it", () => {
    const heap = new Heap(isBefore);
    const items = [1, 10, 2, 11, 12, 3, 4].map((order, id) => new Item(id, order));
    for (const item of items) heap.push(item);
    heap.remove(items[3]);
    for (const item of heap.items.slice(1)) {
      expect(heap.items[(item.position - 1) >> 1].order).toBeLessThanOrEqual(item.order);
    }
    expect(drain(heap)).toEqual([0, 2, 5, 6, 1, 4]);
  });

  it("says the same as a sorted list, whatever is pushed, moved and removed", () => {
    const anyStep = fc.record({
      kind: fc.constantFrom("push", "push", "push", "push", "push", "remove", "update", "pop"),
      order: fc.integer({ min: 0, max: 30 }),
      pick: fc.nat(),
    });
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 120 }), (steps) => {
        const heap = new Heap(isBefore);
        let inside: Item[] = [];
        steps.forEach(({ kind, order, pick }, id) => {
          const one = inside[pick % Math.max(1, inside.length)];
          if (kind === "push" || one === undefined) {
            inside.push(new Item(id, order));
            heap.push(inside[inside.length - 1]);
          } else if (kind === "update") {
            one.order = order;
            heap.update(one);
          } else {
            const gone = kind === "pop" ? heap.peek() : one;
            if (gone !== undefined) heap.remove(gone);
            inside = inside.filter((item) => item !== gone);
          }
          expect(heap.size).toBe(inside.length);
          expect(heap.peek()?.id).toBe(sorted(inside)[0]);
          for (const item of inside) expect(heap.items[item.position]).toBe(item);
        });
        expect(drain(heap)).toEqual(sorted(inside));
      }),
      seeded(200),
    );
  });
});
