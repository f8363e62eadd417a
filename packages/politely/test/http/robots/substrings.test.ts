import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRobots } from "../../../src/http/robots/index.js";
import { Substrings } from "../../../src/http/robots/substrings.js";
import { seeded } from "../../laws/seeded.js";
import { fileOf, type Line, slowDecision } from "./slowRobots.js";

const letters = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 60 });
const piece = fc.string({ unit: fc.constantFrom("a", "b", "c", "d"), minLength: 1, maxLength: 6 });

describe("the pieces of a text", () => {
  it("are found where indexOf finds them, from any place on", () => {
    fc.assert(
      fc.property(letters, fc.array(fc.tuple(piece, fc.nat(70)), { maxLength: 20 }), (text, asked) => {
        const pieces = new Substrings(text);
        for (const [wanted, from] of asked) expect(pieces.find(wanted, from)).toBe(text.indexOf(wanted, from));
      }),
      seeded(2_000),
    );
  });

  it("are all found, in a text of all characters and in one of a single one", () => {
    const all = Array.from({ length: 256 }, (_, code) => String.fromCharCode((code * 37) % 128)).join("");
    for (const text of [all, "a".repeat(100), `${"ab".repeat(40)}c${"ab".repeat(40)}`]) {
      const pieces = new Substrings(text);
      for (let start = 0; start < text.length; start++) {
        for (const length of [1, 2, 7, text.length - start]) {
          const wanted = text.slice(start, start + length);
          for (const from of [0, start, start + 1]) expect(pieces.find(wanted, from)).toBe(text.indexOf(wanted, from));
        }
      }
    }
  });

  it("have no characters beyond ASCII, and none in an empty text", () => {
    expect(new Substrings("abc").find("é", 0)).toBe(-1);
    expect(new Substrings("abc").find("日", 0)).toBe(-1);
    expect(new Substrings("").find("a", 0)).toBe(-1);
  });
});

describe("a file of very many rules with *", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "/", "*"), minLength: 1, maxLength: 6 });
  const rule = fc.record<Line>({
    name: fc.constantFrom("Allow", "Disallow"),
    value: fc.tuple(word, fc.boolean()).map(([text, isEnd]) => `/${text}*${isEnd ? "b$" : ""}`),
  });
  const path = fc.string({ unit: fc.constantFrom("a", "b", "/"), maxLength: 30 }).map((text) => `/${text}`);
  /** They match nothing, and are asked first since they are longer. */
  const others = Array.from(
    { length: 300 },
    (_, index): Line => ({ name: "Allow", value: `/*z${index}*zzzzzzzzzzzz` }),
  );

  it("decides as asking every rule does", () => {
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 12 }), path, (rules, asked) => {
        const lines = [...others, ...rules];
        const robots = parseRobots(fileOf([{ name: "User-agent", value: "*" }, ...lines]));
        expect(robots.isAllowed("x", `https://a.example${asked}`)).toBe(slowDecision(rules, asked));
      }),
      seeded(100),
    );
  });

  it("decides about a long path, too", () => {
    const letter = (index: number): string => "bcdefghijklmnopqrstuvwxyz012345678"[Math.trunc(index) % 34];
    const rules = Array.from(
      { length: 3_000 },
      (_, index): Line => ({
        name: "Disallow",
        value: `*a${letter(index)}*${letter(index / 34)}a${letter(index / 1_156)}`,
      }),
    );
    const robots = parseRobots(fileOf([{ name: "User-agent", value: "*" }, ...rules]));
    expect(robots.isAllowed("x", `/${"a".repeat(20_000)}`)).toBe(true);
    expect(robots.isAllowed("x", `/${"a".repeat(20_000)}b-bab`)).toBe(false);
    expect(robots.isAllowed("x", `/${"a".repeat(20_000)}bab`)).toBe(true);
    expect(robots.isAllowed("x", `/bab${"a".repeat(20_000)}`)).toBe(true);
  });
});
