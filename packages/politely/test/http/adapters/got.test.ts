import got from "got";
import { it } from "vitest";
import { politeGot } from "../../../src/http/got/index.js";
import { type Limiter, politely } from "../../../src/index.js";
import { type HttpAnswer, type HttpClient, type HttpRequest, httpSuite } from "../../../src/testing/httpSuite.js";

function makeClient(limiter: Limiter): HttpClient {
  const client = politeGot(got.extend({ retry: { limit: 0 }, throwHttpErrors: false }), limiter);
  const send = async (url: string, init: object, request: HttpRequest = {}): Promise<HttpAnswer> => {
    const { signal, headers, timeoutMs } = request;
    const { statusCode, body } = await client(url, {
      ...init,
      ...(signal && { signal }),
      ...(headers && { headers }),
      ...(timeoutMs && { timeout: { request: timeoutMs } }),
    });
    return { status: statusCode, text: String(body) };
  };
  return {
    get: (url, request) => send(url, {}, request),
    post: (url, body, request) => send(url, { method: "POST", body }, request),
  };
}

const cases = httpSuite("got", makeClient, { makeLimiter: politely, lacks: ["unread bodies"] });
it.each(cases.map(({ title, run }) => [title, run] as const))("%s", (_title, run) => run());
