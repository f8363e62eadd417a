import type { Clock } from "../types.js";
import { BetweenPrototypes, own } from "./betweenPrototypes.js";
import type { Flight } from "./flight.js";
import { type BodyListener, readAhead } from "./readAhead.js";
import { bareResponse, type ResponseFacts, responseWith, sayTheSame } from "./responseCopy.js";
import { tapOf } from "./tap/tappedResponse.js";

/** The ways to read a whole body. */
const READERS = ["arrayBuffer", "blob", "bytes", "formData", "json", "text"] as const;
type Reader = (typeof READERS)[number];

/** The places that wait for one body: of each limiter that the request went through. Refers to nothing that could keep the body alive. */
class Places implements BodyListener {
  /** Copies of one response share its body: it is given up when all of them are. */
  wanted = 1;
  readonly #flights: Flight[];

  constructor(flight: Flight) {
    this.#flights = [flight];
  }

  /** Nothing is left to wait for. */
  get isOver(): boolean {
    return this.#flights.every(({ isOver }) => isOver);
  }

  /** The caller's signal, once that is aborted. */
  get aborted(): AbortSignal | undefined {
    return this.#flights.find(({ signal }) => signal?.aborted === true)?.signal;
  }

  add(flight: Flight): void {
    if (this.isOver) flight.done();
    else this.#flights.push(flight);
  }

  arrived(): void {
    for (const flight of this.#flights) flight.done();
  }

  letGo(): void {
    for (const flight of this.#flights) flight.letGo();
  }

  failed(error: unknown): void {
    for (const flight of this.#flights) flight.failed(error);
  }

  /** One of the copies is given up, or read where nobody can see its end. */
  cancelled(): void {
    this.wanted -= 1;
    if (this.wanted === 0) this.arrived();
  }
}

/** What is known of a response whose place is kept until its body has arrived. */
class Held {
  /** Somebody has begun to read, or the bytes come through a body that is watched: nobody has to read ahead. */
  isTouched = false;
  /** In the list of those that nobody has begun to read. */
  previous: Held | undefined = undefined;
  next: Held | undefined = undefined;
  #inner: Response | undefined = undefined;
  #hasFailed = false;

  constructor(
    readonly response: Response,
    readonly owner: HeldResponses,
    readonly places: Places,
    public facts: ResponseFacts,
  ) {}

  touch(): void {
    this.isTouched = true;
    this.owner.forget(this);
  }

  /** Takes over the body once it is read ahead or as a stream. After an abort an unread one fails, also if it has arrived. */
  get inner(): Response | undefined {
    const inner = this.#inner;
    if (inner === undefined || this.#hasFailed || inner.bodyUsed || inner.body?.locked !== false) return inner;
    const signal = this.places.aborted;
    if (signal === undefined) return inner;
    this.#hasFailed = true;
    this.#inner = new Response(new ReadableStream({ start: (stream) => stream.error(signal.reason) }));
    return this.#inner;
  }

  set inner(response: Response) {
    this.#inner = response;
  }
}

/** Where a response keeps what is known of it. */
const HELD = Symbol("politely.held");

/** Undefined also for what is no response: a method that is called without one. */
function heldOf(response: Response): Held | undefined {
  return (response as { readonly [HELD]?: Held } | undefined)?.[HELD];
}

/**
 * Keeps the places of requests until the bodies of their responses have arrived, were cancelled or failed.
 *
 * A response stays the object that `fetch` gave, of its class; only its body is watched. A body that nobody has begun to
 * read when the program comes to rest is read ahead, up to 1 MiB, so that a small unread one frees its place.
 */
export class HeldResponses {
  /** Those that nobody has begun to read. Most are read in the turn in which they were given out: then nothing keeps them. */
  #first: Held | undefined = undefined;
  #isDue = false;

  constructor(readonly clock: Clock) {}

  /** Gives back the same response, watched. `flight` ends with its body; at once when there is none. */
  hold(response: Response, flight: Flight, facts: ResponseFacts): Response {
    const known = heldOf(response);
    if (known !== undefined) {
      // It came through another limiter, which watches it already.
      known.places.add(flight);
      known.facts = { ...known.facts, ...facts };
      return response;
    }
    const body: unknown = response.body;
    if (body === null || body === undefined) {
      flight.done();
      if (facts.redirected === undefined) return response;
    }
    const held = new Held(response, this, new Places(flight), facts);
    adopt(held);
    if (!flight.isOver) this.readLater(held);
    return response;
  }

  /**
   * Reads a held response ahead if nobody else reads it. All microtasks run before the timer fires: whoever reads its body in
   * the same turn has begun by then.
   */
  readLater(held: Held): void {
    held.next = this.#first;
    if (this.#first !== undefined) this.#first.previous = held;
    this.#first = held;
    if (this.#isDue) return;
    this.#isDue = true;
    this.clock.setTimer(this.clock.now(), () => {
      this.#isDue = false;
      for (let each = this.#first; each !== undefined; each = this.#first) {
        this.forget(each);
        readQuietly(each.response);
      }
    });
  }

  /** Nobody has to read it ahead. */
  forget(held: Held): void {
    const { previous, next } = held;
    if (previous !== undefined) previous.next = next;
    else if (this.#first === held) this.#first = next;
    if (next !== undefined) next.previous = previous;
    held.previous = undefined;
    held.next = undefined;
  }
}

/** Frees the place of a response that is kept, and reads ahead what it can of its body. */
export function letGo(response: Response): void {
  tapOf(response)?.letGo();
  readUnread(response);
  heldOf(response)?.places.letGo();
}

/** One that cannot be read ahead must not stop the others; whoever reads it is told. */
function readQuietly(response: Response): void {
  try {
    readUnread(response);
  } catch (error) {
    heldOf(response)?.places.failed(error);
  }
}

/** Begins to read ahead a response that is held and not read yet. */
function readUnread(response: Response): void {
  const held = heldOf(response);
  if (held === undefined || held.isTouched || held.places.isOver) return;
  if (innerOf(response, held) !== response) return;
  // The platform has taken the body, as a cache does, or it is no web stream: its end cannot be seen.
  held.touch();
  held.places.cancelled();
}

function adopt(held: Held): void {
  const { response } = held;
  (response as { [HELD]?: Held })[HELD] = held;
  prototypes.adopt(response);
}

/** The response that has the body from now on: the same bytes, read ahead. The same response where that cannot be. */
function innerOf(response: Response, held: Held): Response {
  if (held.inner !== undefined) return held.inner;
  const base = Object.getPrototypeOf(Object.getPrototypeOf(response)) as Response;
  const body = Reflect.get(base, "body", response) as ReadableStream<Uint8Array> | null;
  const isWeb = body !== null && typeof body.getReader === "function" && !body.locked;
  if (!isWeb) return response;
  held.touch();
  held.inner = bareResponse(readAhead(body, held.places), response);
  return held.inner;
}

/** Through them goes everything about the bodies. */
const prototypes = new BetweenPrototypes((base) => {
  const properties: PropertyDescriptorMap = {
    body: { get: bodyGetter(base) },
    bodyUsed: { get: bodyUsedGetter(base) },
    clone: { value: cloner(base) },
  };
  for (const name of ["redirected", "type"] as const) properties[name] = { get: factGetter(base, name) };
  for (const name of READERS) if (name in base) properties[name] = { value: wholeReader(base, name) };
  return properties;
});

function bodyGetter(base: Response) {
  return function body(this: Response): ReadableStream<Uint8Array> | null {
    const held = heldOf(this);
    if (held === undefined) return own(base, this, "body");
    const isOwn = held.inner === undefined && (held.isTouched || held.places.isOver);
    const inner = isOwn ? this : innerOf(this, held);
    return inner === this ? own(base, this, "body") : inner.body;
  };
}

function bodyUsedGetter(base: Response) {
  return function bodyUsed(this: Response): boolean {
    return heldOf(this)?.inner?.bodyUsed ?? own(base, this, "bodyUsed");
  };
}

function factGetter(base: Response, name: keyof ResponseFacts) {
  return function fact(this: Response): unknown {
    return heldOf(this)?.facts[name] ?? own(base, this, name);
  };
}

function wholeReader(base: Response, name: Reader) {
  return function readWhole(this: Response): Promise<unknown> {
    const held = heldOf(this);
    if (held?.inner !== undefined) return held.inner[name]();
    const read = own(base, this, name) as () => Promise<unknown>;
    if (held === undefined || held.isTouched || held.places.isOver) return read.call(this);
    held.touch();
    const { places } = held;
    const result = read.call(this);
    result.then(
      () => places.arrived(),
      (error: unknown) => (isOfContent(error) ? places.arrived() : places.failed(error)),
    );
    return result;
  };
}

function cloner(base: Response) {
  return function clone(this: Response): Response {
    const held = heldOf(this);
    if (held === undefined) return own(base, this, "clone").call(this);
    const { owner, places, facts, isTouched, inner } = held;
    const copy = inner === undefined ? own(base, this, "clone").call(this) : copyOfRead(this, held, inner);
    const heldCopy = new Held(copy, owner, places, facts);
    heldCopy.isTouched = isTouched;
    adopt(heldCopy);
    sayTheSame(copy, this);
    if (!isTouched && !places.isOver) {
      places.wanted += 1;
      owner.readLater(heldCopy);
    }
    return copy;
  };
}

/** A copy of a response that was read ahead. Its bytes come through the stream that tells when the last one has arrived. */
function copyOfRead(response: Response, held: Held, read: Response): Response {
  const { body } = read;
  // What the platform says of a body that is gone is said here as well.
  if (body === null || body.locked || read.bodyUsed) return read.clone();
  // Not by a clone: undici cancels the body of one that is collected, even if another response has it.
  const [kept, given] = body.tee();
  held.inner = bareResponse(kept, response);
  return responseWith(given, response);
}

/** What arrived whole, but is no JSON or no form, says nothing of the site. A network that fails has a cause. */
function isOfContent(error: unknown): boolean {
  return error instanceof SyntaxError || (error instanceof TypeError && error.cause === undefined);
}
