import type { FastifyInstance } from "fastify";
import type { ApiParts } from "./apiParts.js";
import { stoppingProblem } from "./asProblem.js";
import type { EventReaders } from "./eventReaders.js";
import { fieldProblem, ProblemError } from "./problem.js";
import { domain, object } from "./schemas.js";

/** The types of events, as `LimiterEvent` has them. */
const TYPES = [
  "wait",
  "grant",
  "release",
  "refuse",
  "cancel",
  "expire",
  "cooldown",
  "probe",
  "retry",
  "configure",
  "pause",
  "resume",
  "warn",
  "evict",
  "outage",
] as const;
const FULL_RETRY_MS = 10_000;

/** `GET /v1/events`: what happens, as server-sent events. */
export function eventRoutes(app: FastifyInstance, parts: ApiParts, readers: EventReaders): void {
  const { limiter } = parts;
  const schema = {
    summary: "What happens, as server-sent events; data is the event as JSON",
    querystring: object({
      domain,
      type: { type: "string", maxLength: 200, description: `One or more of ${TYPES.join(", ")}, with commas between.` },
    }),
    response: {
      200: { description: "A stream without end.", content: { "text/event-stream": { schema: { type: "string" } } } },
    },
  };
  app.get<{ Querystring: { domain?: string; type?: string } }>("/v1/events", { schema }, async (request, reply) => {
    checkRoom(parts, readers);
    const { domain: name, type } = request.query;
    const types = type === undefined ? undefined : typesOf(type);
    const key = name === undefined ? undefined : (await limiter.explain(name)).key;
    // A store takes its time: the caller may have gone meanwhile, the last place too.
    checkRoom(parts, readers);
    reply.hijack();
    if (request.raw.socket.destroyed || reply.raw.destroyed) return;
    reply.raw.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-accel-buffering": "no",
    });
    reply.raw.flushHeaders();
    readers.add(reply.raw, { key, types });
  });
}

function checkRoom({ callers, turnedAway }: ApiParts, { size, most }: EventReaders): void {
  if (callers.isStopping) throw stoppingProblem();
  if (size < most) return;
  turnedAway.count("events");
  throw new ProblemError(503, `${most} callers read events already.`, { code: "full", retryAfterMs: FULL_RETRY_MS });
}

function typesOf(text: string): ReadonlySet<string> {
  const types = text.split(",").map((type) => type.trim());
  const unknown = types.find((type) => !(TYPES as readonly string[]).includes(type));
  if (unknown === undefined) return new Set(types);
  throw fieldProblem("type", `must be one or more of ${TYPES.join(", ")}; got "${unknown}"`);
}
