import type { FastifyInstance } from "fastify";
import { prometheusMetrics } from "politely/prometheus";
import type { ApiParts } from "./apiParts.js";

/** `GET /metrics`, for Prometheus. Counts from now on and until the app closes. */
export function metricsRoutes(app: FastifyInstance, { limiter }: ApiParts): void {
  const metrics = prometheusMetrics(limiter);
  app.addHook("onClose", (_app, done) => {
    metrics.close();
    done();
  });
  const schema = {
    summary: "Metrics for Prometheus; names begin with politely_",
    response: {
      200: { description: "The text format.", content: { "text/plain": { schema: { type: "string" } } } },
    },
  };
  app.get("/metrics", { schema, exposeHeadRoute: true }, async (_request, reply) => {
    const text = await metrics.text();
    return reply.type(metrics.contentType).send(text);
  });
}
