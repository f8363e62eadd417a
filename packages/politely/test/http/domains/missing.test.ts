import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CompiledLibrary, compileLibrary } from "../../fleet/compileLibrary.js";

// The compiled library lies in a folder of its own, so that no package is to be found beside it.
describe("without tldts", () => {
  let library: CompiledLibrary;
  const folder = mkdtempSync(join(tmpdir(), "politely-no-tldts-"));
  beforeAll(async () => {
    library = await compileLibrary();
    writeFileSync(join(folder, "politely.json"), '{ "groupBy": "domain" }');
  });
  afterAll(() => {
    library.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  const run = async (...args: readonly string[]): Promise<string> => {
    try {
      return (await promisify(execFile)(process.execPath, args, { cwd: folder })).stdout;
    } catch (error) {
      return (error as { readonly stderr: string }).stderr;
    }
  };

  it("a program that is paced from outside is told what to install", async () => {
    expect(await run("--import", `${library.url}register.js`, "-e", "")).toContain("npm install tldts");
  });

  it("a policy that groups by domain says what to install and to import", async () => {
    const code = `import(${JSON.stringify(`${library.url}index.js`)}).then(({ politely }) => politely({ groupBy: "domain" }))`;
    expect(await run("-e", code)).toContain('run npm install tldts, and add import "politely/domains" to the program');
  });

  it("the entry names the package that is missing, and everything else works", async () => {
    expect(await run("-e", `import(${JSON.stringify(`${library.url}http/domains/index.js`)})`)).toContain("'tldts'");
    const paced = `import(${JSON.stringify(`${library.url}index.js`)}).then(({ politely }) => console.log(politely().check("a.org").proceed))`;
    expect(await run("-e", paced)).toContain("true");
  });
});
