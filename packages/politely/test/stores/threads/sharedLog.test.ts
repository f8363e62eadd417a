import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StoreError } from "../../../src/errors.js";
import type { SharedLog } from "../../../src/stores/sharedLog.js";
import { seeded } from "../../laws/seeded.js";
import { apply, look, newLog } from "./play.js";
import { endedAt } from "./stepping.js";

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
  fc.constantFrom("\ufeff", "\ufeff\ufeffx"),
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

describe("the cells of a shared log", () => {
  it("are those of a map, through many rounds of the ring, for those who write, who lag behind and who come late", () => {
    let fullCount = 0;
    fc.assert(
      fc.property(fc.array(anyStep, { minLength: 200, maxLength: 400, size: "max" }), fc.nat(200), (steps, lag) => {
        const memory = new SharedArrayBuffer(65_536);
        let nowUs = 5;
        const logs = [1, 2, 3].map(() => newLog(memory, () => nowUs));
        const model = new Model();
        steps.forEach((step, index) => {
          try {
            apply(
              logs[step.writer],
              step.cells.map(({ key }) => key),
              () => step.cells.map(({ value, ttlUs }, at) => ({ index: at, value, ttlUs })),
            );
            model.apply(step, nowUs);
          } catch (error) {
            if (!(error instanceof StoreError)) throw error;
            fullCount += 1;
          }
          if (index % (lag + 1) === lag) expect(look(logs[2], keys)).toEqual(model.values(nowUs));
          nowUs += step.thenUs;
        });
        for (const log of [...logs, newLog(memory, () => nowUs)]) expect(look(log, keys)).toEqual(model.values(nowUs));
      }),
      seeded(25),
    );
    // A run that never fills the memory would leave out the hardest part.
    expect(fullCount).toBeGreaterThan(0);
  });

  it("keep all of their bytes when the memory is as full as it may be", () => {
    for (const valueBytes of [0, 10, 300, 3_000]) {
      const memory = new SharedArrayBuffer(65_536);
      const log = newLog(memory);
      const put = (key: string, value: string): void =>
        apply(log, [key], () => [{ index: 0, value, ttlUs: 3_600 * second }]);
      const cold: string[] = [];
      const coldValue = (index: number): string => `value ${index} ${"c".repeat(valueBytes)}`;
      expect(() => {
        for (;;) {
          put(`cold:${cold.length}`, coldValue(cold.length));
          cold.push(`cold:${cold.length}`);
        }
      }).toThrow(StoreError);
      // What takes no more room than before goes on, round and round.
      for (let count = 0; count < 5_000; count++) put("cold:0", coldValue(0));
      expect(look(newLog(memory), cold)).toEqual(cold.map((_, index) => coldValue(index)));
      expect(cold.length * (valueBytes + 50)).toBeGreaterThan(30_000);
    }
  });

  it("stay as they are while changes of any size, and threads that are ended at any step, come round to them", () => {
    const anyEvent = fc.record({
      length: fc.oneof(fc.nat(300), fc.nat(6_900)),
      endedAt: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined, freq: 3 }),
    });
    let wroteCount = 0;
    fc.assert(
      fc.property(
        fc.integer({ min: 20, max: 110 }),
        fc.array(anyEvent, { maxLength: 300, size: "max" }),
        (count, events) => {
          const memory = new SharedArrayBuffer(65_536);
          const log = newLog(memory);
          const cold = Array.from({ length: count }, (_, index) => `cold:${index}`);
          const values = cold.map((key) => key.repeat(30));
          cold.forEach((key, at) => {
            apply(log, [key], () => [{ index: 0, value: values[at], ttlUs: 3_600_000 * second }]);
          });
          for (const event of events) {
            if (event.endedAt === undefined) wroteCount += isWritten(log, "hot", event.length) ? 1 : 0;
            else endedAt(event.endedAt, () => isWritten(newLog(memory), "ended", event.length));
          }
          expect(look(newLog(memory), cold)).toEqual(values);
          expect(look(log, cold)).toEqual(values);
        },
      ),
      seeded(60),
    );
    expect(wroteCount).toBeGreaterThan(2_000);
  });

  it("that expire are not kept by a thread that only looks", () => {
    const memory = new SharedArrayBuffer(65_536);
    let nowUs = 1;
    const [writer, reader] = [1, 2].map(() => newLog(memory, () => nowUs));
    for (let count = 0; count < 3_000; count++) {
      apply(writer, [`key:${count}`], () => [{ index: 0, value: "x".repeat(300), ttlUs: second }]);
      nowUs += second;
      look(reader, ["key"]);
    }
    const kept = (reader as unknown as { readonly cells: ReadonlyMap<string, unknown> }).cells;
    expect(kept.size).toBeLessThan(300);
  });

  it("are an error, or as they were, when something else has written anywhere into the memory", () => {
    const anyScribble = fc.record({
      at: fc.oneof(fc.integer({ min: 4, max: 63 }), fc.nat(65_535)),
      bytes: fc.uint8Array({ minLength: 1, maxLength: 64 }),
    });
    fc.assert(
      fc.property(fc.array(anyScribble, { minLength: 1, maxLength: 8 }), (scribbles) => {
        const memory = new SharedArrayBuffer(65_536);
        const log = newLog(memory);
        for (let count = 0; count < 60; count++) isWritten(log, `key:${count}`, 700);
        for (const { at, bytes } of scribbles) {
          const from = Math.max(4, at);
          new Uint8Array(memory).set(bytes.subarray(0, 65_536 - from), from);
        }
        for (const each of [log, newLog(memory)]) {
          isWritten(each, "more", 700);
          isWritten(each, "key:1", 10);
        }
      }),
      seeded(300),
    );
  });
});

/** Writes a cell of `length` characters. False when there is no room for it, or when the memory is damaged. */
function isWritten(log: SharedLog, key: string, length: number): boolean {
  try {
    apply(log, [key], () => [{ index: 0, value: "w".repeat(length), ttlUs: second }]);
    return true;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return false;
  }
}
