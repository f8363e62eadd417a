import { showValue } from "../policy/showValue.js";
import type { Flight } from "./flight.js";
import { readAhead } from "./readAhead.js";

/** What a response says of itself, beside its headers and its body. */
const FACTS = ["url", "redirected", "type", "status", "statusText", "ok"] as const;

/**
 * The answer of a `fetch` that shows no more than its `Response`, and ends `flight` with its body. At once where there is none,
 * or none whose end can be seen: what is locked, no web stream, or a mock is given back as it is.
 *
 * Else it is another `Response` of the platform around the same bytes, which says of itself what the first one says.
 */
export function plainResponse(response: Response, flight: Flight): Response {
  checkResponse(response);
  const { status, headers, body } = response;
  const isMock = Object.hasOwn(response, "text") || Object.hasOwn(response, "body");
  if (isMock || typeof body?.getReader !== "function" || body.locked) {
    flight.finished(status, headers);
    return response;
  }
  flight.answered(status, headers);
  return saying(new Response(readAhead(body, flight), { headers }), response);
}

/** Makes `copy` and its copies say what `response` says of itself; no Response can be made with a status of 999. */
function saying(copy: Response, response: Response): Response {
  for (const name of FACTS) Object.defineProperty(copy, name, { value: response[name], configurable: true });
  return Object.assign(copy, { clone: () => saying(Response.prototype.clone.call(copy), response) });
}

/** Throws `TypeError`, saying what is wrong, for what is not even like a `Response`. */
function checkResponse(answer: unknown): void {
  const { status, headers } = (answer ?? {}) as { readonly status?: unknown; readonly headers?: Partial<Headers> };
  const problem =
    typeof answer !== "object" || answer === null
      ? `got ${showValue(answer)}`
      : typeof status !== "number"
        ? `its status is ${showValue(status)}`
        : typeof headers?.get !== "function"
          ? "its headers have no get"
          : undefined;
  if (problem === undefined) return;
  throw new TypeError(`The fetch that sends requests must resolve with a Response; ${problem}. Check options.fetch.`);
}
