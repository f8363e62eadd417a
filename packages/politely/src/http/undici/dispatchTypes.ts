import type { FetchOptions } from "../../types.js";
import type { PacedHandler } from "./pacedHandler.js";

/** Under this name the options of a request carry its handler, so that a second interceptor of the same limiter finds it. */
export const PACED: unique symbol = Symbol("politely.paced");

/** What undici is told of a request, as far as it is looked at here. */
export interface DispatchOptions {
  readonly origin?: string | URL | null | undefined;
  readonly path?: unknown;
  readonly method?: unknown;
  readonly query?: object | null | undefined;
  readonly headers?: RequestHeaders;
  readonly body?: unknown;
  /** How the limiter should treat this request. */
  readonly politely?: FetchOptions | undefined;
  readonly [PACED]?: PacedHandler;
}

/** Headers as undici takes them: names and values in turn, pairs, or a record. */
export type RequestHeaders = readonly unknown[] | Iterable<readonly [string, unknown]> | object | null | undefined;

/** Stops a request; without a reason with an `AbortError`. */
export type Abort = (reason?: unknown) => void;

/** What a handler of undici 7 and later steers its request with. */
export interface Controller {
  readonly aborted?: boolean;
  readonly reason?: unknown;
  readonly paused?: boolean;
  readonly rawHeaders?: unknown;
  readonly rawTrailers?: unknown;
  abort(reason?: unknown): void;
  pause(): void;
  resume(): void;
}

type Fields = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The callbacks of undici 7 and later. */
export interface ControllerCallbacks {
  onRequestStart(controller: Controller, context: unknown): void;
  onRequestUpgrade?(controller: Controller, status: number, headers: Fields, socket: unknown): unknown;
  onResponseStart?(controller: Controller, status: number, headers: Fields, message?: string): void;
  onResponseData?(controller: Controller, chunk: unknown): void;
  onResponseEnd?(controller: Controller, trailers: Fields): void;
  onResponseError?(controller: Controller, error: unknown): void;
  onResponseStarted?(): void;
  onBodySent?(chunk: unknown): void;
  onRequestSent?(): void;
}

/** The callbacks of undici 6, which 7 still takes. Headers are names and values in turn, as bytes. */
export interface LegacyCallbacks {
  onConnect?(abort: Abort, context: unknown): void;
  onUpgrade?(status: number, rawHeaders: readonly unknown[] | null, socket: unknown): unknown;
  /** `false` asks to be sent no more until `resume` is called. */
  onHeaders?(status: number, rawHeaders: readonly unknown[], resume: () => void, message?: string): unknown;
  onData?(chunk: unknown): unknown;
  onComplete?(trailers: unknown): void;
  onError?(error: unknown): void;
  onResponseStarted?(): void;
  onBodySent?(chunk: unknown): void;
  onRequestSent?(): void;
}

/** Sends a request and calls back; false when the dispatcher would like the caller to wait for its `drain`. */
export type Dispatch = (options: DispatchOptions, handler: ControllerCallbacks | LegacyCallbacks) => boolean;
