import { showValue } from "../policy/showValue.js";

/**
 * A copy of an init's headers that the caller cannot change any more, the names as they were written. What can only be walked through once
 * is walked through here.
 *
 * Throws `TypeError`, as `fetch` does, for what cannot be headers.
 */
export function copyHeaders(headers: HeadersInit): HeadersInit {
  if (Object(headers) !== headers) throw new TypeError(`headers must be an object; got ${showValue(headers)}.`);
  if (Array.isArray(headers)) return headers.map(copyPair);
  return Symbol.iterator in headers ? new Headers(headers) : { ...headers };
}

function copyPair(pair: unknown): [string, string] {
  const parts =
    typeof pair === "object" && pair !== null && Symbol.iterator in pair ? [...(pair as Iterable<unknown>)] : [];
  if (parts.length === 2) return parts as [string, string];
  throw new TypeError(`A header in a list must be a pair of name and value; got ${showValue(pair)}.`);
}

/** A copy of a body that the caller cannot change any more. What cannot be changed, or only read once, stays what it is. */
export function copyBody<Body>(body: Body): Body {
  if (typeof body !== "object" || body === null) return body;
  return (copyOf(body) ?? body) as Body;
}

function copyOf(body: object): object | undefined {
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice();
  if (body instanceof ArrayBuffer) return body.slice(0);
  if (body instanceof URLSearchParams) return new URLSearchParams(body);
  // Also the class of another copy of undici, which only that copy's fetch knows.
  const isForm = Object.prototype.toString.call(body) === "[object FormData]" && Symbol.iterator in body;
  return isForm ? copyForm(body as FormData) : undefined;
}

function copyForm(form: FormData): FormData {
  const copy = new (form.constructor as typeof FormData)();
  for (const [name, value] of form) {
    if (typeof value === "string") copy.append(name, value);
    else copy.append(name, value, value.name);
  }
  return copy;
}
