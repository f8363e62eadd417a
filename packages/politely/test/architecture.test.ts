import { readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { exportProblems, layerProblems, lengthProblems, outsideImports, purityProblems } from "./architecture/rules.js";
import type { SourceFile } from "./architecture/sourceFile.js";
import { parseSource } from "./architecture/sourceFile.js";

const packageFolder = fileURLToPath(new URL("..", import.meta.url));
const sources = readFolder("src");
const tests = readFolder("test");

describe("the source", () => {
  it("is found", () => {
    expect(sources.map(({ path }) => path)).toContain("index.ts");
  });

  it("keeps to the table of layers", () => {
    expect(layerProblems(sources)).toEqual([]);
  });

  it("has files of at most 800 lines and functions of at most 60", () => {
    expect(lengthProblems(sources)).toEqual([]);
  });

  it("has named exports only, and passes exports on in entry points only", () => {
    expect(exportProblems(sources, entryPoints())).toEqual([]);
  });

  it("keeps clock, randomness and the outside world out of the core", () => {
    expect(purityProblems(sources)).toEqual([]);
  });

  it("loads neither a node: module nor a dependency through the root entry", () => {
    expect(outsideImports(sources, "index.ts")).toEqual([]);
  });
});

describe("the tests", () => {
  it("have files of at most 800 lines", () => {
    const withoutFunctions = tests.map((file) => ({ ...file, functions: [] }));
    expect(lengthProblems(withoutFunctions)).toEqual([]);
  });
});

// A rule that notices nothing passes for ever, so each one is shown something to notice.
describe("the rules", () => {
  it("notice an import from a layer that is not below", () => {
    const file = parseSource(
      "core/gap.ts",
      'import { politely } from "../politely.js";\nimport { x } from "../policy/x.js";',
    );
    expect(layerProblems([file])).toEqual([
      "core/gap.ts: core/ may not import politely.ts",
      "core/gap.ts: core/ may not import policy/x.ts",
    ]);
  });

  it("notice a dynamic import and a passed-on export", () => {
    const file = parseSource(
      "policy/x.ts",
      'export { a } from "../http/a.js";\nconst b = await import("../http/b.js");',
    );
    expect(layerProblems([file])).toHaveLength(2);
  });

  it("notice a folder that the table does not know", () => {
    expect(layerProblems([parseSource("helpers/x.ts", "")])).toHaveLength(1);
  });

  it("let types, errors, the same folder and lower layers through", () => {
    const text = [
      'import type { A } from "../policy/types.js";',
      'import { type B, type C } from "../policy/types.js";',
      'import { ClosedError } from "../errors.js";',
      'import { lane } from "./lane.js";',
      'import { gapReadyAt } from "../core/limits/gap.js";',
    ].join("\n");
    expect(layerProblems([parseSource("fleet/limiter.ts", text)])).toEqual([]);
  });

  it("notice a mixed import of a type and a value", () => {
    const file = parseSource("core/gap.ts", 'import { type A, b } from "../policy/types.js";');
    expect(layerProblems([file])).toHaveLength(1);
  });

  it("notice a long file and a long function", () => {
    const body = "  work();\n".repeat(59);
    const long = parseSource("core/long.ts", `export function long() {\n${body}}\n${"// line\n".repeat(800)}`);
    expect(lengthProblems([long])).toEqual([
      "core/long.ts: 861 lines, at most 800",
      "core/long.ts:1: long has 61 lines, at most 60",
    ]);
  });

  it("notice a default export in each of its forms", () => {
    for (const text of ["export default 1;", "export default class {}", "const a = 1;\nexport { a as default };"]) {
      expect(exportProblems([parseSource("core/a.ts", text)], [])).toHaveLength(1);
    }
  });

  it("notice a barrel file that is no entry point", () => {
    const barrel = parseSource("core/index.ts", 'export * from "./gap.js";');
    expect(exportProblems([barrel], [])).toHaveLength(1);
    expect(exportProblems([barrel], ["core/index.ts"])).toEqual([]);
  });

  it("notice the clock in code and not in comments or strings", () => {
    const text = 'const now = Date.now();\nconst roll = Math.random();\n// process\nexport const name = "console";';
    expect(purityProblems([parseSource("core/a.ts", text)])).toEqual([
      "core/a.ts: mentions Date",
      "core/a.ts: mentions Math.random",
    ]);
  });

  it("notice a node: module two files away, and not one behind a type", () => {
    const files = [
      parseSource("index.ts", 'export { a } from "./a.js";\nimport type { b } from "./b.js";'),
      parseSource("a.ts", 'import { c } from "./c.js";'),
      parseSource("b.ts", 'import "tldts";'),
      parseSource("c.ts", 'import { hostname } from "node:os";'),
    ];
    expect(outsideImports(files, "index.ts")).toEqual(["index.ts > a.ts > c.ts: imports node:os"]);
  });
});

function readFolder(folder: string): SourceFile[] {
  return readdirSync(join(packageFolder, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => parseSource(path.replaceAll(sep, "/"), readFileSync(join(packageFolder, folder, path), "utf8")));
}

/** The files of `src/` behind the entries of package.json. */
function entryPoints(): string[] {
  const manifest = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8")) as {
    exports: Record<string, string | { default: string }>;
  };
  return Object.values(manifest.exports)
    .map((entry) => (typeof entry === "string" ? entry : entry.default))
    .filter((path) => path.endsWith(".js"))
    .map((path) => path.replace("./dist/", "").replace(/\.js$/, ".ts"));
}
