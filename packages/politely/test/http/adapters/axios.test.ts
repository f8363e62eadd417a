import axios from "axios";
import { describe, it } from "vitest";
import { politeAxios } from "../../../src/http/axios/index.js";
import { type Limiter, politely } from "../../../src/index.js";
import { type HttpAnswer, type HttpClient, type HttpRequest, httpSuite } from "../../../src/testing/httpSuite.js";

function makeClient(limiter: Limiter, adapter: "http" | "fetch"): HttpClient {
  const client = politeAxios(axios.create({ adapter, validateStatus: () => true, responseType: "text" }), limiter);
  const send = async (config: object, request: HttpRequest = {}): Promise<HttpAnswer> => {
    const { signal, headers, timeoutMs } = request;
    const { status, data } = await client.request<string>({
      ...config,
      ...(signal && { signal }),
      ...(headers && { headers }),
      ...(timeoutMs && { timeout: timeoutMs }),
    });
    return { status, text: data };
  };
  return {
    get: (url, request) => send({ url }, request),
    post: (url, body, request) => send({ url, method: "post", data: body }, request),
  };
}

describe.each(["http", "fetch"] as const)("axios with its %s adapter", (adapter) => {
  const cases = httpSuite("axios", (limiter) => makeClient(limiter, adapter), {
    makeLimiter: politely,
    lacks: ["unread bodies"],
  });
  it.each(cases.map(({ title, run }) => [title, run] as const))("%s", (_title, run) => run());
});
