import type { AnyLimiter } from "../../sharedTypes.js";
import { exchangeOf } from "../exchange.js";
import { asyncRelay } from "./asyncRelay.js";
import { pacedDispatch } from "./callbackStyles.js";
import type { Dispatch } from "./dispatchTypes.js";
import type { Plan } from "./pacedHandler.js";

/** What an interceptor is told beside its limiter. */
export interface InterceptorOptions {
  /** The site of requests that do not name one, as those of a `Client` or a `Pool` before undici 8. Default: they are refused with a `TypeError`. */
  readonly origin?: string | URL;
}

/** Makes the `dispatch` of any undici into one that is paced, of the same type. */
export type PoliteDispatch = <AnyDispatch extends (options: never, handler: never) => boolean>(
  dispatch: AnyDispatch,
) => AnyDispatch;

/**
 * Makes an interceptor for `dispatcher.compose(...)` of undici 6, 7 and 8.
 *
 * Each dispatch waits its turn, is heard when its headers arrive, and keeps its place until its last byte, its failure or the
 * hand-over of its socket. Put it first in `compose`, so that what later interceptors repeat or redirect is paced as well.
 * Errors of the limiter are the request's error. An abort while waiting leaves the queue at once and takes nothing. Up to 1 MiB of
 * a body comes in without a reader; one that nobody has then read from for 5 s gives its place back and goes on without one.
 *
 * Throws `TypeError` unless `limiter` was made by `politely` or `limit`.
 */
export function politeInterceptor(limiter: AnyLimiter, options: InterceptorOptions = {}): PoliteDispatch {
  const exchange = exchangeOf(limiter, "politeInterceptor");
  exchange.relay ??= asyncRelay(exchange);
  const origin = options.origin === undefined ? undefined : new URL(options.origin).origin;
  const intercept = (dispatch: Dispatch): Dispatch => {
    const plan: Plan = { exchange, origin, isFetch: false, optionsOf: ({ politely }) => politely, send: dispatch };
    // undici insists on a function of two parameters.
    return function politeDispatch(request, handler) {
      // What is wrong with the arguments is undici's to say.
      if (!isObject(request) || !isObject(handler)) return dispatch(request, handler);
      return pacedDispatch(plan, request, handler);
    };
  };
  return intercept as unknown as PoliteDispatch;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}
