import { describe, expect, it } from "vitest";
import { cellStore } from "../../src/stores/cellStore.js";
import { memoryCells } from "../../src/stores/memory.js";
import { storeSuite } from "../../src/testing/storeSuite.js";
import { cellsSuite, spoilIn } from "./cellsSuite.js";

const nowUs = (): number => Math.trunc(performance.now() * 1000);

cellsSuite("memory", async () => {
  const cells = memoryCells(nowUs);
  return { cells, another: async () => cells, close: async () => undefined };
});

describe("memory as a store", () => {
  const open = async () => {
    const cells = memoryCells(nowUs);
    // Two stores over the same cells: what each of them puts together is its own.
    const another = async () => cellStore(cells);
    return { store: await another(), another, spoil: spoilIn(cells), close: async () => undefined };
  };
  it.each(storeSuite("memory", open).map(({ title, run }) => [title, run] as const))("%s", (_title, run) => run());
});

it("forgets expired cells bit by bit", async () => {
  let us = 0;
  const cells = memoryCells(() => us);
  const write = (key: string) =>
    cells.change([key], () => ({ writes: [{ index: 0, value: "kept", ttlUs: 1_000 }], answer: undefined }));
  for (let index = 0; index < 100; index++) await write(`old ${index}`);
  us = 2_000;
  for (let index = 0; index < 100; index++) await write(`new ${index}`);
  const values = await cells.change(["old 5", "new 5"], (read) => ({ writes: [], answer: [...read] }));
  expect(values).toEqual([undefined, "kept"]);
});
