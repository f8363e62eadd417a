import fc from "fast-check";
import { expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { seeded } from "../../../politely/test/laws/seeded.js";
import { inspectPolicy } from "../../src/policy/inspectPolicy.js";
import { jsonPlaces } from "../../src/policy/jsonPlaces.js";
import { offsetOfProblem, type Place, positionsIn } from "../../src/policy/place.js";
import { readYaml } from "../../src/policy/readYaml.js";

/** Any JSON whose leaves are all different texts, so that each can be looked for in the file. */
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof({ maxDepth: 4 }, fc.constant("leaf"), fc.array(tie("tree"), { maxLength: 4 }), tie("object")),
  object: fc.dictionary(fc.oneof(fc.string(), fc.constantFrom("a", "b.c", "d[0]", '"', "\\", "1")), tie("tree"), {
    maxKeys: 4,
  }),
}));

function numbered(value: unknown, next: { count: number }): unknown {
  if (Array.isArray(value)) return value.map((item) => numbered(item, next));
  if (typeof value !== "object" || value === null) return `leaf-${next.count++}-`;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, numbered(field, next)]));
}

/** Visits every part of a value with its place. */
function eachPlace(value: unknown, place: Place | undefined, look: (value: unknown, place: Place) => void): void {
  if (place === undefined) throw new Error(`no place for ${JSON.stringify(value)}`);
  look(value, place);
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) eachPlace(item, place.items?.[index], look);
  } else if (typeof value === "object" && value !== null) {
    for (const [name, field] of Object.entries(value)) eachPlace(field, place.fields?.get(name), look);
  }
}

it("knows where every part of a JSON text begins, however it is laid out", () => {
  fc.assert(
    fc.property(tree, fc.constantFrom("", "  ", "\t"), (shape, indent) => {
      const value = numbered(shape, { count: 0 });
      const text = JSON.stringify(value, undefined, indent);
      const { root, doubled } = jsonPlaces(text);
      expect(doubled).toEqual([]);
      eachPlace(value, root, (part, { offset }) => {
        const beginning = typeof part === "string" ? JSON.stringify(part) : Array.isArray(part) ? "[" : "{";
        expect(text.slice(offset, offset + beginning.length)).toBe(beginning);
      });
    }),
    seeded(300),
  );
});

it("knows where every text in a YAML file begins, and reads the file as the package does", () => {
  fc.assert(
    fc.property(tree, (shape) => {
      const value = numbered(shape, { count: 0 });
      const text = stringify(value, { lineWidth: 0 });
      const reading = readYaml(text);
      expect(reading.problems).toEqual([]);
      expect(reading.value).toEqual(value);
      eachPlace(value, reading.root, (part, { offset }) => {
        // Where an object or a list begins depends on how it is laid out.
        const beginning = typeof part === "string" ? part : "";
        expect(text.slice(offset, offset + beginning.length)).toBe(beginning);
      });
    }),
    seeded(300),
  );
});

it("resolves anchors, aliases and merge keys as the package does", () => {
  const text = `
a: &a { x: 1, y: [2, &s three] }
b: &b { <<: *a, x: 4 }
c: { z: 5, <<: [*b, { x: 6, w: *s }], v: ~ }
d: [*a, *b, *s]
&k e: 0x1F
1.0: .inf
`;
  const { value, problems } = readYaml(text);
  expect(problems).toEqual([]);
  expect(value).toEqual(parse(text, { merge: true }));
});

const host = fc
  .tuple(fc.constantFrom("", "*."), fc.array(fc.stringMatching(/^[a-z]{1,8}$/), { minLength: 2, maxLength: 3 }))
  .map(([star, labels]) => star + labels.join("."));

it("points to the value that is wrong, wherever it stands in the policy", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(host, { minLength: 1, maxLength: 6 }),
      fc.nat(),
      fc.constantFrom("rate", "window", "windows", "intent"),
      fc.constantFrom("json", "yaml"),
      (hosts, chosen, where, format) => {
        const bad = {
          rate: { rate: "wrong" },
          window: { window: "wrong" },
          windows: { window: ["1/s", "wrong"] },
          intent: { rate: "1/s", intents: { "a.b": { rate: "wrong" } } },
        }[where];
        const entries = hosts.map((name, index) => [name, index === chosen % hosts.length ? bad : { rate: "1/s" }]);
        const policy = { default: { rate: "1/s" }, hosts: Object.fromEntries(entries) as object };
        const text = format === "json" ? JSON.stringify(policy, undefined, 2) : stringify(policy, { lineWidth: 0 });
        const { problems } = inspectPolicy(text, `p.${format}`);
        expect(problems).toHaveLength(1);
        const offset = text.indexOf("wrong") - (format === "json" ? 1 : 0);
        expect(problems[0]).toMatchObject(positionsIn(text)(offset));
      },
    ),
    seeded(200),
  );
});

it("finds a name of more than 100 characters, which a path cuts short", () => {
  const name = `${"long".repeat(30)}.org`;
  const { root } = jsonPlaces(`{"hosts": {"${name}": 5}}`);
  const path = `hosts[${JSON.stringify(`${name.slice(0, 100)}…`)}]`;
  expect(offsetOfProblem(root, path, "must be an object")).toBe(15 + name.length);
});

it("points to the object where a field is missing, and to the whole file when nothing fits", () => {
  const { root } = jsonPlaces('{"hosts": {"x.org": {"quota": {}}}}');
  expect(offsetOfProblem(root, 'hosts["x.org"].quota.count', "is missing")).toBe(21);
  expect(offsetOfProblem(root, "elsewhere[3]", "is missing")).toBe(0);
});

it("counts lines and columns from 1, with either line end", () => {
  const position = positionsIn("ab\r\nc\n\nd");
  expect([0, 1, 4, 6, 7, 8].map(position)).toEqual([
    { line: 1, column: 1 },
    { line: 1, column: 2 },
    { line: 2, column: 1 },
    { line: 3, column: 1 },
    { line: 4, column: 1 },
    { line: 4, column: 2 },
  ]);
});
