import { domain, object } from "../api/schemas.js";
import { HOST_STATES } from "./row.js";

const number = { type: "number" } as const;
const count = { type: "integer", minimum: 0 } as const;
const numberOrNull = { type: ["number", "null"] } as const;

/** `HostRow` as a JSON Schema. */
export const hostRowSchema = {
  type: "object",
  required: ["domain", "state", "waiting", "inFlight", "total", "throttled", "perSecond", "limits"],
  properties: {
    domain: { type: "string" },
    state: { type: "string", enum: HOST_STATES },
    waiting: count,
    inFlight: count,
    total: count,
    throttled: count,
    perSecond: number,
    allowedPerSecond: numberOrNull,
    nextStartMs: numberOrNull,
    reason: { type: ["string", "null"] },
    until: numberOrNull,
    lastAt: numberOrNull,
    limits: { type: "string" },
  },
} as const;

/** What `GET /v1/hosts` takes and answers. */
export const hostsSchema = {
  summary: "Hosts and how they stand, the most interesting first",
  querystring: {
    type: "object",
    additionalProperties: false,
    properties: {
      q: { type: "string", maxLength: 253, description: "part of the host's name" },
      state: { type: "string", enum: HOST_STATES },
      limit: { type: "integer", minimum: 1, maximum: 2_000, default: 200 },
    },
  },
  response: {
    200: {
      type: "object",
      required: ["hostCount", "matched", "rows"],
      properties: { hostCount: count, matched: count, rows: { type: "array", items: hostRowSchema } },
    },
  },
} as const;

/** What `GET /v1/timeline` answers. */
export const timelineSchema = {
  summary: "Starts and 429s of the last two minutes, second by second",
  response: {
    200: {
      type: "object",
      required: ["fromMs", "stepMs", "starts", "throttled"],
      properties: {
        fromMs: number,
        stepMs: count,
        starts: { type: "array", items: count },
        throttled: { type: "array", items: count },
        allowedPerSecond: numberOrNull,
      },
    },
  },
} as const;

/** What `GET /v1/timeline/:domain` takes and answers. */
export const hostTimelineSchema = { ...timelineSchema, params: object({ domain }, ["domain"]) } as const;

/** What `GET /v1/feed` is. Its answer is a stream, and is not checked. */
export const feedSchema = {
  summary: "Hosts as they change: server-sent events hello, rows, totals and gone",
  response: {
    200: { description: "The stream", content: { "text/event-stream": { schema: { type: "string" } } } },
  },
} as const;
