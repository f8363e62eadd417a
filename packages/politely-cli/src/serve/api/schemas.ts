/** A JSON Schema, as fastify, ajv and OpenAPI 3.1 understand it. */
export type Schema = Readonly<Record<string, unknown>>;

/** An object with these fields and no others. */
export function object(properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema {
  return { type: "object", properties, required, additionalProperties: false };
}

/** Lifetimes of permits, in milliseconds. */
export const TTL_MS = { least: 100, usual: 60_000, most: 3_600_000 } as const;

/** The longest text that names a domain. */
export const DOMAIN_MOST = 4_096;

export const domain: Schema = {
  type: "string",
  minLength: 1,
  maxLength: DOMAIN_MOST,
  description: "A host, or a URL whose host is taken.",
};

/** The fields that say what a request is aimed at. */
export const targetFields: Readonly<Record<string, Schema>> = {
  domain,
  intent: {
    type: "string",
    minLength: 1,
    maxLength: 200,
    description: "What the request is for; limits of the policy under intents come on top.",
  },
  scopes: {
    type: "array",
    maxItems: 16,
    items: { type: "string", minLength: 1, maxLength: 200 },
    description: "Further keys that are counted too, each matching an entry of the policy's scopes.",
  },
};

export const permit: Schema = {
  type: "string",
  minLength: 1,
  maxLength: 100,
  description: "What acquire answered.",
};

export const ttlMs: Schema = {
  type: "integer",
  minimum: TTL_MS.least,
  maximum: TTL_MS.most,
  description: `How long the permit lives unless it is renewed. Default ${TTL_MS.usual}.`,
};

const milliseconds: Schema = { type: "number", minimum: 0 };
/** Null where there is no end: a pause without a duration. */
const waitMs: Schema = { type: ["number", "null"], minimum: 0 };

/** The fields that say how a request ended: a word, or the answer's status and headers. */
export function outcomeFields(kinds: readonly string[]): Readonly<Record<string, Schema>> {
  return {
    outcome: { type: "string", enum: kinds, description: "How the request ended." },
    status: {
      type: "integer",
      minimum: 100,
      maximum: 999,
      description: "The status of the answer, in place of outcome.",
    },
    headers: {
      type: "object",
      description: "Headers of the answer, with status: Retry-After and RateLimit are heard.",
      additionalProperties: {
        anyOf: [{ type: "string" }, { type: "number" }, { type: "array", items: { type: "string" } }],
      },
    },
    retryAfterMs: { ...milliseconds, maximum: 31_536_000_000, description: "How long the site asked to stay away." },
    latencyMs: { ...milliseconds, maximum: 86_400_000, description: "How long the answer took." },
  };
}

const isEstimate: Schema = {
  type: "boolean",
  description: "true where only an answer can tell: waitMs then says when to look again.",
};

export const decision: Schema = {
  ...object(
    {
      proceed: { type: "boolean" },
      waitMs: {
        ...waitMs,
        description: "0 exactly when it may proceed; null while there is no end in sight: a pause.",
      },
      reason: { type: "string" },
      isEstimate,
    },
    ["proceed", "waitMs"],
  ),
  description: "Whether a request may start now.",
};

const count: Schema = { type: "integer", minimum: 0 };

/** A row of statistics. */
export const statsRow: Schema = {
  type: "object",
  description: "Counts of one domain.",
  required: [
    "domain",
    "total_requests",
    "delayed_requests",
    "total_wait_time_ms",
    "average_wait_time_ms",
    "delay_rate",
  ],
  properties: {
    domain: { type: "string" },
    total_requests: count,
    delayed_requests: count,
    total_wait_time_ms: milliseconds,
    average_wait_time_ms: milliseconds,
    last_request_time: { type: ["string", "null"] },
    delay_rate: { type: "number", minimum: 0, maximum: 1 },
    cancelled_requests: count,
    throttled_requests: count,
    mean_interval_ms: milliseconds,
    in_flight: count,
    waiting: count,
    cooldown_ms: waitMs,
    tokens: { type: ["number", "null"] },
    windows: {
      type: "array",
      items: object(
        {
          calls: count,
          remaining: count,
          period_ms: milliseconds,
          next_free_ms: milliseconds,
          oldest_leaves_ms: milliseconds,
        },
        ["calls", "remaining", "period_ms", "next_free_ms"],
      ),
    },
    asked: count,
    granted: count,
    refused: count,
    cancelled: count,
    expired: count,
    released: count,
    lapsed: count,
    folded_hosts: count,
  },
  additionalProperties: false,
};

export const explanation: Schema = {
  ...object(
    {
      key: { type: "string" },
      proceed: { type: "boolean" },
      waitMs,
      isEstimate,
      ahead: count,
      origin: { type: "string" },
      causes: {
        type: "array",
        items: object(
          {
            limit: { type: "string" },
            scope: { type: "string" },
            key: { type: "string" },
            waitMs,
            message: { type: "string" },
            because: { type: "string" },
          },
          ["limit", "scope", "key", "waitMs", "message"],
        ),
      },
    },
    ["key", "proceed", "waitMs", "ahead", "origin", "causes"],
  ),
  description: "Why a request would wait now, the most binding cause first.",
};

/** The answer that has no body. */
export const nothing: Schema = { type: "null", description: "Done." };

/** Problem details, RFC 9457. */
export const problem: Schema = {
  type: "object",
  required: ["type", "title", "status", "detail"],
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer", minimum: 400, maximum: 599 },
    detail: { type: "string" },
    code: { type: "string" },
    waitMs,
    reason: { type: "string" },
    errors: { type: "array", items: object({ field: { type: "string" }, message: { type: "string" } }, ["field"]) },
  },
};
