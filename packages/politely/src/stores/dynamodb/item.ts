import { StoreError } from "../../errors.js";
import type { DynamodbItem, DynamodbPut } from "../dynamodb.js";

/** A cell as it is in the table. */
export interface StoredCell {
  readonly value: string;
  /** Another one with each write, and never the same again: a cell that was removed and came back is not taken for the one before. */
  readonly version: string;
  readonly expiresUs: number;
}

/** The attribute that the table's key is. */
export const keyName = "key";
/** The attribute that a compare and swap compares. */
export const versionName = "version";
/** The attribute by which DynamoDB removes what has expired: a second since 1970. */
export const ttlName = "ttl";

/** DynamoDB's bound on the key of an item. */
const maxKeyBytes = 2_048;
const hashedPrefix = "sha256:";
const loneSurrogate = /\p{Surrogate}/u;
/** In the year 2255. */
const latestUs = Number.MAX_SAFE_INTEGER;
/** The sweep waits this much longer, so that nothing is removed before the clients see it as expired. */
const sweptLaterSec = 60;

/**
 * The name of an item: the key itself where DynamoDB can keep it, else a hash of it.
 *
 * It cannot when the key is empty or longer than 2,048 bytes; and half a character would come back as another one.
 */
export function itemName(key: string): string | Promise<string> {
  const isKept = key !== "" && !key.startsWith(hashedPrefix) && !loneSurrogate.test(key) && fits(key);
  return isKept ? key : hashed(key);
}

/** The item that keeps a cell. */
export function itemOf(name: string, { value, version, expiresUs }: StoredCell): DynamodbPut["Item"] {
  return {
    [keyName]: { S: name },
    // JSON writes half a character as an escape; UTF-8 cannot have it.
    ...(loneSurrogate.test(value) ? { escaped: { S: JSON.stringify(value) } } : { value: { S: value } }),
    [versionName]: { S: version },
    expiresUs: { N: String(expiresUs) },
    [ttlName]: { N: String(Math.ceil(expiresUs / 1_000_000) + sweptLaterSec) },
  };
}

/** The cell of an item; undefined when there is no item. Throws `StoreError` for one that Politely did not write. */
export function cellOf(item: DynamodbItem | undefined, table: string): StoredCell | undefined {
  if (item === undefined) return undefined;
  const value = item.value?.S ?? unescaped(item.escaped?.S);
  const version = item[versionName]?.S;
  const expiresUs = Number(item.expiresUs?.N ?? Number.NaN);
  if (value === undefined || version === undefined || Number.isNaN(expiresUs)) {
    throw new StoreError(
      `The item "${item[keyName]?.S}" of table "${table}" was not written by Politely. Remove it, or give the store a table of its own.`,
      { isLasting: true },
    );
  }
  return { value, version, expiresUs };
}

/** When a cell ends that is written at `nowUs`. */
export function expiryUs(nowUs: number, ttlUs: number): number {
  return Math.min(nowUs + Math.ceil(ttlUs), latestUs);
}

function fits(key: string): boolean {
  // No character of UTF-16 takes more than three bytes.
  return key.length * 3 <= maxKeyBytes || new TextEncoder().encode(key).length <= maxKeyBytes;
}

async function hashed(key: string): Promise<string> {
  const units = Uint16Array.from({ length: key.length }, (_, index) => key.charCodeAt(index));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", units));
  return hashedPrefix + Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function unescaped(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
