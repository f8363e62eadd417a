import type { Clock, HeadersLike } from "../../types.js";

/** What axios sends with: `http` and `https` fit. */
export interface Transport {
  request(options: TransportOptions, respond: (answer: TransportAnswer) => void): TransportRequest;
}

interface TransportOptions {
  readonly protocol?: string;
}

interface TransportRequest {
  emit(event: "timeout"): unknown;
  once(event: "response" | "close", listener: () => void): unknown;
}

/** Names in lower case, as Node has them. */
type TransportHeaders = HeadersLike & { readonly location?: string };

interface TransportAnswer {
  readonly statusCode: number;
  readonly headers: TransportHeaders;
  /** Where it came from, for callers who ask for the last hop. */
  responseUrl?: string;
}

/** What is done with one request. */
export interface Listening {
  readonly url: string;
  /** As axios has it: 0 means no bound. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Called once, as soon as the headers are there. */
  readonly answered: (status: number, headers: TransportHeaders) => void;
}

/** Node's own `http` and `https` behind one door; undefined where there are none, as in browsers. */
export function nativeTransport(): Transport | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => Transport | undefined } };
  const http = process?.getBuiltinModule?.("node:http");
  const https = process?.getBuiltinModule?.("node:https");
  if (http === undefined || https === undefined) return undefined;
  return { request: (options, respond) => (options.protocol === "https:" ? https : http).request(options, respond) };
}

/**
 * The same transport, listening: axios itself shows an answer only once its body is read.
 *
 * With a transport of the caller's axios starts its timeout when the connection is there. It is started at once here, as
 * axios does with its own.
 */
export function listeningTransport(inner: Transport, { url, timeoutMs, clock, answered }: Listening): Transport {
  return {
    request(options, respond) {
      const request = inner.request(options, (answer) => {
        answer.responseUrl ??= url;
        answered(answer.statusCode, answer.headers);
        respond(answer);
      });
      if (!(timeoutMs > 0)) return request;
      const timer = clock.setTimer(clock.now() + timeoutMs, () => request.emit("timeout"), timeoutMs / 10);
      const stop = (): void => clock.clearTimer(timer);
      request.once("response", stop);
      request.once("close", stop);
      return request;
    },
  };
}
