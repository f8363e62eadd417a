import { posix } from "node:path";
import type { Import, SourceFile } from "./sourceFile.js";

const EVERY_LAYER = ["core", "engine", "fleet", "policy", "stores", "observe", "http", "testing"] as const;

/** Which folders of `src/` a folder may import, beside itself. Files at the top of `src/` may import everything. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  engine: ["core"],
  fleet: ["core", "engine", "stores"],
  policy: ["core"],
  stores: ["core"],
  observe: ["core"],
  http: ["core", "engine", "policy", "observe"],
  testing: EVERY_LAYER,
};

const MAX_FILE_LINES = 800;
const MAX_FUNCTION_LINES = 60;

/** Where the core would get time, randomness or the outside world from. */
const NOT_IN_CORE = [
  "Date",
  "performance",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "Math.random",
  "process",
  "console",
];

/** Imports that join layers the table keeps apart. `errors.ts` and type-only imports are open to every layer. */
export function layerProblems(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => {
    const layer = layerOf(file.path);
    if (layer === "") {
      return [];
    }
    const allowed = MAY_IMPORT[layer];
    if (allowed === undefined) {
      return [`${file.path}: the folder ${layer}/ is not in the table of layers`];
    }
    return file.imports
      .filter(({ specifier, isTypeOnly }) => specifier.startsWith(".") && !isTypeOnly)
      .map(({ specifier }) => resolveImport(file.path, specifier))
      .filter((path) => path !== "errors.ts" && ![layer, ...allowed].includes(layerOf(path)))
      .map((path) => `${file.path}: ${layer}/ may not import ${path}`);
  });
}

/** Files and functions that are too long. */
export function lengthProblems(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => [
    ...(file.lineCount > MAX_FILE_LINES ? [`${file.path}: ${file.lineCount} lines, at most ${MAX_FILE_LINES}`] : []),
    ...file.functions
      .filter(({ lineCount }) => lineCount > MAX_FUNCTION_LINES)
      .map(
        ({ name, line, lineCount }) =>
          `${file.path}:${line}: ${name} has ${lineCount} lines, at most ${MAX_FUNCTION_LINES}`,
      ),
  ]);
}

/** Default exports, and re-exports outside `entries`, which are the files that package.json exports. */
export function exportProblems(files: readonly SourceFile[], entries: readonly string[]): string[] {
  return files.flatMap((file) => [
    ...(file.hasDefaultExport ? [`${file.path}: has a default export; only named ones are used here`] : []),
    ...(file.hasReExport && !entries.includes(file.path)
      ? [`${file.path}: passes on exports of another file; only an entry point's index.ts does that`]
      : []),
  ]);
}

/** Names of the clock, of randomness and of the outside world in `core/`. */
export function purityProblems(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => layerOf(path) === "core")
    .flatMap(({ path, names }) =>
      NOT_IN_CORE.filter((name) => names.has(name)).map((name) => `${path}: mentions ${name}`),
    );
}

/** Everything outside `src/` that loading `entry` would load too, each with the way that leads to it. */
export function outsideImports(files: readonly SourceFile[], entry: string): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const seen = new Set<string>();
  const problems: string[] = [];

  const follow = (path: string, way: readonly string[]): void => {
    if (seen.has(path)) {
      return;
    }
    seen.add(path);
    const file = byPath.get(path);
    if (file === undefined) {
      problems.push(`${way.join(" > ")}: ${path} does not exist`);
      return;
    }
    for (const { specifier } of file.imports.filter(({ isEmitted }: Import) => isEmitted)) {
      if (specifier.startsWith(".")) {
        follow(resolveImport(path, specifier), [...way, path]);
      } else {
        problems.push(`${[...way, path].join(" > ")}: imports ${specifier}`);
      }
    }
  };
  follow(entry, []);
  return problems;
}

function layerOf(path: string): string {
  return path.includes("/") ? (path.split("/")[0] ?? "") : "";
}

function resolveImport(from: string, specifier: string): string {
  return posix.join(posix.dirname(from), specifier).replace(/\.js$/, ".ts");
}
