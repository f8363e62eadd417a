import fc from "fast-check";
import { expect, it } from "vitest";
import { jsonErrorPlace } from "../../src/policy/jsonErrorPlace.js";

it("runs to the end of every text that is JSON", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      expect(jsonErrorPlace(text)).toEqual({ line: 1, column: text.length + 1 });
    }),
  );
});

it("points at a broken character, or at the beginning of the token it is in", () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(), (text, at) => {
      const index = at % text.length;
      // No JSON has this character outside of a string, and inside it must be escaped.
      const broken = `${text.slice(0, index)}\u0001${text.slice(index + 1)}`;
      const { line, column } = jsonErrorPlace(broken);
      expect(line).toBe(1);
      expect(column).toBeLessThanOrEqual(index + 1);
      expect(column).toBeGreaterThan(0);
    }),
  );
});
