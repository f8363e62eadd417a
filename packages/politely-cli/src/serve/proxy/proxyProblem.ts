import { type ServerResponse, STATUS_CODES } from "node:http";
import { PROBLEM_TYPE, ProblemError, type ProblemMore, problemText, retryAfterSeconds } from "../api/problem.js";

/** What a problem of the proxy carries beside those of the service. */
export interface ProxyProblemMore extends ProblemMore {
  /** The error type of RFC 9209, `"destination_ip_prohibited"` say: it tells a refusal of the proxy from an answer of the site. */
  readonly proxyError?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer that the proxy gives by itself. The message says what happened and what to do. */
export class ProxyProblem extends ProblemError {
  constructor(
    status: number,
    detail: string,
    override readonly more: ProxyProblemMore = {},
  ) {
    super(status, detail, more);
  }
}

/**
 * Answers with a problem and closes the connection afterwards: what is left of a body that nobody reads must not be taken for a request.
 *
 * Where an answer has begun, nothing can be said any more, and the connection is broken off so that nobody takes it for whole.
 */
export function answerProblem(response: ServerResponse, problem: ProblemError): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const body = problemText(problem);
  // With a reason of its own: a site's, with which the answer could not be begun, would still be there.
  response.writeHead(problem.status, reasonOf(problem), headersOf(problem, body));
  response.end(response.req.method === "HEAD" ? undefined : body);
}

/** The same as bytes, for a connection that has no response: CONNECT, and what could not be read. */
export function rawProblem(problem: ProblemError): string {
  const body = problemText(problem);
  const lines = Object.entries(headersOf(problem, body)).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${problem.status} ${reasonOf(problem)}\r\n${lines.join("")}\r\n${body}`;
}

function reasonOf({ status }: ProblemError): string {
  return STATUS_CODES[status] ?? "Error";
}

function headersOf(problem: ProblemError, body: string): Record<string, string> {
  const retryAfter = retryAfterSeconds(problem.more.retryAfterMs);
  const { proxyError, headers } = problem instanceof ProxyProblem ? problem.more : {};
  return {
    "Content-Type": PROBLEM_TYPE,
    "Content-Length": String(Buffer.byteLength(body)),
    "Cache-Control": "no-store",
    "Proxy-Status": proxyError === undefined ? "politely" : `politely; error=${proxyError}`,
    Connection: "close",
    ...(retryAfter === undefined ? {} : { "Retry-After": retryAfter }),
    ...headers,
  };
}
