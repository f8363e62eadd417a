/** What a response says of itself, beside its headers and its body. */
const FACTS = ["url", "redirected", "type", "status", "statusText", "ok"] as const;

/** What a response is told to say of itself instead of what its last hop says. */
export interface ResponseFacts {
  readonly redirected?: boolean;
  readonly type?: ResponseType;
}

/** The ways to change headers. */
const CHANGES = ["append", "delete", "set"] as const;

/** A response to read `body` with. Of the headers of `response` it has only the one that tells what the bytes are. */
export function bareResponse(body: ReadableStream<Uint8Array>, response: Response): Response {
  const type = response.headers.get("content-type");
  return new Response(body, type === null ? {} : { headers: { "content-type": type } });
}

/**
 * A response with the headers of `response`, as its own, and with its status where a Response can be made with that.
 *
 * It is of the platform's class, or of that of the library which made `response`: whoever takes a clone takes it as well.
 */
export function responseWith(body: ReadableStream<Uint8Array>, response: Response): Response {
  const { status, statusText, headers } = response;
  let copy: Response;
  try {
    copy = made(body, response, { status, statusText, headers });
  } catch {
    // Sites send what no Response can be made with: a status of 999, a reason in UTF-8. `sayTheSame` adds it.
    copy = made(body, response, { headers });
  }
  // Those of an answer from the network can be changed in none of its copies.
  if (areFixed(headers)) for (const name of CHANGES) Object.defineProperty(copy.headers, name, { value: refuse });
  return copy;
}

function refuse(): never {
  throw new TypeError("The headers of an answer cannot be changed.");
}

/** Whether headers refuse every change, even one that changes nothing. */
function areFixed(headers: Headers): boolean {
  try {
    headers.delete("x-politely-none");
    return false;
  } catch {
    return true;
  }
}

/** Makes `copy` say of itself what `response` says, its headers aside, as far as it does not do so already. */
export function sayTheSame(copy: Response, response: Response): void {
  for (const name of FACTS) if (copy[name] !== response[name]) say(copy, name, response[name]);
}

/** Makes a response say of itself what it is told. */
export function sayOf(response: Response, facts: ResponseFacts): void {
  for (const [name, value] of Object.entries(facts)) say(response, name, value);
}

function say(response: Response, name: string, value: unknown): void {
  Object.defineProperty(response, name, { value, configurable: true });
}

function made(body: ReadableStream<Uint8Array>, like: Response, init: ResponseInit): Response {
  if (!(like instanceof Response)) {
    const copy = madeByOther(body, like, init);
    // One that knows no streams makes a text of it.
    if (copy?.body === body) return copy;
  }
  return new Response(body, init);
}

function madeByOther(body: ReadableStream<Uint8Array>, like: object, init: ResponseInit): Response | undefined {
  const Other = like.constructor as typeof Response;
  try {
    return new Other(body, init);
  } catch {
    return undefined;
  }
}
