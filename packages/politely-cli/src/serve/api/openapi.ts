import type { FastifyInstance, RouteOptions } from "fastify";
import { problem, type Schema } from "./schemas.js";

/** A route, as the document and the answer to a wrong method need it. */
export interface KnownRoute {
  readonly methods: readonly string[];
  /** `/v1/stats/:domain`. */
  readonly url: string;
  readonly schema: Schema | undefined;
}

/** Collects the routes that are added from now on. */
export function knownRoutes(app: FastifyInstance): KnownRoute[] {
  const routes: KnownRoute[] = [];
  app.addHook("onRoute", ({ method, url, schema }: RouteOptions) => {
    routes.push({ methods: [method].flat(), url, schema: schema as Schema | undefined });
  });
  return routes;
}

/** The OpenAPI 3.1 document of all routes under `/v1/` and those that say what they are. */
export function openapiDocument(routes: readonly KnownRoute[], version: string): Schema {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const { methods, url, schema } of routes) {
    if (schema?.summary === undefined) continue;
    const path = url.replace(/:(\w+)/g, "{$1}");
    for (const method of methods) {
      if (method === "HEAD") continue;
      paths[path] = { ...paths[path], [method.toLowerCase()]: operation(schema) };
    }
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Politely",
      version,
      description: "One politeness for every language: asks when a request may start, and says how it ended.",
    },
    paths,
    components: {
      schemas: { Problem: problem },
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
    security: [{}, { token: [] }],
  };
}

function operation(schema: Schema): Schema {
  const { summary, body, params, querystring, response } = schema as Record<string, Schema | undefined>;
  const parameters = [...parametersOf("path", params), ...parametersOf("query", querystring)];
  const answers = Object.entries((response ?? {}) as Record<string, Schema>);
  return {
    summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { "application/json": { schema: body } } } }),
    responses: {
      ...Object.fromEntries(answers.map(([status, answer]) => [status, answerOf(answer)])),
      default: {
        description: "A problem.",
        content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
      },
    },
  };
}

function answerOf(schema: Schema): Schema {
  const { description = "Done." } = schema;
  if (schema.content !== undefined) return schema;
  if (schema.type === "null") return { description };
  return { description, content: { "application/json": { schema } } };
}

function parametersOf(place: "path" | "query", schema: Schema | undefined): Schema[] {
  if (schema === undefined) return [];
  const properties = (schema.properties ?? {}) as Record<string, Schema>;
  const required = (schema.required ?? []) as readonly string[];
  return Object.entries(properties).map(([name, field]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    schema: field,
  }));
}
