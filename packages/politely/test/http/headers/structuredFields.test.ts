import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Member, parseMembers } from "../../../src/http/headers/rateLimitField.js";
import suite from "../../fixtures/structured-fields.json" with { type: "json" };
import { seeded } from "../../laws/seeded.js";

interface SuiteCase {
  readonly file: string;
  readonly name: string;
  readonly raw: readonly string[];
  readonly header_type: string;
  readonly expected?: unknown;
  readonly must_fail?: boolean;
  readonly can_fail?: boolean;
  readonly canonical?: readonly string[];
}

/** Lists in brackets are only looked for their end: no field about limits has any. */
const cases = (suite as readonly SuiteCase[]).filter(({ raw }) => !raw.some((line) => line.includes("(")));

describe("the structured fields of the working group's suite", () => {
  it.each(cases.filter((one) => one.must_fail === true))("refuses $file: $name", ({ raw, header_type }) => {
    expect(parsed(raw.join(", "), header_type)).toBeUndefined();
  });

  it.each(cases.filter((one) => one.must_fail !== true))("reads $file: $name", (one) => {
    const result = parsed(one.raw.join(", "), one.header_type);
    if (one.can_fail === true && result === undefined) return;
    expect(result).toEqual(one.expected);
  });

  it.each(cases.filter((one) => one.canonical !== undefined && one.must_fail !== true))(
    "reads the canonical form of $file: $name as the same",
    ({ canonical = [], header_type, expected }) => {
      expect(parsed(canonical.join(", "), header_type)).toEqual(expected);
    },
  );
});

describe("parseMembers", () => {
  it.each([
    ["1 \t", [[1, []]]],
    [
      "1\t,\t 2",
      [
        [1, []],
        [2, []],
      ],
    ],
    [
      "a;b;c=?0",
      [
        [
          token("a"),
          [
            ["b", true],
            ["c", false],
          ],
        ],
      ],
    ],
    [
      '"a,b", c',
      [
        ["a,b", []],
        [token("c"), []],
      ],
    ],
    [":aGVsbG8:", [[binary("NBSWY3DP"), []]]],
    [":aGVsbG8=:", [[binary("NBSWY3DP"), []]]],
  ])("reads the list %j", (text, members) => {
    expect(parsed(text, "list")).toEqual(members);
  });

  it.each([
    "1,",
    ",1",
    "1 2",
    "(1 2",
    "1;A=2",
    "1; =2",
    "1;a=",
    "?2",
    "?",
    "@1.5",
    "@",
    "%a",
    '%"a',
    '"a',
    '"\\a"',
    '"ü"',
    ":aGVsbG8",
    "1.2345",
    "--1",
    "+1",
    "ü",
    "1\u00a0",
  ])("refuses the list %j", (text) => {
    expect(parsed(text, "list")).toBeUndefined();
  });

  it("takes an empty text for no members", () => {
    expect(parseMembers("  ", false)).toEqual([]);
    expect(parseMembers("", true)).toEqual([]);
  });

  it("finds the end of what is written in brackets, and of byte sequences, dates and display strings", () => {
    const text = '(1 2);q, (), ("a" "b";x);y=1, :aGVsbG8:, @-1, %"f%c3%bc"';
    const found = parseMembers(text, false)?.map(({ bare, parameters }) => [bare, ...parameters.keys()]);
    expect(found).toEqual([["(1 2)", "q"], ["()"], ['("a" "b";x)', "y"], [":aGVsbG8:"], ["@-1"], ['%"f%c3%bc"']]);
  });
});

describe("parseMembers, for any text", () => {
  const bare = fc.oneof(
    fc.integer({ min: -999_999_999_999_999, max: 999_999_999_999_999 }).map((value) => [String(value), value] as const),
    fc.boolean().map((value) => [value ? "?1" : "?0", value] as const),
    fc.stringMatching(/^[ -~]{0,8}$/).map((value) => [`"${value.replace(/["\\]/g, "\\$&")}"`, value] as const),
    fc.stringMatching(/^[A-Za-z*][\w:/.~^-]{0,6}$/).map((value) => [value, token(value)] as const),
  );
  const key = fc.stringMatching(/^[a-z*][a-z0-9_.*-]{0,5}$/);
  const parameters = fc.uniqueArray(fc.tuple(key, bare), { selector: ([name]) => name, maxLength: 3 });
  const item = fc.tuple(bare, parameters).map(([[text, value], list]) => ({
    text: text + list.map(([name, [written]]) => `;${name}=${written}`).join(""),
    value: [value, list.map(([name, [, inner]]) => [name, inner])],
  }));

  it("reads what was written, member by member", () => {
    fc.assert(
      fc.property(fc.array(item, { maxLength: 5 }), fc.constantFrom(",", ", ", " ,\t"), (items, comma) => {
        const text = items.map((one) => one.text).join(comma);
        expect(parsed(text, "list")).toEqual(items.map((one) => one.value));
      }),
      seeded(5_000),
    );
  });

  it("never throws, whatever the text", () => {
    const piece = fc.constantFrom(...'()"\\;=,:?@%-*. \t01a~Aé'.split(""), '"a"', ";q=1", ":aGk=:", '%"c3"', "1.5");
    const anyText = fc.oneof(
      fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join("")),
      fc.string({ unit: "binary" }),
    );
    fc.assert(
      fc.property(anyText, (text) => {
        for (const type of ["list", "dictionary", "item"]) parsed(text, type);
      }),
      seeded(5_000),
    );
  });

  it("takes time in proportion to the length", () => {
    const bodies = ["(", "(1 ", "1;a", ",", ' "', '"\\"', ":a", '%"%c3', ";", "a;a=1", "1,", "\t"];
    const startedMs = performance.now();
    for (const body of bodies) {
      for (const end of ["", ",", '"', ")"])
        parseMembers(`1${body.repeat(Math.floor(8_000 / body.length))}${end}`, false);
    }
    // Quadratic work on any of them would take a hundred times as long as this generous bound allows.
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });
});

/** The result in the notation of the suite; undefined when the text was refused. An item is what a list of one member has. */
function parsed(text: string, type: string): unknown {
  const members = parseMembers(text, type === "dictionary");
  if (members === undefined || type === "list") return members?.map(written);
  if (type === "item") return members.length === 1 ? written(members[0]) : undefined;
  return Array.from(new Map(members.map((member) => [member.key, written(member)])));
}

function written({ bare, parameters }: Member): unknown {
  return [writtenBare(bare), Array.from(parameters, ([key, value]) => [key, writtenBare(value)])];
}

function writtenBare(bare: string): unknown {
  if (bare.startsWith("?")) return bare === "?1";
  if (bare.startsWith(":")) return binary(base32(Buffer.from(bare, "base64")));
  if (bare.startsWith('"')) return bare.slice(1, -1).replace(/\\(.)/g, "$1");
  return /^[-\d]/.test(bare) ? Number(bare) + 0 : token(bare);
}

function token(value: string): unknown {
  return { __type: "token", value };
}

function binary(value: string): unknown {
  return { __type: "binary", value };
}

function base32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("");
  const groups = bits.match(/.{1,5}/g) ?? [];
  const digits = groups.map((group) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[Number.parseInt(group.padEnd(5, "0"), 2)]);
  const text = digits.join("");
  return text.padEnd(Math.ceil(text.length / 8) * 8, "=");
}
