import type { AnyLimiter } from "../../sharedTypes.js";
import { type Exchange, exchangeOf } from "../exchange.js";
import { asyncRelay } from "./asyncRelay.js";
import { ControllerHandler } from "./controllerHandler.js";
import {
  type ControllerCallbacks,
  type Dispatch,
  type DispatchOptions,
  type LegacyCallbacks,
  RIDE,
} from "./dispatchTypes.js";
import { LegacyHandler } from "./legacyHandler.js";
import { requestUrl } from "./requestUrl.js";
import { Ride } from "./ride.js";
import { userAgentOf, withUserAgent } from "./userAgentHeader.js";

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
 * Errors of the limiter are the request's error. An abort while waiting leaves the queue at once and takes nothing. Nothing is
 * buffered: a body that nobody has read from for 5 s gives its place back and goes on without one.
 *
 * Throws `TypeError` unless `limiter` was made by `politely` or `limit`.
 */
export function politeInterceptor(limiter: AnyLimiter, options: InterceptorOptions = {}): PoliteDispatch {
  const exchange = exchangeOf(limiter, "politeInterceptor");
  exchange.relay ??= asyncRelay(exchange);
  const origin = options.origin === undefined ? undefined : new URL(options.origin).origin;
  const intercept = (dispatch: Dispatch): Dispatch =>
    // undici insists on a function of two parameters.
    function politeDispatch(request, handler) {
      // What is wrong with the arguments is undici's to say.
      if (!isObject(request) || !isObject(handler)) return dispatch(request, handler);
      const url = requestUrl(request, origin);
      ride(exchange, dispatch, { request, handler, url });
      return true;
    };
  return intercept as unknown as PoliteDispatch;
}

/** A request, who wants to hear of it, and its address if that is known. */
interface Task {
  readonly request: DispatchOptions;
  readonly handler: ControllerCallbacks | LegacyCallbacks;
  readonly url: string | undefined;
}

function ride(exchange: Exchange, dispatch: Dispatch, { request, handler, url }: Task): void {
  const { body, headers, politely: options } = request;
  const own = new Ride(exchange);
  const watched = "onRequestStart" in handler ? new ControllerHandler(own, handler) : new LegacyHandler(own, handler);
  own.begin({
    caller: watched,
    errand: url === undefined ? undefined : { url, ownAgent: () => userAgentOf(headers), options },
    body,
    outer: request[RIDE],
    send: () => {
      const agent = exchange.identity.userAgent;
      const changed = agent === undefined ? headers : withUserAgent(headers, agent);
      dispatch({ ...request, ...(changed === headers ? {} : { headers: changed }), [RIDE]: own }, watched);
    },
  });
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}
