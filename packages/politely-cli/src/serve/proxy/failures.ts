import type { Outcome } from "politely";
import { ProxyProblem } from "./proxyProblem.js";

/** What a request that failed on its way says to its client, and to the limiter. */
export interface Failure {
  readonly problem: ProxyProblem;
  readonly outcome: Outcome | undefined;
}

/** The site was silent for too long. */
export class SiteTimeout extends Error {
  override readonly name = "TimeoutError";
}

/** The client was silent for too long, or went away: nothing is learned of the site. */
export class ClientGone extends Error {
  override readonly name = "AbortError";
}

/**
 * What a failure means. `wasSent` tells whether the request may have reached the site: only what it has not seen is given back.
 *
 * As the library's own exchange: no answer in time is a timeout, a network or TLS that failed a server error, and what
 * the client or the proxy itself did says nothing about the site.
 */
export function failureOf(error: unknown, wasSent: boolean): Failure {
  const neutral: Outcome | undefined = wasSent ? undefined : "unused";
  if (error instanceof ProxyProblem) return { problem: error, outcome: neutral };
  if (error instanceof ClientGone) {
    return { problem: new ProxyProblem(408, error.message, { proxyError: "http_request_error" }), outcome: neutral };
  }
  const { code = "", message } = error as NodeJS.ErrnoException;
  // What Node refuses to send: a header or a path that its parser let pass.
  if (/^ERR_(INVALID|UNESCAPED|HTTP_INVALID)/.test(code) && !wasSent) {
    return { problem: new ProxyProblem(400, `${message}.`, { proxyError: "http_request_error" }), outcome: "unused" };
  }
  if (error instanceof SiteTimeout || code === "ETIMEDOUT") {
    const proxyError = wasSent ? "http_response_timeout" : "connection_timeout";
    const detail = error instanceof SiteTimeout ? message : "The site did not take the connection in time.";
    return {
      problem: new ProxyProblem(504, detail, { proxyError }),
      outcome: { kind: "timeout", because: code || "no answer in time" },
    };
  }
  const because = (code === "" ? message : code).slice(0, 100);
  const problem = new ProxyProblem(502, `${sentenceOf(code)} (${because}).`, { proxyError: proxyErrorOf(code) });
  return { problem, outcome: { kind: "server_error", because } };
}

function sentenceOf(code: string): string {
  if (isOfName(code)) return "The site's name could not be resolved";
  if (code === "ECONNREFUSED") return "The site refused the connection";
  if (isOfCertificate(code)) return "The site's certificate is not trusted";
  if (code.startsWith("HPE_")) return "The site's answer is not HTTP as it should be";
  return "The connection to the site failed";
}

function proxyErrorOf(code: string): string {
  if (isOfName(code)) return "dns_error";
  if (code === "ECONNREFUSED") return "connection_refused";
  if (isOfCertificate(code)) return "tls_certificate_error";
  if (code.startsWith("HPE_")) return "http_protocol_error";
  return "connection_terminated";
}

function isOfName(code: string): boolean {
  return code === "ENOTFOUND" || code.startsWith("EAI_");
}

function isOfCertificate(code: string): boolean {
  return /CERT|SIGNED|UNABLE_TO|ERR_TLS/.test(code);
}
