import type { FastifyInstance } from "fastify";
import { prometheusMetrics } from "politely/prometheus";
import type { ApiParts } from "./apiParts.js";

/** `GET /metrics`, for Prometheus: what the library measures, and what only the service knows. Counts from now on and until the app closes. */
export function metricsRoutes(app: FastifyInstance, parts: ApiParts): void {
  const metrics = prometheusMetrics(parts.limiter);
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
    return reply.type(metrics.contentType).send(text + ownText(parts));
  });
}

/** The service's own numbers. The limiter hears of none of them: to it, a permit that lapses is released, and who is turned away never came. */
function ownText({ permits, callers }: ApiParts): string {
  const rows: readonly (readonly [name: string, type: "counter" | "gauge", says: string, value: number])[] = [
    ["lapsed_permits_total", "counter", "Permits whose lifetime ended before they were released.", permits.lapsedCount],
    ["turned_away_total", "counter", "Callers of acquire that got a 503 at the door.", callers.turnedAwayCount],
    ["permits", "gauge", "Permits that callers hold.", permits.size],
    ["waiting", "gauge", "Callers that wait for a start, in the proxy too.", callers.everywhere],
  ];
  const texts = rows.map(([suffix, type, says, value]) => {
    const name = `politely_service_${suffix}`;
    return `# HELP ${name} ${says}\n# TYPE ${name} ${type}\n${name} ${value}\n`;
  });
  return texts.join("");
}
