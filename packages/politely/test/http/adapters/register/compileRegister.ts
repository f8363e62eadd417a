import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import ts from "typescript";

const SOURCES = fileURLToPath(new URL("../../../../src/", import.meta.url));
const ENTRY = "register.ts";

/** `politely/register` as JavaScript that a child process can load, from the sources as they are now. */
export interface CompiledRegister {
  /** What `--import` takes. */
  readonly url: string;
  remove(): void;
}

/** Compiles the entry and all it imports into a temporary folder, without looking at types. */
export async function compileRegister(): Promise<CompiledRegister> {
  const folder = mkdtempSync(join(tmpdir(), "politely-register-"));
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  const paths = new Set([ENTRY]);
  // A set hands out what is added to it while it is walked.
  for (const path of paths) {
    const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true };
    const { outputText } = ts.transpileModule(readFileSync(join(SOURCES, path), "utf8"), { compilerOptions: options });
    for (const [, specifier] of outputText.matchAll(/(?:from|import) "(\.[^"]+)\.js"/g)) {
      paths.add(posix.join(posix.dirname(path), `${specifier}.ts`));
    }
    const file = join(folder, path.replace(/\.ts$/, ".js"));
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, outputText);
  }
  return {
    url: pathToFileURL(join(folder, ENTRY.replace(/\.ts$/, ".js"))).href,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
