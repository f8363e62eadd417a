import type { KeyCounts } from "./urlQueue.js";

/** Reads a row of counts, whose numbers may be text or missing. */
export function countsOf(row: unknown): KeyCounts {
  const fields = Object(row) as Record<string, unknown>;
  const number = (name: string): number => Number(fields[name] ?? 0);
  return {
    key: typeof fields.key === "string" ? fields.key : "",
    total: number("total"),
    waiting: number("waiting"),
    fetched: number("fetched"),
    refused: number("refused"),
    failed: number("failed"),
  };
}

/** Counts of a key, all zero. */
export function noCounts(key: string): KeyCounts {
  return { key, total: 0, waiting: 0, fetched: 0, refused: 0, failed: 0 };
}
