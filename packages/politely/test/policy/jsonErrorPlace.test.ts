import fc from "fast-check";
import { expect, it } from "vitest";
import { jsonErrorPlace, withoutJsonPlace } from "../../src/policy/jsonErrorPlace.js";

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

it.each([
  ["Expected property name or '}' in JSON at position 1 (line 1 column 2)", "Expected property name or '}' in JSON"],
  ["Expected property name or '}' in JSON at position 1", "Expected property name or '}' in JSON"],
  ["JSON.parse: unexpected character at line 1 column 2 of the JSON data", "JSON.parse: unexpected character"],
  ["Unexpected end of JSON input", "Unexpected end of JSON input"],
  [
    `Unexpected token 'x', "x (line 1 column 2)" is not valid JSON`,
    `Unexpected token 'x', "x (line 1 column 2)" is not valid JSON`,
  ],
])("leaves the engine's own place out of %j", (message, rest) => {
  expect(withoutJsonPlace(message)).toBe(rest);
});
