import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import ts from "typescript";

const sources = fileURLToPath(new URL("../../../src/", import.meta.url));

/** A file of `src/` as JavaScript that a worker can load, from the sources as they are now. */
export interface CompiledEntry {
  readonly url: string;
  remove(): void;
}

/** Compiles `entry`, a path from `src/`, and all it imports into a temporary folder, without looking at types. */
export function compileEntry(entry: string): CompiledEntry {
  const folder = mkdtempSync(join(tmpdir(), "politely-threads-"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true };
  const paths = new Set([entry]);
  // A set hands out what is added to it while it is walked.
  for (const path of paths) {
    const { outputText } = ts.transpileModule(readFileSync(join(sources, path), "utf8"), { compilerOptions });
    for (const [, specifier] of outputText.matchAll(/from "(\.[^"]+)\.js"/g)) {
      paths.add(posix.join(posix.dirname(path), `${specifier}.ts`));
    }
    const file = join(folder, path.replace(/\.ts$/, ".js"));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, outputText);
  }
  return {
    url: pathToFileURL(join(folder, entry.replace(/\.ts$/, ".js"))).href,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
