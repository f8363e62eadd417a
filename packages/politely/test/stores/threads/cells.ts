import type { Cells } from "../../../src/stores/cells.js";
import { threadCells } from "../../../src/stores/threads.js";
import { accounts, openAccounts } from "./accounts.js";

/** A memory of 128 KiB with the accounts in it, and cells of this thread. */
export async function memoryWithAccounts(): Promise<{ memory: SharedArrayBuffer; cells: Cells }> {
  const memory = new SharedArrayBuffer(131_072);
  const cells = threadCells(memory, { busyMs: 30_000 });
  await cells.change(accounts, () => ({ writes: openAccounts(), answer: undefined }));
  return { memory, cells };
}

/** Looks at cells, and changes nothing. */
export function look(cells: Cells, keys: readonly string[]): Promise<readonly (string | undefined)[]> {
  return cells.change(keys, (values) => ({ writes: [], answer: values }));
}

/** Writes one cell, whatever it was. */
export function put(cells: Cells, key: string, value: string, ttlUs: number): Promise<void> {
  return cells.change([key], () => ({ writes: [{ index: 0, value, ttlUs }], answer: undefined }));
}
