import ky from "ky";
import { it } from "vitest";
import { politeKy } from "../../../src/http/ky/index.js";
import { type Limiter, politely } from "../../../src/index.js";
import { type HttpAnswer, type HttpClient, type HttpRequest, httpSuite } from "../../../src/testing/httpSuite.js";

function makeClient(limiter: Limiter): HttpClient {
  const client = politeKy(ky.create({ retry: 0, throwHttpErrors: false }), limiter);
  const send = async (url: string, init: object, request: HttpRequest = {}): Promise<HttpAnswer> => {
    const { signal, headers, timeoutMs = false } = request;
    const response = await client(url, {
      ...init,
      ...(signal && { signal }),
      ...(headers && { headers }),
      timeout: timeoutMs,
    });
    return { status: response.status, text: await response.text() };
  };
  return {
    get: (url, request) => send(url, {}, request),
    post: (url, body, request) => send(url, { method: "post", body }, request),
    open: (url) => client.get(url),
  };
}

const cases = httpSuite("ky", makeClient, { makeLimiter: politely });
it.each(cases.map(({ title, run }) => [title, run] as const))("%s", (_title, run) => run());
