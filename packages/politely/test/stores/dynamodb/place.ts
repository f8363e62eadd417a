import type { DynamoDB } from "@aws-sdk/client-dynamodb";
import type { Cells } from "../../../src/stores/cells.js";

let count = 0;

/** A name that no other test of this process has: for tables, keys and regions. */
export function newName(label: string): string {
  count += 1;
  return `politely-${label}-${process.pid}-${count}`;
}

/** Adds one to the number in a cell, and resolves with the new number. */
export function increment(cells: Cells, key: string): Promise<number> {
  return cells.change([key], ([old]) => {
    const next = Number(old ?? 0) + 1;
    return { writes: [{ index: 0, value: String(next), ttlUs: 600_000_000 }], answer: next };
  });
}

/** Writes values under keys. */
export function put(cells: Cells, values: Readonly<Record<string, string>>): Promise<void> {
  const writes = Object.values(values).map((value, index) => ({ index, value, ttlUs: 600_000_000 }));
  return cells.change(Object.keys(values), () => ({ writes, answer: undefined }));
}

/** The values under keys. */
export function read(cells: Cells, ...keys: readonly string[]): Promise<(string | undefined)[]> {
  return cells.change(keys, (values) => ({ writes: [], answer: [...values] }));
}

/** The store's time. */
export function timeOf(cells: Cells): Promise<number> {
  return cells.change(["time"], (_, nowUs) => ({ writes: [], answer: nowUs }));
}

/** The item of a key as it lies in the table. */
export async function itemIn(client: DynamoDB, table: string, key: string) {
  return (await client.getItem({ TableName: table, Key: { key: { S: key } }, ConsistentRead: true })).Item;
}
