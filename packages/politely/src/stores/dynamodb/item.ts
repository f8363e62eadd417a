import { StoreError } from "../../errors.js";
import type { DynamodbItem, DynamodbPut } from "../dynamodb.js";
import type { SeenCell } from "../swapCells.js";

/** The attribute that the table's key is. */
export const KEY = "key";
/** The attribute that a compare and swap compares. */
export const VERSION = "version";
/** The attribute by which DynamoDB removes what has expired: a second since 1970. */
export const TTL = "ttl";

/** The sweep waits this much longer, so that nothing is removed before the clients see it as expired. */
const SWEPT_LATER_SEC = 60;

/** The item that keeps a cell. */
export function itemOf(name: string, { value, version, expiresUs }: SeenCell): DynamodbPut["Item"] {
  return {
    [KEY]: { S: name },
    value: { S: value },
    [VERSION]: { S: version },
    expiresUs: { N: String(expiresUs) },
    [TTL]: { N: String(Math.ceil(expiresUs / 1_000_000) + SWEPT_LATER_SEC) },
  };
}

/** The cell of an item; undefined when there is no item. Throws `StoreError` for one that Politely did not write. */
export function cellOf(item: DynamodbItem | undefined, table: string): SeenCell | undefined {
  if (item === undefined) return undefined;
  const value = item.value?.S;
  const version = item[VERSION]?.S;
  const expiresUs = Number(item.expiresUs?.N ?? Number.NaN);
  if (value === undefined || version === undefined || Number.isNaN(expiresUs)) {
    throw new StoreError(
      `The item "${item[KEY]?.S}" of table "${table}" was not written by Politely. Remove it, or give the store a table of its own.`,
      { isLasting: true },
    );
  }
  return { value, version, expiresUs };
}
