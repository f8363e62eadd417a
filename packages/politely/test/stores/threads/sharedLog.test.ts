import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StoreError } from "../../../src/errors.js";
import { BLOCK_BYTES, LEAST_BYTES, type Memory, openMemory } from "../../../src/stores/threads/memory.js";
import { Ring } from "../../../src/stores/threads/ring.js";
import { SharedLog } from "../../../src/stores/threads/sharedLog.js";
import { seeded } from "../../laws/seeded.js";
import { apply, look } from "./play.js";

const second = 1_000_000;

/** One change, and the time that passes after it. */
interface Step {
  readonly writer: number;
  readonly cells: readonly { readonly key: string; readonly value: string; readonly ttlUs: number }[];
  readonly thenUs: number;
}

const keys = Array.from({ length: 90 }, (_, index) => (index % 3 === 0 ? `schlüssel:${index}` : `key:${index}→`));

const anyValue = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }),
  // Halves of pairs are no valid text, and come back as they were all the same.
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 100 }).map((codes) => String.fromCharCode(...codes)),
  fc.integer({ min: 300, max: 2_500 }).map((length) => "z".repeat(length)),
);

const anyStep: fc.Arbitrary<Step> = fc.record({
  writer: fc.nat(1),
  cells: fc.uniqueArray(
    fc.record({
      key: fc.constantFrom(...keys),
      value: anyValue,
      ttlUs: fc.oneof(fc.integer({ min: 1, max: 5 * second }), fc.constant(3_600 * second)),
    }),
    { minLength: 1, maxLength: 3, selector: ({ key }) => key },
  ),
  thenUs: fc.oneof(fc.nat(1_000), fc.nat(second)),
});

/** The obvious thing: a map, with the instant at which each cell expires. */
class Model {
  readonly #cells = new Map<string, { readonly value: string; readonly untilUs: number }>();

  apply({ cells }: Step, nowUs: number): void {
    for (const { key, value, ttlUs } of cells) this.#cells.set(key, { value, untilUs: nowUs + ttlUs });
  }

  values(nowUs: number): (string | undefined)[] {
    return keys.map((key) => {
      const cell = this.#cells.get(key);
      return cell === undefined || cell.untilUs <= nowUs ? undefined : cell.value;
    });
  }
}

/** A ring that knows its longest record. */
class MeasuringRing extends Ring {
  longest = 0;

  override reserve(at: number, length: number): boolean {
    this.longest = Math.max(this.longest, length);
    return super.reserve(at, length);
  }
}

describe("the cells of a shared log", () => {
  it("are those of a map, through many rounds of the ring, for those who write, who lag behind and who come late", () => {
    let fullCount = 0;
    fc.assert(
      fc.property(fc.array(anyStep, { minLength: 200, maxLength: 400, size: "max" }), fc.nat(200), (steps, lag) => {
        const memory = openMemory(new SharedArrayBuffer(LEAST_BYTES));
        let nowUs = 5;
        const newLog = (): SharedLog => new SharedLog(new Ring(memory), () => nowUs);
        const writers = [newLog(), newLog()];
        const reader = newLog();
        const model = new Model();
        steps.forEach((step, index) => {
          try {
            apply(
              writers[step.writer],
              step.cells.map(({ key }) => key),
              () => step.cells.map(({ value, ttlUs }, at) => ({ index: at, value, ttlUs })),
            );
            model.apply(step, nowUs);
          } catch (error) {
            if (!(error instanceof StoreError)) throw error;
            fullCount += 1;
          }
          if (index % (lag + 1) === lag) expect(look(reader, keys)).toEqual(model.values(nowUs));
          nowUs += step.thenUs;
        });
        for (const log of [...writers, reader, newLog()]) expect(look(log, keys)).toEqual(model.values(nowUs));
      }),
      seeded(25),
    );
    // A run that never fills the memory would leave out the hardest part.
    expect(fullCount).toBeGreaterThan(0);
  });

  it("keep all of their bytes when the memory is as full as it may be, and are moved a few at a time", () => {
    const memory = openMemory(new SharedArrayBuffer(LEAST_BYTES));
    const ring = new MeasuringRing(memory);
    const log = new SharedLog(ring, () => 1);
    const cold: string[] = [];
    const put = (key: string, value: string): void =>
      apply(log, [key], () => [{ index: 0, value, ttlUs: 3_600 * second }]);
    expect(() => {
      for (;;) {
        put(`cold:${cold.length}`, `value ${cold.length} ${"c".repeat(300)}`);
        cold.push(`cold:${cold.length}`);
      }
    }).toThrow(StoreError);
    // What takes no more room than before goes on, round and round.
    const from = ring.head();
    for (let count = 0; ring.head() < from + 40 * ring.blockCount; count++) put("cold:0", `value 0 ${count}`);
    const values = look(new SharedLog(new Ring(memory), () => 1), cold);
    expect(values.slice(1)).toEqual(cold.slice(1).map((_, index) => `value ${index + 1} ${"c".repeat(300)}`));
    expect(cold.length).toBeGreaterThan(100);
    expect(ring.longest).toBeLessThan(ring.blockCount / 20);
  });

  it("stay as they are while changes of any size, and the blocks of ended threads, come round to them", () => {
    const anyEvent = fc.oneof(
      { weight: 6, arbitrary: fc.record({ length: fc.oneof(fc.nat(300), fc.nat(6_900)) }) },
      { weight: 1, arbitrary: fc.record({ endedWith: fc.oneof(fc.nat(300), fc.nat(6_900)) }) },
      { weight: 1, arbitrary: fc.record({ passedUs: fc.nat(30 * second) }) },
    );
    let wroteCount = 0;
    fc.assert(
      fc.property(
        fc.integer({ min: 20, max: 110 }),
        fc.array(anyEvent, { maxLength: 300, size: "max" }),
        (count, events) => {
          const memory = openMemory(new SharedArrayBuffer(LEAST_BYTES));
          let nowUs = 1;
          const ring = new WatchedRing(memory, () => nowUs);
          const log = new SharedLog(ring, () => nowUs);
          const cold = Array.from({ length: count }, (_, index) => `cold:${index}`);
          const values = cold.map((key) => key.repeat(30));
          cold.forEach((key, at) => {
            apply(log, [key], () => [{ index: 0, value: values[at], ttlUs: 3_600_000 * second }]);
          });
          for (const event of events) {
            if ("passedUs" in event) nowUs += event.passedUs;
            else if ("endedWith" in event) ring.graves.push(...beginAndEnd(memory, nowUs, event.endedWith));
            else wroteCount += isWritten(log, "hot", event.length) ? 1 : 0;
          }
          expect(ring.disturbedCount).toBe(0);
          expect(look(new SharedLog(new Ring(memory), () => nowUs), cold)).toEqual(values);
          expect(look(log, cold)).toEqual(values);
          // However full of ended threads it was, a minute later it is not.
          nowUs += 61 * second;
          expect(isWritten(log, "last", 1_000)).toBe(true);
        },
      ),
      seeded(60),
    );
    expect(wroteCount).toBeGreaterThan(2_000);
  });

  it("never go back in time, though the clock of a thread does", () => {
    const memory = openMemory(new SharedArrayBuffer(LEAST_BYTES));
    const ahead = new SharedLog(new Ring(memory), () => 1_000);
    const behind = new SharedLog(new Ring(memory), () => 10);
    apply(ahead, ["a"], () => [{ index: 0, value: "x", ttlUs: 50 }]);
    expect(behind.read(10)).toBe("level");
    expect(behind.change(["a"], (_, nowUs) => ({ writes: [], answer: nowUs }))).toEqual({ answer: 1_000 });
  });
});

/** Where a thread was ended while it wrote. */
interface Grave {
  readonly at: number;
  readonly length: number;
  readonly sinceUs: number;
}

/** A thread that writes a cell of `length` characters, and is ended when the bytes are there and the record is not published. */
function beginAndEnd(memory: Memory, nowUs: number, length: number): Grave[] {
  const graves: Grave[] = [];
  const ring = new (class extends Ring {
    override fill(at: number, bytes: Uint8Array): void {
      super.fill(at, bytes);
      graves.push({ at, length: this.head() - at, sinceUs: nowUs });
      throw new RangeError("ended");
    }
  })(memory);
  try {
    isWritten(new SharedLog(ring, () => nowUs), "ended", length);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  return graves;
}

/** A ring that counts writes to the blocks of threads which were ended less than a minute ago. */
class WatchedRing extends Ring {
  graves: Grave[] = [];
  disturbedCount = 0;

  constructor(
    memory: Memory,
    private readonly nowUs: () => number,
  ) {
    super(memory);
  }

  override fill(at: number, bytes: Uint8Array): void {
    this.graves = this.graves.filter(({ sinceUs }) => this.nowUs() - sinceUs < 60 * second);
    const from = at % this.blockCount;
    const until = from + bytes.length / BLOCK_BYTES;
    for (const grave of this.graves) {
      const first = grave.at % this.blockCount;
      const isIn = (shift: number): boolean => first + shift < until && first + shift + grave.length > from;
      if ([-this.blockCount, 0, this.blockCount].some(isIn)) this.disturbedCount += 1;
    }
    super.fill(at, bytes);
  }
}

/** Writes a cell of `length` characters. False when there is no room for it. */
function isWritten(log: SharedLog, key: string, length: number): boolean {
  try {
    apply(log, [key], () => [{ index: 0, value: "w".repeat(length), ttlUs: second }]);
    return true;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return false;
  }
}

describe("a ring", () => {
  it("ignores a thread that gives up a record which was overwritten long ago", () => {
    const ring = new Ring(openMemory(new SharedArrayBuffer(LEAST_BYTES)));
    const append = (): void => {
      const at = ring.head();
      expect(ring.reserve(at, 8)).toBe(true);
      const before = ring.begin(at);
      expect(before !== undefined && ring.publish(at, 8, before)).toBe(true);
    };
    while (ring.head() <= ring.blockCount) append();
    ring.abandon(0);
    expect(ring.look(ring.blockCount)).toEqual({ kind: "written", length: 8 });
    expect(ring.look(0)).toEqual({ kind: "lapped" });
  });

  it("publishes nothing for a thread whose blocks were used again while it stood still", () => {
    const ring = new Ring(openMemory(new SharedArrayBuffer(LEAST_BYTES)));
    ring.reserve(0, 8);
    const before = ring.begin(0) ?? 0n;
    ring.abandon(0);
    while (ring.head() <= ring.blockCount) {
      const at = ring.head();
      ring.reserve(at, 8);
      ring.publish(at, 8, ring.begin(at) ?? 0n);
    }
    expect(ring.begin(0)).toBe(undefined);
    expect(ring.publish(0, 8, before)).toBe(false);
    ring.free(0, 8);
    expect(ring.look(ring.blockCount)).toEqual({ kind: "written", length: 8 });
  });
});
