import type { FamilyRank, FieldRole } from "./fieldRole.js";

/** A role that words in a name stand for, and what a bare number in such a field counts. */
export interface RoleWord {
  readonly role: FieldRole;
  /** Milliseconds per unit of a bare number. Default: what `resetUnit` says. */
  readonly unitMs?: number;
}

/** A field whose name has to be known. One `*` stands for a part that names the bucket. */
export interface NamedField extends RoleWord {
  readonly name: string;
  /** Fields with the same bucket belong together. Default: each field is a bucket of its own. */
  readonly bucket?: string;
  readonly windowMs?: number;
  /** Default: vendor. */
  readonly rank?: FamilyRank;
  /** The name is so common that it means something only beside another field of its bucket. */
  readonly isShy?: boolean;
}

/** How a wait is written: as `Retry-After` is, in milliseconds, or as vendors do (seconds, Unix time, a date, a duration). */
export type WaitForm = "standard" | "milliseconds" | "vendor";

/** A field that says how long to stay away. */
export interface WaitField {
  readonly name: string;
  readonly form: WaitForm;
}

const second = 1_000;
const minute = 60_000;
const day = 86_400_000;

/** The fields that say how long to stay away. The first that asks for some time decides. */
export const waitFields: readonly WaitField[] = [
  { name: "retry-after-ms", form: "milliseconds" },
  { name: "retry-after", form: "standard" },
  { name: "x-retry-after", form: "vendor" },
  { name: "x-ratelimit-retry-after", form: "vendor" },
  { name: "x-rate-limit-retry-after", form: "vendor" },
  { name: "ratelimit-retry-after", form: "vendor" },
  { name: "x-rate-limit-retry-after-milliseconds", form: "milliseconds" },
  { name: "x-rate-limit-retry-after-seconds", form: "vendor" },
  { name: "x-ratelimit-retry-after-seconds", form: "vendor" },
  { name: "x-ms-retry-after-ms", form: "milliseconds" },
  { name: "x-retry-after-ms", form: "milliseconds" },
  { name: "x-retry-in", form: "vendor" },
];

/**
 * What stands before the role in names like `X-Mws-Quota-Remaining`. Names with `ratelimit` or `rate-limit` in them need
 * no line here: whatever stands before that is the vendor.
 */
export const stems: readonly string[] = [
  "x-mws-quota",
  "x-quota",
  "x-tokenlimit",
  "x-app-limit",
  "x-user-limit",
  "anthropic-priority",
  "x-trial-endpoint-call",
];

/** The words for each role. Of two fields for one role the word that comes first here decides. */
export const roleWords: Readonly<Record<string, RoleWord>> = {
  limit: { role: "limit" },
  max: { role: "limit" },
  maximum: { role: "limit" },
  total: { role: "limit" },
  allowed: { role: "limit" },
  remaining: { role: "remaining" },
  remain: { role: "remaining" },
  left: { role: "remaining" },
  available: { role: "remaining" },
  used: { role: "used" },
  usage: { role: "used" },
  count: { role: "used" },
  observed: { role: "used" },
  "reset-after": { role: "resetAfter" },
  "reset-after-seconds": { role: "resetAfter", unitMs: second },
  "reset-in": { role: "resetAfter" },
  "resets-in": { role: "resetAfter" },
  "reset-after-ms": { role: "resetAfter", unitMs: 1 },
  "reset-after-milliseconds": { role: "resetAfter", unitMs: 1 },
  "reset-in-ms": { role: "resetAfter", unitMs: 1 },
  reset: { role: "reset" },
  resets: { role: "reset" },
  "reset-at": { role: "reset" },
  "resets-at": { role: "reset" },
  "reset-time": { role: "reset" },
  resettime: { role: "reset" },
  "reset-on": { role: "reset" },
  resetson: { role: "reset" },
  "resets-on": { role: "reset" },
  "reset-date": { role: "reset" },
  "reset-timestamp": { role: "reset" },
  "reset-seconds": { role: "reset", unitMs: second },
  "reset-ms": { role: "reset", unitMs: 1 },
  "reset-milliseconds": { role: "reset", unitMs: 1 },
  ...windowWords(["window", "interval", "period", "duration", "time-window"]),
};

/** Words that say what a bucket counts, or for whom. A word that is not here needs both a limit and what remains of it to be believed. */
export const dimensionWords: ReadonlySet<string> = new Set(
  [
    "account api app audio burst call calls client complexity completion core endpoint feature global graphql images input",
    "ip key method organization output path points post project prompt read reads req reqs request requests search service",
    "sustained token tokens user userpath write writes",
  ]
    .join(" ")
    .split(" "),
);

/** Words of buckets that count something else than starts in time. */
export const otherWords: ReadonlySet<string> = new Set(["concurrent", "concurrency", "connections", "parallel"]);

/** Fields whose names follow no rule. A new vendor is a line here. */
export const namedFields: readonly NamedField[] = [
  // Shopify, Gorgias and others of that form; Lightspeed; Salesforce.
  { name: "*-api-call-limit", role: "usedOfLimit" },
  { name: "x-ls-api-bucket-level", role: "usedOfLimit" },
  { name: "sforce-limit-info", role: "usedOfLimit" },
  // Yelp.
  { name: "ratelimit-dailylimit", role: "limit", bucket: "", rank: "triple", windowMs: day },
  // Etsy.
  { name: "x-limit-per-second", role: "limit", bucket: "second", windowMs: second },
  { name: "x-remaining-this-second", role: "remaining", bucket: "second", windowMs: second },
  { name: "x-limit-per-day", role: "limit", bucket: "day", windowMs: day },
  { name: "x-remaining-today", role: "remaining", bucket: "day", windowMs: day },
  // Azure; what remains in the buckets of a resource is one field.
  { name: "x-ms-ratelimit-remaining-resource", role: "namedRemaining" },
  { name: "x-ms-ratelimit-remaining-*", role: "remaining" },
  { name: "x-ms-ratelimit-burst-remaining-*", role: "remaining" },
  // ip-api.com.
  { name: "x-rl", role: "remaining", bucket: "x-rl" },
  { name: "x-ttl", role: "reset", bucket: "x-rl", isShy: true },
  // Amazon's selling partners.
  { name: "x-amzn-ratelimit-limit", role: "perSecond" },
  // BigCommerce.
  { name: "x-rate-limit-requests-quota", role: "limit", bucket: "x-rate-limit-requests" },
  { name: "x-rate-limit-requests-left", role: "remaining", bucket: "x-rate-limit-requests" },
  { name: "x-rate-limit-time-reset-ms", role: "resetAfter", unitMs: 1, bucket: "x-rate-limit-requests", isShy: true },
  { name: "x-rate-limit-time-window-ms", role: "window", unitMs: 1, bucket: "x-rate-limit-requests" },
  // Zendesk.
  { name: "zendesk-ratelimit-*", role: "totals" },
  // Xero.
  { name: "x-daylimit-remaining", role: "remaining", bucket: "day", windowMs: day },
  { name: "x-minlimit-remaining", role: "remaining", bucket: "minute", windowMs: minute },
  { name: "x-appminlimit-remaining", role: "remaining", bucket: "app-minute", windowMs: minute },
  // Qiita; Ticketmaster writes the first of them too.
  { name: "rate-remaining", role: "remaining", bucket: "", rank: "triple" },
  { name: "rate-reset", role: "reset", bucket: "", rank: "triple" },
  // Walmart.
  { name: "x-current-token-count", role: "remaining", bucket: "x-current-token-count" },
  { name: "x-next-replenish-time", role: "reset", bucket: "x-current-token-count", isShy: true },
  { name: "x-next-replenishment-time", role: "reset", bucket: "x-current-token-count", isShy: true },
  // football-data.org; The Odds API.
  { name: "x-requests-available-minute", role: "remaining", bucket: "x-requests-minute", windowMs: minute },
  { name: "x-requestcounter-reset", role: "reset", bucket: "x-requests-minute", isShy: true },
  { name: "x-requests-remaining", role: "remaining", bucket: "x-requests" },
  { name: "x-requests-used", role: "used", bucket: "x-requests" },
  // Spring Cloud Gateway; Pipedrive sends the second beside the common fields.
  { name: "x-ratelimit-burst-capacity", role: "limit", bucket: "", rank: "common" },
  { name: "x-daily-requests-left", role: "remaining", bucket: "day", rank: "common", windowMs: day },
];

function windowWords(words: readonly string[]): Record<string, RoleWord> {
  const units: readonly (readonly [string, number])[] = [
    ["", second],
    ["-s", second],
    ["-sec", second],
    ["-secs", second],
    ["-seconds", second],
    ["-in-sec", second],
    ["-in-seconds", second],
    ["-ms", 1],
    ["-millis", 1],
    ["-milliseconds", 1],
    ["-minutes", minute],
    ["-hours", 60 * minute],
  ];
  return Object.fromEntries(
    words.flatMap((word) => units.map(([ending, unitMs]) => [word + ending, { role: "window" as const, unitMs }])),
  );
}
