import type { Bucket } from "./bucket.js";
import type { BucketFields } from "./collectFields.js";
import { readCount, readUsed, splitAtCommas } from "./fieldValue.js";
import { readResetMs } from "./resetValue.js";
import type { ServerClock } from "./serverClock.js";
import { readWindowWord } from "./timeSpan.js";

/** More buckets than this in one field are nonsense; what comes after them is not looked at. */
const maxParts = 64;

const usedOfLimit = /^(?:([\w.-]+)\s*=\s*)?(\d+(?:\.\d+)?)\s*\/\s*(\d+(?:\.\d+)?)(?:\(.*\))?$/;
const wholeNumber = /^-?\d+$/;
const windowInName = /(\d{1,4})(min|hour)s?$/i;
const member = /^\s*([a-z]+)\s*=\s*([\d.]+)\s*$/;

/** Reads a field that says everything about its buckets at once; undefined when the bucket has no such field. */
export function summaryBuckets({ byRole, first }: BucketFields, clock: ServerClock): Bucket[] | undefined {
  const field = byRole.usedOfLimit ?? byRole.namedRemaining ?? byRole.totals ?? byRole.perSecond;
  if (field === undefined) return undefined;
  const parts = splitAtCommas(field.text).slice(0, maxParts);
  const read: Partial<Record<string, () => (Partial<Bucket> | undefined)[]>> = {
    // Salesforce separates its buckets with either sign.
    usedOfLimit: () => parts.flatMap((part) => part.split(";").map((each) => readUsedOfLimit(each.trim()))),
    namedRemaining: () => parts.map(readNamedRemaining),
    totals: () => [readTotals(field.text, clock)],
    perSecond: () => [readPerSecond(field.text)],
  };
  const found = read[field.name.role]?.() ?? [];
  return found
    .filter((bucket) => bucket !== undefined)
    .map((bucket) => ({ ...nothing, name: first.dimension, label: field.name.label, ...bucket }));
}

const nothing = {
  limit: undefined,
  remaining: undefined,
  resetMs: undefined,
  policyWindowMs: undefined,
  unit: undefined,
};

/** `32/40`, `api-usage=18/5000`, `per-app-api-usage=17/250(appName=sample)`. */
function readUsedOfLimit(text: string): Partial<Bucket> | undefined {
  const match = usedOfLimit.exec(text);
  if (match === null) return undefined;
  const [, name, used, whole] = match;
  const limit = readCount(whole);
  return { ...(name === undefined ? {} : { name }), limit, remaining: Math.max(0, limit - readUsed(used)) };
}

/** `Microsoft.Compute/HighCostGet3Min;159`, whose name holds the window, or a number alone. */
function readNamedRemaining(text: string): Partial<Bucket> | undefined {
  const semicolon = text.lastIndexOf(";");
  const name = text.slice(0, Math.max(semicolon, 0)).trimEnd();
  const number = text.slice(semicolon + 1).trim();
  if (name === "" ? semicolon !== -1 : !wholeNumber.test(number)) return undefined;
  const remaining = readCount(number);
  if (remaining < 0) return undefined;
  if (name === "") return { remaining };
  const window = windowInName.exec(name);
  const policyWindowMs = window === null ? undefined : readWindowWord(window[0].toLowerCase())?.windowMs;
  return { name, remaining, policyWindowMs };
}

/** `total=100; remaining=99; resets=45`. */
function readTotals(text: string, clock: ServerClock): Partial<Bucket> | undefined {
  const found = new Map<string, string>();
  for (const part of text.split(";").slice(0, maxParts)) {
    const match = member.exec(part);
    if (match !== null) found.set(match[1], match[2]);
  }
  const limit = countIn(found, "total") ?? countIn(found, "limit");
  const remaining = countIn(found, "remaining");
  if (limit === undefined && remaining === undefined) return undefined;
  const reset = found.get("resets") ?? found.get("reset");
  const resetMs = reset === undefined ? undefined : readResetMs(reset, { clock, unitMs: 1_000, isDelay: false });
  return { limit, remaining, resetMs };
}

function countIn(found: ReadonlyMap<string, string>, key: string): number | undefined {
  const count = readCount(found.get(key) ?? "");
  return count < 0 ? undefined : count;
}

/** A rate as a limit: `10.0` is 10 a second, `0.0167` is 1 in 60 seconds. */
function readPerSecond(text: string): Partial<Bucket> | undefined {
  const rate = readCount(text) < 0 ? 0 : Number(text);
  if (rate === 0) return undefined;
  if (Number.isInteger(rate)) return { limit: Math.min(rate, Number.MAX_SAFE_INTEGER), policyWindowMs: 1_000 };
  return { limit: 1, policyWindowMs: Math.min(Math.ceil(1_000 / rate), Number.MAX_SAFE_INTEGER) };
}
