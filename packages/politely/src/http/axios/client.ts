import type { FetchOptions, HeadersLike } from "../../types.js";
import type { Transport } from "./transport.js";

/** The part of an axios instance this adapter calls. `axios` itself and what `axios.create` makes both fit. */
export interface AxiosLike {
  readonly defaults: object & { adapter?: unknown };
  readonly interceptors: { readonly request: Interceptors };
  create(config: object): AxiosLike;
  request(config: object): Promise<unknown>;
  getUri(config: object): string;
}

interface Interceptors {
  use(change: ChangeAdapter, rejected: null, options: { synchronous: true }): unknown;
}

/** Changes which adapter a request is sent by. */
export type ChangeAdapter = <Config extends { adapter?: unknown }>(config: Config) => Config;

/** A request as axios gives it to its adapter: merged with all defaults, its body ready to be sent. */
export interface AxiosConfig {
  adapter?: unknown;
  readonly url?: string | undefined;
  readonly baseURL?: string | undefined;
  readonly params?: unknown;
  readonly method?: string | undefined;
  readonly headers: AxiosHeaders;
  readonly data?: unknown;
  readonly auth?: Credentials | undefined;
  /** In milliseconds; 0 for no bound. */
  readonly timeout?: number | undefined;
  readonly responseType?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly cancelToken?: CancelToken | undefined;
  readonly transport?: Transport | undefined;
  readonly maxRedirects?: number | undefined;
  readonly beforeRedirect?: BeforeRedirect | undefined;
  readonly sensitiveHeaders?: readonly string[] | undefined;
  readonly validateStatus?: ((status: number) => boolean) | null | undefined;
  /** How the limiter should treat it. */
  readonly politely?: FetchOptions | undefined;
}

/** Name and password of HTTP's basic authentication. */
export interface Credentials {
  readonly username: string;
  readonly password: string;
}

interface CancelToken {
  toAbortSignal(): AbortSignal & { unsubscribe?: () => void };
}

/** The headers of a request; names in any case. */
export interface AxiosHeaders {
  has(name: string): boolean;
  get(name: string): unknown;
  set(name: string, value: string): unknown;
  set(headers: Readonly<Record<string, unknown>>): unknown;
  delete(name: string): unknown;
  clear(): unknown;
  /** A copy. */
  concat(): AxiosHeaders;
  toJSON(): Record<string, unknown>;
}

/** The next request as Node has it, the answer that led to it, and the request before. */
type BeforeRedirect = (
  options: RedirectOptions,
  answer: { readonly headers: unknown; readonly statusCode: number },
  request: { readonly url: string; readonly method: string; readonly headers: Readonly<Record<string, unknown>> },
) => void;

/** The request after a redirect, for `beforeRedirect` to change. */
export interface RedirectOptions {
  protocol: string;
  hostname: string;
  port: string;
  path: string;
  readonly href: string;
  readonly method: string;
  readonly headers: Record<string, unknown>;
}

/** What axios answers. */
export interface AxiosResponse {
  data: unknown;
  readonly status: number;
  readonly headers: HeadersLike;
  readonly request?: unknown;
  config: AxiosConfig;
}

/** An `AxiosError`. */
export interface AxiosFailure extends Error {
  config?: AxiosConfig;
  readonly request?: unknown;
  readonly response?: AxiosResponse | undefined;
}

/** Whether axios itself made an error, so that it may carry the answer. */
export function isAxiosFailure(error: unknown): error is AxiosFailure {
  return error instanceof Error && "isAxiosError" in error;
}

/** An error of axios' own class, made after another one since the class cannot be imported. */
export function axiosFailure(model: AxiosFailure, cause: unknown): Error {
  const AxiosError = model.constructor as unknown as { from(...parts: readonly unknown[]): Error };
  return AxiosError.from(cause, undefined, model.config, model.request);
}
