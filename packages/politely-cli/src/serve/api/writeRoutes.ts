import type { FastifyInstance, onRequestHookHandler } from "fastify";
import { type HostLimits, PolicyError, type PolicyInput } from "politely";
import type { ApiParts } from "./apiParts.js";
import { fieldsProblem } from "./asProblem.js";
import { ProblemError } from "./problem.js";
import { domain, nothing, object } from "./schemas.js";

/** 365 days. */
const PAUSE_MOST_MS = 31_536_000_000;
/** The largest `maxQueue` that a policy file can have. */
const QUEUE_MOST = 1_000_000_000_000;

interface InPath {
  Params: { domain: string };
}

/** Pauses, and limits that are edited while the service runs. Only where writes are allowed. */
export function writeRoutes(app: FastifyInstance, parts: ApiParts): void {
  const onRequest = writeGuard(parts.isWritable);
  addPauses(app, parts, onRequest);
  addLimits(app, parts, onRequest);
  addPolicy(app, parts);
}

function writeGuard(isWritable: boolean): onRequestHookHandler {
  return (_request, _reply, done) => {
    if (isWritable) done();
    else done(new ProblemError(403, "Changes are not allowed. Start the service with --allow-writes or a token."));
  };
}

function addPauses(app: FastifyInstance, { limiter }: ApiParts, onRequest: onRequestHookHandler): void {
  const pause = {
    summary: "Holds one domain, or all, for a time or until it is resumed",
    body: object({ domain, durationMs: { type: "number", exclusiveMinimum: 0, maximum: PAUSE_MOST_MS } }),
    response: { 204: nothing },
  };
  app.post<{ Body: { domain?: string; durationMs?: number } }>(
    "/v1/pause",
    { schema: pause, onRequest },
    async ({ body }, reply) => {
      await limiter.pause(body.domain, body.durationMs);
      return reply.code(204).send();
    },
  );
  const resume = {
    summary: "Ends the pause of one domain, or all",
    body: object({ domain }),
    response: { 204: nothing },
  };
  app.post<{ Body: { domain?: string } }>("/v1/resume", { schema: resume, onRequest }, async ({ body }, reply) => {
    await limiter.resume(body.domain);
    return reply.code(204).send();
  });
}

function addLimits(app: FastifyInstance, { limiter, book }: ApiParts, onRequest: onRequestHookHandler): void {
  const params = object({ domain }, ["domain"]);
  const edit = {
    summary: "Replaces the limits of one domain while the service runs",
    params,
    body: { type: "object", description: "Limits, as an entry under hosts in a policy file." },
    response: { 204: nothing },
  };
  app.put<InPath & { Body: HostLimits }>("/v1/limits/:domain", { schema: edit, onRequest }, async (request, reply) => {
    const { key } = await limiter.explain(request.params.domain);
    try {
      await book.edit(key, request.body);
    } catch (error) {
      throw error instanceof PolicyError ? ofEntry(error, key) : error;
    }
    return reply.code(204).send();
  });
  const putBack = { summary: "Puts back what the policy file says of one domain", params, response: { 204: nothing } };
  app.delete<InPath>("/v1/limits/:domain", { schema: putBack, onRequest }, async (request, reply) => {
    const { domain: name } = request.params;
    const { key } = await limiter.explain(name);
    if (!(await book.putBack(key))) throw new ProblemError(404, `The limits of "${key}" were not edited.`);
    return reply.code(204).send();
  });
}

function addPolicy(app: FastifyInstance, { book }: ApiParts): void {
  const schema = {
    summary: "The policy as it applies now",
    response: {
      200: {
        ...object(
          {
            policy: { type: "object", additionalProperties: true, description: "As in a policy file." },
            edited: { type: "array", items: { type: "string" }, description: "Domains whose limits were edited." },
          },
          ["policy", "edited"],
        ),
        description: "The file's policy, with the edits since.",
      },
    },
  };
  app.get("/v1/policy", { schema, exposeHeadRoute: true }, () =>
    Promise.resolve({ policy: inJson(book.current()), edited: book.edited() }),
  );
}

/** A policy as a JSON file has it. What has no bound, which JSON cannot say, is left out, since that means the same; but for `maxQueue`, whose default is less. */
function inJson(policy: PolicyInput): unknown {
  const text = JSON.stringify(policy, (name, value: unknown) =>
    value === Number.POSITIVE_INFINITY ? (name === "maxQueue" ? QUEUE_MOST : undefined) : value,
  );
  return JSON.parse(text);
}

/** Problems of one entry, with paths that begin inside it. */
function ofEntry(error: PolicyError, key: string): ProblemError {
  const outer = [`hosts[${JSON.stringify(key)}]`, `hosts.${key}`];
  const errors = error.problems.map(({ path, message }) => {
    const begin = outer.find((text) => path.startsWith(text)) ?? "";
    return { field: path.slice(begin.length).replace(/^\./, "") || "body", message };
  });
  return fieldsProblem(errors);
}
