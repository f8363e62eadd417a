import { describe, expect, it } from "vitest";
import { type Limiter, politely } from "../../../src/index.js";
import {
  type HttpAnswer,
  type HttpClient,
  type HttpFeature,
  type HttpRequest,
  httpSuite,
} from "../../../src/testing/httpSuite.js";

function makeClient(limiter: Limiter): HttpClient {
  const send = async (url: string, init: RequestInit, request: HttpRequest = {}): Promise<HttpAnswer> => {
    const { signal, headers, timeoutMs } = request;
    const response = await limiter.fetch(url, {
      ...init,
      ...(signal && { signal }),
      ...(headers && { headers }),
      ...(timeoutMs && { politely: { timeout: timeoutMs } }),
    });
    return { status: response.status, text: await response.text() };
  };
  return {
    get: (url, request) => send(url, {}, request),
    post: (url, body, request) => send(url, { method: "POST", body }, request),
    open: (url) => limiter.fetch(url),
  };
}

const cases = httpSuite("fetch", makeClient, { makeLimiter: politely });
it.each(cases.map(({ title, run }) => [title, run] as const))("%s", (_title, run) => run());

// A suite that notices nothing passes for ever.
describe("the suite", () => {
  it("notices a client that ignores the limiter, in every case that is about it", async () => {
    const unpaced = httpSuite("a careless client", carelessClient, { makeLimiter: politely });
    const results = await Promise.allSettled(unpaced.map(({ run }) => run()));
    const passed = unpaced.filter((_case, index) => results[index].status === "fulfilled").map(({ title }) => title);
    expect(passed).toEqual([
      "a careless client makes a GET of a POST that is answered with 303, and sends a POST again after 307",
      "a careless client does not keep its place for a small body that nobody reads",
    ]);
  });

  it("leaves out what a client lacks", () => {
    const titles = (lacks: readonly HttpFeature[]): string[] =>
      httpSuite("x", carelessClient, { makeLimiter: politely, lacks }).map(({ title }) => title);
    const left = titles(["robots", "early headers", "unread bodies"]);
    expect(titles([]).filter((title) => !left.includes(title))).toEqual([
      "x holds the host as soon as the headers of a 429 are there",
      "x judges an answer whose body is torn off by its status",
      "x does not keep its place for a small body that nobody reads",
      "x does not ask for what robots.txt disallows",
    ]);
  });
});

function carelessClient(): HttpClient {
  const send = async (url: string, init: RequestInit, { signal, headers, timeoutMs }: HttpRequest = {}) => {
    const signals = [...(signal ? [signal] : []), ...(timeoutMs ? [AbortSignal.timeout(timeoutMs)] : [])];
    const response = await fetch(url, { ...init, ...(headers && { headers }), signal: AbortSignal.any(signals) });
    return { status: response.status, text: await response.text() };
  };
  return {
    get: (url, request) => send(url, {}, request),
    post: (url, body, request) => send(url, { method: "POST", body }, request),
    open: (url) => fetch(url),
  };
}
