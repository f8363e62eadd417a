import type { FastifyReply, FastifyRequest } from "fastify";
import type { KnownRoute } from "./openapi.js";
import { ProblemError, sendProblem } from "./problem.js";

/** Answers what has no route: 405 with `Allow` where another method has one, else 404. */
export function notFound(routes: readonly KnownRoute[]): (request: FastifyRequest, reply: FastifyReply) => void {
  let patterns: (readonly [RegExp, readonly string[]])[] | undefined;
  return (request, reply) => {
    // Made with the first question: by then all routes are there.
    patterns ??= routes.map(({ url, methods }) => [patternOf(url), methods] as const);
    const path = request.url.split("?", 1)[0];
    const methods = new Set(patterns.filter(([pattern]) => pattern.test(path)).flatMap(([, names]) => names));
    if (methods.size === 0) {
      sendProblem(reply, new ProblemError(404, "There is nothing at this path. GET /v1/openapi.json lists what is."));
      return;
    }
    const allow = [...methods].sort().join(", ");
    sendProblem(reply, new ProblemError(405, `${request.method} is not possible here; ${allow} is.`, { allow }));
  };
}

function patternOf(url: string): RegExp {
  const parts = url.split("/").map((part) => {
    if (part.startsWith(":")) return "[^/]+";
    return part === "*" ? ".*" : part.replace(/[^\w-]/g, "\\$&");
  });
  return new RegExp(`^${parts.join("/")}$`);
}
