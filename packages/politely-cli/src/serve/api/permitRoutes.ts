import type { FastifyInstance } from "fastify";
import { durationText } from "../../words.js";
import type { PermitEnd } from "../permits.js";
import { type AcquireBody, WaitingCaller } from "./acquiring.js";
import type { ApiParts } from "./apiParts.js";
import { stoppingProblem } from "./asProblem.js";
import { type OutcomeBody, outcomeOf } from "./outcome.js";
import { ProblemError, sendProblem } from "./problem.js";
import { nothing, object, outcomeFields, permit, targetFields, ttlMs } from "./schemas.js";

const RELEASED = ["success", "rate_limited", "server_error", "timeout", "unused"] as const;
/** 365 days. */
const MAX_WAIT_MS = 31_536_000_000;
const FULL_RETRY_MS = 1_000;

/** `acquire`, `renew` and `release`. */
export function permitRoutes(app: FastifyInstance, parts: ApiParts): void {
  addAcquire(app, parts);
  addRenew(app, parts);
  addRelease(app, parts);
}

function addAcquire(app: FastifyInstance, parts: ApiParts): void {
  const { callers, permits, maxPermits, turnedAway } = parts;
  const schema = {
    summary: "Waits until a request may start, and answers with a permit; closing the connection ends the wait",
    body: object(
      {
        ...targetFields,
        maxWaitMs: {
          type: "number",
          minimum: 0,
          maximum: MAX_WAIT_MS,
          description: "0: never wait. Default: the policy's.",
        },
        priority: {
          type: "number",
          minimum: -1_000_000,
          maximum: 1_000_000,
          description: "Higher goes first. Default 0.",
        },
        cost: { type: "integer", minimum: 1, maximum: 10_000_000, description: "Units to take. Default 1." },
        ttlMs,
      },
      ["domain"],
    ),
    response: {
      200: {
        ...object(
          {
            permit,
            domain: { type: "string", description: "The key that was counted." },
            waitedMs: { type: "number", minimum: 0 },
            ttlMs,
          },
          ["permit", "domain", "waitedMs", "ttlMs"],
        ),
        description: "The start is granted from this moment on.",
      },
    },
  };
  app.post<{ Body: AcquireBody }>("/v1/acquire", { schema }, (request, reply) => {
    if (callers.isStopping) return sendProblem(reply, stoppingProblem());
    const { size } = callers;
    if (size >= callers.most || size + permits.size >= maxPermits) {
      turnedAway.count("acquire");
      return sendProblem(reply, fullProblem(size, permits.size, size >= callers.most));
    }
    new WaitingCaller(parts, request, reply).begin();
    return reply;
  });
}

function fullProblem(waiting: number, held: number, isOfWaiting: boolean): ProblemError {
  const what = isOfWaiting
    ? "Come back later, or raise --max-waiting."
    : "Release permits as soon as a request has ended.";
  const detail = `The service is full: ${waiting} callers wait and ${held} permits are held. ${what}`;
  return new ProblemError(503, detail, { code: "full", retryAfterMs: FULL_RETRY_MS });
}

function addRenew(app: FastifyInstance, { permits }: ApiParts): void {
  const schema = {
    summary: "Begins the lifetime of a permit anew",
    body: object({ permit, ttlMs }, ["permit"]),
    response: { 200: { ...object({ ttlMs }, ["ttlMs"]), description: "How long it lives from now on." } },
  };
  app.post<{ Body: { permit: string; ttlMs?: number } }>("/v1/renew", { schema }, ({ body }, reply) => {
    const lifeMs = permits.renew(body.permit, body.ttlMs);
    if (lifeMs === undefined) return sendProblem(reply, endedProblem(permits.endOf(body.permit)));
    return reply.send({ ttlMs: lifeMs });
  });
}

function addRelease(app: FastifyInstance, { permits }: ApiParts): void {
  const schema = {
    summary: "Gives a permit back, and says how the request ended",
    body: object({ permit, ...outcomeFields(RELEASED) }, ["permit"]),
    response: { 204: nothing },
  };
  app.post<{ Body: { permit: string } & OutcomeBody }>("/v1/release", { schema }, async ({ body }, reply) => {
    const outcome = outcomeOf(body);
    const taken = permits.take(body.permit);
    if (taken === undefined) throw endedProblem(permits.endOf(body.permit));
    await taken.release(outcome);
    return reply.code(204).send();
  });
}

function endedProblem(end: PermitEnd): ProblemError {
  const detail = endWords(end);
  return new ProblemError(404, detail, { code: end.how, errors: [{ field: "permit", message: detail }] });
}

function endWords(end: PermitEnd): string {
  switch (end.how) {
    case "released":
      return `The permit was released already, ${durationText(end.agoMs)} ago.`;
    case "lapsed":
      return `The permit lapsed ${durationText(end.agoMs)} ago: its place is free again. Renew it in time, or ask for a longer ttlMs; maxHold of the policy bounds both.`;
    case "undelivered":
      return "The permit was given back: its caller had gone.";
    case "unknown":
      return "The permit is not known here.";
  }
}
