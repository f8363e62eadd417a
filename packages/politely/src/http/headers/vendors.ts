import {
  type FieldName,
  FieldNames,
  type FieldRole,
  fixedNames,
  maxNameLength,
  nameOfParts,
  plainName,
  type Summary,
  standardNames,
} from "./fieldNames.js";
import type { Bucket } from "./quotas.js";
import { readDictionary } from "./rateLimitField.js";
import { readCount, readSpanMs } from "./values.js";

/** Fields of one bucket whose names follow no rule. */
interface VendorFields {
  /** What each says, by name. One `*` stands for a part that names the bucket. */
  readonly fields: Readonly<Record<string, FieldRole | "wait">>;
  /** Equal for fields that belong together; `|` and `x|` are the families of the drafts and `X-RateLimit-*`. Default: each field is a bucket of its own. */
  readonly bucket?: string;
  /** It counts a part of the requests. */
  readonly isPart?: boolean;
  /** Milliseconds per unit of a bare number. Default: what `resetUnit` says. */
  readonly unitMs?: number;
  readonly windowMs?: number;
  /** The names are so common that they mean something only beside another field of the bucket. */
  readonly isShy?: boolean;
  readonly summary?: Summary;
}

/** More buckets than this in one field are nonsense; what comes after them is skipped. */
const maxParts = 64;

const second = 1_000;
const minute = 60_000;
const day = 86_400_000;

const usedOfLimit = /^(?:(?<name>[\w.-]+)\s*=\s*)?(?<used>\d+(?:\.\d+)?)\s*\/\s*(?<limit>\d+(?:\.\d+)?)(?:\(.*\))?$/;
const namedRemaining = /^(?:(?<name>.+);\s*)?(?<remaining>\d+)$/;
const windowInName = /\d{1,4}(?:min|hour)s?$/i;

/**
 * The fields of vendors whose names are not made of `ratelimit` or `rate-limit`, a role and what is counted. A new vendor is a line here.
 *
 * A summary says everything about its buckets: `32/40`, `Microsoft.Compute/HighCostGet3Min;159`, `total=100; remaining=99; resets=45`.
 */
const vendorFields: readonly VendorFields[] = [
  // Of fields that ask to wait the first in this order counts, where Retry-After is the second.
  { fields: { "retry-after-ms": "wait" }, unitMs: 1 },
  { fields: { "x-retry-after": "wait", "x-ratelimit-retry-after": "wait", "x-rate-limit-retry-after": "wait" } },
  { fields: { "ratelimit-retry-after": "wait", "x-ratelimit-retry-after-seconds": "wait", "x-retry-in": "wait" } },
  { fields: { "x-rate-limit-retry-after-seconds": "wait" } },
  { fields: { "x-rate-limit-retry-after-milliseconds": "wait", "x-retry-after-ms": "wait" }, unitMs: 1 },
  { fields: { "x-ms-retry-after-ms": "wait" }, unitMs: 1 },
  // Shopify, Gorgias and others of that form; Lightspeed.
  {
    fields: { "x-shopify-shop-api-call-limit": "summary", "*-api-call-limit": "summary" },
    summary: parts(usedOfLimit, ","),
  },
  { fields: { "x-ls-api-bucket-level": "summary" }, summary: parts(usedOfLimit, ",") },
  // Salesforce separates its buckets with either sign.
  { fields: { "sforce-limit-info": "summary" }, summary: parts(usedOfLimit, /[,;]/) },
  // Zendesk; Amazon's selling partners.
  { fields: { "zendesk-ratelimit-*": "summary" }, summary: totals },
  { fields: { "x-amzn-ratelimit-limit": "summary" }, summary: perSecond },
  // Azure; Dataverse.
  { fields: { "x-ms-ratelimit-remaining-resource": "summary" }, summary: parts(namedRemaining, ","), isPart: true },
  { fields: { "x-ms-ratelimit-remaining-*": "remaining" }, isPart: true },
  { fields: { "x-ms-ratelimit-burst-remaining-*": "remaining" } },
  // Yelp.
  { fields: { "ratelimit-dailylimit": "limit" }, bucket: "|", windowMs: day },
  // Etsy.
  {
    fields: { "x-limit-per-second": "limit", "x-remaining-this-second": "remaining" },
    bucket: "second",
    windowMs: second,
  },
  { fields: { "x-limit-per-day": "limit", "x-remaining-today": "remaining" }, bucket: "day", windowMs: day },
  // ip-api.com.
  { fields: { "x-rl": "remaining", "x-ttl": "reset" }, bucket: "x-rl", isShy: true },
  // BigCommerce.
  {
    fields: { "x-rate-limit-requests-quota": "limit", "x-rate-limit-requests-left": "remaining" },
    bucket: "x-rate-limit-requests",
  },
  { fields: { "x-rate-limit-time-reset-ms": "resetAfter" }, bucket: "x-rate-limit-requests", unitMs: 1, isShy: true },
  { fields: { "x-rate-limit-time-window-ms": "window" }, bucket: "x-rate-limit-requests", unitMs: 1 },
  // Xero.
  { fields: { "x-daylimit-remaining": "remaining" }, bucket: "day", windowMs: day },
  { fields: { "x-minlimit-remaining": "remaining" }, bucket: "minute", windowMs: minute },
  { fields: { "x-appminlimit-remaining": "remaining" }, bucket: "app-minute", windowMs: minute },
  // Qiita; Ticketmaster writes the first of them too.
  { fields: { "rate-remaining": "remaining", "rate-reset": "reset" }, bucket: "|" },
  // Walmart.
  { fields: { "x-current-token-count": "remaining" }, bucket: "x-current-token-count" },
  {
    fields: { "x-next-replenish-time": "reset", "x-next-replenishment-time": "reset" },
    bucket: "x-current-token-count",
    isShy: true,
  },
  // football-data.org; The Odds API.
  { fields: { "x-requests-available-minute": "remaining" }, bucket: "x-requests-minute", windowMs: minute },
  { fields: { "x-requestcounter-reset": "reset" }, bucket: "x-requests-minute", isShy: true },
  { fields: { "x-requests-remaining": "remaining", "x-requests-used": "used" }, bucket: "x-requests" },
  // Spring Cloud Gateway; Pipedrive sends the second beside the common fields.
  { fields: { "x-ratelimit-burst-capacity": "limit" }, bucket: "x|" },
  { fields: { "x-daily-requests-left": "remaining" }, bucket: "x|day", windowMs: day },
];

/** What stands before the role in names without `ratelimit` or `rate-limit`. */
const stems = "x-mws-quota|x-quota|x-tokenlimit|x-app-limit|x-user-limit|anthropic-priority|x-trial-endpoint-call";

/** `x-ratelimit-…`, `x-hubspot-rate-limit-…`, `x-featureratelimit-…`, `ratelimitbysize-…`, or one of `stems`. */
const stemmed = new RegExp(`^(?:(?:(.+?)-)?(?:([a-z]*)ratelimit([a-z]*)|rate-limit)|(${stems}))(?:-(.+))?$`);

const named: readonly FieldName[] = vendorFields.flatMap(({ fields, bucket, isPart = false, ...rest }, index) =>
  Object.entries(fields).map(([name, role]) =>
    plainName(name, role, {
      ...rest,
      rank: bucket === "|" ? 0 : bucket?.startsWith("x|") === true ? 2 : 1,
      // The name of a bucket may be that of a dimension elsewhere.
      key: bucket?.includes("|") === true ? bucket : `=${bucket ?? name}`,
      dimension: bucket?.replace(/^x?\|/, "") ?? name,
      isOfHost: !isPart,
      // Behind every other field of a family, to which it adds.
      order: role === "wait" ? index + name.length / maxNameLength : 3 * maxNameLength,
    }),
  ),
);

/** The names of the standards and those of all vendors. */
export const vendorNames = new FieldNames(
  (name) => fixedNames.get(name) ?? namedField(name) ?? stemmedName(name),
  [...standardNames.asked, ...named.map(({ name }) => name)],
);

/** The field of a name; with a star in it, that part of the name is its bucket. */
function namedField(name: string): FieldName | undefined {
  for (const field of named) {
    const [head, tail] = field.name.split("*");
    if (field.name === name) return field;
    const isFit =
      tail !== undefined && name.length > head.length + tail.length && name.startsWith(head) && name.endsWith(tail);
    if (!isFit) continue;
    const part = name.slice(head.length, name.length - tail.length);
    return { ...field, name, label: name, key: `=${part}`, dimension: part };
  }
  return undefined;
}

function stemmedName(name: string): FieldName | null {
  const match = stemmed.exec(name);
  if (match === null) return null;
  const [, vendor = "", before = "", after = "", stem, rest] = match as (string | undefined)[];
  // A stem of this list alone is no limit, as `X-Rate-Limit: 700` is.
  if (stem !== undefined && rest === undefined) return null;
  return nameOfParts({ name, prefix: stem ?? vendor, rest, glued: [before, after] });
}

/** Reads the parts of a value, each a bucket. Groups of the pattern are what it says: `32/40`, `api-usage=18/5000`, `HighCostGet3Min;159`. */
function parts(pattern: RegExp, separator: string | RegExp): Summary {
  return (text) =>
    text.split(separator, maxParts).map((part) => {
      const groups = pattern.exec(part.trim())?.groups as Readonly<Record<string, string | undefined>> | undefined;
      if (groups === undefined) return undefined;
      const [limit, used, remaining] = [groups.limit ?? "", groups.used ?? "", groups.remaining ?? ""];
      const window = windowInName.exec(groups.name ?? "")?.[0];
      return {
        ...(groups.name === undefined ? {} : { name: groups.name.trim() }),
        ...(limit === "" ? {} : { limit: readCount(limit) }),
        remaining: remaining === "" ? Math.max(0, readCount(limit) - readCount(used, true)) : readCount(remaining),
        policyWindowMs: window === undefined ? undefined : readSpanMs(window),
      };
    });
}

/** `total=100; remaining=99; resets=45`. */
function totals(text: string): readonly Partial<Bucket>[] {
  return (readDictionary(text, []) ?? []).map(({ limit, remaining, resetMs }) => ({ limit, remaining, resetMs }));
}

/** A rate as a limit: `10.0` is 10 a second, `0.0167` is 1 in 60 seconds. */
function perSecond(text: string): readonly Partial<Bucket>[] {
  const rate = readCount(text) >= 0 ? Number(text) : 0;
  if (rate === 0) return [];
  const [limit, windowMs] = Number.isInteger(rate) ? [rate, second] : [1, Math.ceil(second / rate)];
  return [
    { limit: Math.min(limit, Number.MAX_SAFE_INTEGER), policyWindowMs: Math.min(windowMs, Number.MAX_SAFE_INTEGER) },
  ];
}
