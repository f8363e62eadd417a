import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import type { Stats } from "politely";
import type { ApiParts, TargetBody } from "./apiParts.js";
import { targetOf } from "./apiParts.js";
import { stoppingProblem } from "./asProblem.js";
import { type OutcomeBody, outcomeOf } from "./outcome.js";
import { fieldProblem, ProblemError, sendProblem } from "./problem.js";
import {
  decision,
  domain,
  explanation,
  nothing,
  object,
  outcomeFields,
  type Schema,
  statsRow,
  targetFields,
} from "./schemas.js";

const RECORDED = ["success", "rate_limited", "server_error", "timeout"] as const;
const ROWS_USUAL = 10_000;
const ROWS_IN_ONE_GO = 250;

const inPath: Schema = object({ domain }, ["domain"]);

/** `check`, `record`, `stats` and `explain`: what takes no permit. */
export function decisionRoutes(app: FastifyInstance, parts: ApiParts): void {
  addCheck(app, parts);
  addRecord(app, parts);
  addStats(app, parts);
  addExplain(app, parts);
}

function addCheck(app: FastifyInstance, { limiter, callers }: ApiParts): void {
  const schema = {
    summary: "Tells whether a request may start now, and takes nothing",
    body: object(targetFields, ["domain"]),
    response: { 200: decision },
  };
  app.post<{ Body: TargetBody }>("/v1/check", { schema }, (request, reply) => {
    if (callers.isStopping) return sendProblem(reply, stoppingProblem());
    const answer = limiter.check(targetOf(request.body));
    // In memory the answer is there already: no promise is worth waiting for.
    if (answer instanceof Promise) return answer;
    return reply.send(answer);
  });
}

function addRecord(app: FastifyInstance, { limiter }: ApiParts): void {
  const schema = {
    summary: "Counts a request that was made without a permit, and hears how it ended",
    body: object({ ...targetFields, ...outcomeFields(RECORDED) }, ["domain"]),
    response: { 204: nothing },
  };
  app.post<{ Body: TargetBody & OutcomeBody }>("/v1/record", { schema }, async ({ body }, reply) => {
    const outcome = outcomeOf(body);
    if (outcome === undefined) throw fieldProblem("outcome", "is missing: send outcome or status");
    await limiter.record(targetOf(body), outcome);
    return reply.code(204).send();
  });
}

function addStats(app: FastifyInstance, { limiter, cooldowns }: ApiParts): void {
  const shown = (row: Stats): Record<string, unknown> =>
    cooldowns === undefined ? row.toJSON() : { ...row.toJSON(), cooldown_ms: cooldowns.leftMs(row.host) ?? null };
  const all = {
    summary: "Statistics of all domains",
    querystring: object({
      limit: { type: "integer", minimum: 1, maximum: 100_000, default: ROWS_USUAL, description: "Rows at most." },
    }),
    response: {
      200: {
        ...object({ stats: { type: "array", items: statsRow }, total: { type: "integer" } }, ["stats", "total"]),
        description: "The rows, and how many there are without a limit.",
      },
    },
  };
  app.get<{ Querystring: { limit: number } }>("/v1/stats", { schema: all, exposeHeadRoute: true }, (request, reply) =>
    reply
      .type("application/json; charset=utf-8")
      .send(Readable.from(statsText(limiter.eachStats(), request.query.limit, shown))),
  );

  const one = { summary: "Statistics of one domain", params: inPath, response: { 200: statsRow } };
  app.get<{ Params: { domain: string } }>(
    "/v1/stats/:domain",
    { schema: one, exposeHeadRoute: true },
    async (request) => {
      const { domain: name } = request.params;
      const stats = await limiter.stats(name);
      if (stats === undefined) throw new ProblemError(404, `"${name}" is not known: nothing was asked for it yet.`);
      return stats.toJSON();
    },
  );
}

/** The answer as text, part by part: there may be 20,000 rows, and others have their turn in between. */
async function* statsText(
  rows: Iterable<Stats>,
  limit: number,
  shown: (row: Stats) => Record<string, unknown>,
): AsyncIterable<string> {
  let total = 0;
  let part = '{"stats":[';
  for (const row of rows) {
    if (total < limit) part += `${total === 0 ? "" : ","}${JSON.stringify(shown(row))}`;
    total += 1;
    if (total % ROWS_IN_ONE_GO !== 0) continue;
    await setImmediate();
    if (part !== "") yield part;
    part = "";
  }
  yield `${part}],"total":${total}}`;
}

function addExplain(app: FastifyInstance, { limiter }: ApiParts): void {
  const schema = {
    summary: "Says why a request would wait now",
    params: inPath,
    querystring: object({ intent: targetFields.intent }),
    response: { 200: explanation },
  };
  app.get<{ Params: { domain: string }; Querystring: { intent?: string } }>(
    "/v1/explain/:domain",
    { schema, exposeHeadRoute: true },
    async ({ params, query }) => limiter.explain(targetOf({ ...params, ...query })),
  );
}
