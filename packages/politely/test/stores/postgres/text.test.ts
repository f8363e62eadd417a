import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StoreError } from "../../../src/errors.js";
import { arrayText, decodeText, encodeText, rowName } from "../../../src/stores/postgres/text.js";
import { seeded } from "../../laws/seeded.js";

/** Any UTF-16, with halves of surrogate pairs and what stands for them more often than chance would have it. */
const anyText = fc.string({
  unit: fc.oneof(
    fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
    fc.constantFrom("\0", "\ue000", "\ue0000000", "\ue000#", "\ud83d", "\ude00", "\ud83d\ude00", '"', "\\", "#"),
  ),
  maxLength: 1_000,
});

describe("a text kept by PostgreSQL", () => {
  it("comes back as it was, whatever is in it, and has nothing that PostgreSQL refuses", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const kept = encodeText(text);
        expect(kept).not.toMatch(/\0|\p{Surrogate}/u);
        expect(decodeText(kept, "key")).toBe(text);
      }),
      seeded(500),
    );
  });

  it("is the text itself when it is JSON", () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: "binary" }), (json) => {
        expect(encodeText(JSON.stringify([json]))).toBe(JSON.stringify([json]));
      }),
      seeded(100),
    );
  });

  it.each(["\ue000", "a\ue000", "\ue00000", "\ue000ffgg", "\ue000#1234"])("is no %j", (text) => {
    expect(() => decodeText(text, "the key")).toThrow(StoreError);
    expect(() => decodeText(text, "the key")).toThrow(/"the key" was not written by politely/);
  });
});

describe("the name of a row", () => {
  it("fits into an index, and is another one for every key", async () => {
    await fc.assert(
      fc.asyncProperty(anyText, anyText, async (one, other) => {
        const [first, second] = await Promise.all([one, other].map(rowName));
        expect(new TextEncoder().encode(first).length).toBeLessThan(2_700);
        expect(first === second).toBe(one === other);
      }),
      seeded(500),
    );
  });

  it("differs for long keys that differ in the last character, and for a key that is called like one", async () => {
    const names = await Promise.all([`${"x".repeat(1_999)}a`, `${"x".repeat(1_999)}b`].map(rowName));
    expect(new Set([...names, await rowName(names[0])]).size).toBe(3);
  });
});

it("a list is written as PostgreSQL writes arrays", () => {
  expect(arrayText([])).toBe("{}");
  expect(arrayText(["a", 'b"\\', "", undefined, 12, "NULL"])).toBe('{"a","b\\"\\\\","",NULL,12,"NULL"}');
});
