import type { FastifyInstance } from "fastify";
import type { LimiterEvent, Stats } from "politely";
import { type PrometheusMetrics, prometheusMetrics } from "politely/prometheus";
import { seldom } from "../seldom.js";
import { DOORS } from "../turnedAway.js";
import type { ApiParts } from "./apiParts.js";

/** `GET /metrics`, for Prometheus: what the library measures, and what only the service knows. Counts from now on and until the app closes. */
export function metricsRoutes(app: FastifyInstance, parts: ApiParts): void {
  const metrics = measured(parts);
  app.addHook("onClose", (_app, done) => {
    metrics.close();
    done();
  });
  // Who asks while the numbers are being read gets the same ones.
  const read = seldom(
    () => metrics.text(),
    0,
    () => parts.ticker.nowMs(),
  );
  const schema = {
    summary: "Metrics for Prometheus; names begin with politely_",
    response: {
      200: { description: "The text format.", content: { "text/plain": { schema: { type: "string" } } } },
    },
  };
  app.get("/metrics", { schema, exposeHeadRoute: true }, async (_request, reply) => {
    const text = await read();
    return reply.type(metrics.contentType).send(text + ownText(parts));
  });
}

/** With a store, tokens are asked for, of the most active hosts; cooldowns are those that were heard of here. */
function measured({ limiter, cooldowns }: ApiParts): PrometheusMetrics {
  if (cooldowns === undefined) return prometheusMetrics(limiter);
  const told = {
    stats: () => limiter.stats(),
    subscribe: (listener: (event: LimiterEvent) => void) => limiter.subscribe(listener),
    *eachStats(): Iterable<Stats> {
      for (const row of limiter.eachStats()) {
        const value = cooldowns.leftMs(row.host);
        // All else is the row's own.
        yield value === undefined ? row : (Object.create(row, { cooldownMs: { value } }) as Stats);
      }
    },
  };
  return prometheusMetrics(told, { tokensOf: (host) => limiter.stats(host) });
}

/** The service's own numbers. The limiter hears of none of them: to it, a permit that lapses is released, and who is turned away never came. */
function ownText({ permits, callers, turnedAway }: ApiParts): string {
  const doors = DOORS.map((door) => [`{door="${door}"}`, turnedAway.counts[door]] as const);
  return [
    told("lapsed_permits_total", "Permits whose lifetime ended before they were released.", [
      ["", permits.lapsedCount],
    ]),
    told("turned_away_total", "Callers that found no place, by where.", doors),
    told("permits", "Permits that callers hold.", [["", permits.size]]),
    told("waiting", "Callers that wait for a start, in the proxy too.", [["", callers.everywhere]]),
  ].join("");
}

/** One metric. What only grows has a name that ends with `_total`. */
function told(suffix: string, says: string, series: readonly (readonly [labels: string, value: number])[]): string {
  const name = `politely_service_${suffix}`;
  const type = suffix.endsWith("_total") ? "counter" : "gauge";
  const lines = series.map(([labels, value]) => `${name}${labels} ${value}\n`);
  return `# HELP ${name} ${says}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}
