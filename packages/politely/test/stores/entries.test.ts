import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CompiledLibrary, compileLibrary } from "../fleet/compileLibrary.js";

/** A store that is nobody's, in a program that prints what comes of it. */
const program = (root: string, store: string): string => `
  ${store === "" ? "" : `await import(${JSON.stringify(store)});`}
  const { politely } = await import(${JSON.stringify(root)});
  const store = { name: "mine", timeline: "epoch", transact: () => Promise.reject(new Error("nothing here")) };
  try {
    await politely({ default: { rate: "1/s" } }, { store, outage: "open" }).check("a.example");
    console.log("made");
  } catch (error) {
    console.log(error.message);
  }
  process.exit();
`;

describe("the code that limiters with a store need", () => {
  let library: CompiledLibrary;
  beforeAll(async () => {
    library = await compileLibrary();
  });
  afterAll(() => library.remove());

  const said = async (store: string): Promise<string> => {
    const entry = (name: string): string => (name === "" ? "" : new URL(`${name}.js`, library.url).href);
    const code = program(entry("index"), entry(store));
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code]);
    return stdout.trim();
  };

  it.each(["redis", "postgres", "dynamodb", "sqlite", "threads", "store"])("comes with politely/%s", async (entry) => {
    expect(await said(entry)).toBe("made");
  });

  it("does not come with the root, which says what to import", async () => {
    expect(await said("")).toContain('Write: import "politely/store"');
  });
});
