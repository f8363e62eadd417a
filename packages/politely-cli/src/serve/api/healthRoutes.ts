import type { FastifyInstance } from "fastify";
import type { ApiParts } from "./apiParts.js";
import { STOPPING_RETRY_MS, stoppingProblem } from "./asProblem.js";
import { ProblemError } from "./problem.js";
import { object } from "./schemas.js";

/** `GET /healthz`: whether the service can do its work. Needs no token: it tells nothing of callers. */
export function healthRoutes(app: FastifyInstance, parts: ApiParts): void {
  const { callers, permits, store, isStoreThere, ticker } = parts;
  const startedAtMs = ticker.nowMs();
  const count = { type: "integer", minimum: 0 };
  const schema = {
    summary: "Whether the service can do its work",
    response: {
      200: {
        ...object(
          {
            status: { type: "string", enum: ["ok"] },
            store: { type: "string", description: "Where state is: memory, sqlite, redis, postgres or dynamodb." },
            waiting: { ...count, description: "Callers that wait for a start, in the proxy too." },
            permits: count,
            uptimeMs: { type: "number", minimum: 0 },
          },
          ["status", "store", "waiting", "permits", "uptimeMs"],
        ),
        description: "It can.",
      },
    },
  };
  app.get("/healthz", { schema, exposeHeadRoute: true }, async () => {
    if (callers.isStopping) throw stoppingProblem();
    if (!(await isStoreThere())) {
      const detail = `The store (${store}) does not answer.`;
      throw new ProblemError(503, detail, { code: "store", retryAfterMs: STOPPING_RETRY_MS });
    }
    const uptimeMs = Math.round(ticker.nowMs() - startedAtMs);
    return { status: "ok", store, waiting: callers.everywhere, permits: permits.size, uptimeMs };
  });
}
