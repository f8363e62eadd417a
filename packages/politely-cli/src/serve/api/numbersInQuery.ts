import type { FastifyInstance, preValidationHookHandler } from "fastify";
import type { Schema } from "./schemas.js";

/**
 * Turns the digits of a query string into numbers where a route's schema asks for numbers. Bodies stay as they were sent: a number in quotes is none there.
 */
export function numbersInQuery(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    const { properties = {} } = Object(route.schema?.querystring) as { readonly properties?: Record<string, Schema> };
    const names = Object.keys(properties).filter((name) => /^(integer|number)$/.test(String(properties[name].type)));
    if (names.length === 0) return;
    const toNumbers: preValidationHookHandler = (request, _reply, done) => {
      const query = request.query as Record<string, unknown>;
      for (const name of names) {
        const value = query[name];
        if (typeof value === "string" && /^-?\d{1,15}(\.\d{1,6})?$/.test(value)) query[name] = Number(value);
      }
      done();
    };
    route.preValidation = [route.preValidation ?? [], toNumbers].flat();
  });
}
