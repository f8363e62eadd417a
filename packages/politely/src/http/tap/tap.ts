import type { HeadersLike } from "../../types.js";
import type { Flight } from "../flight.js";
import { joined } from "../joined.js";
import { READ_AHEAD_BYTES } from "../readAhead.js";
import type { LegacyCallbacks } from "../undici/dispatchTypes.js";

/** Gets the bytes of a body in the pieces they came in; undefined when the body failed, which the platform can say more about. */
export type Taker = (chunks: readonly Uint8Array[] | undefined) => void;

/** The chunks are `held` until somebody wants them; then they are `passed` to the platform's stream, or `taken` without it. */
type Way = "held" | "passed" | "taken";

/** So many chunks are given to the platform although it wants no more for now. */
const MAX_AHEAD = 8_192;
/** So many chunks are kept as they are, and any number of those that are larger. */
const MAX_CHUNKS = 1_024;
const SMALL_BYTES = 1_024;
const utf8 = new TextEncoder();

/**
 * Stands between a connection and the platform's `fetch` while an answer arrives, and ends its flight with the last byte.
 *
 * Up to 1 MiB is let in although nobody reads it, so that a small body never keeps a place; beyond that the connection waits
 * for its reader. Whoever reads the body as a stream has it from the platform, which asks for it here. Whoever wants it whole
 * may `take` it, which saves the stream: that costs more than all of the pacing.
 */
export abstract class Tap {
  /** What the site said of its answer; undefined before it did. */
  headers: HeadersLike | undefined = undefined;
  #way: Way = "held";
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #ahead = 0;
  #isPaused = false;
  #end: "whole" | "failed" | undefined = undefined;
  #trailers: unknown = undefined;
  #error: unknown = undefined;
  #isGivenUp = false;
  #flight: Flight | undefined = undefined;
  #taker: Taker | undefined = undefined;

  /** `signal` is what the request is sent with. */
  constructor(readonly signal: AbortSignal | undefined) {}

  /** What `fetch` is called back by. */
  abstract readonly handler: Pick<LegacyCallbacks, "onResponseStarted" | "onBodySent" | "onRequestSent">;
  /** Gives a chunk to `fetch`. False when that wants no more for now. */
  protected abstract hand(chunk: Uint8Array): boolean;
  protected abstract handEnd(trailers: unknown): void;
  protected abstract handError(error: unknown): void;
  /** Lets the connection go on. */
  protected abstract goOn(): void;

  onResponseStarted(): void {
    this.handler.onResponseStarted?.();
  }

  onBodySent(chunk: unknown): void {
    this.handler.onBodySent?.(chunk);
  }

  onRequestSent(): void {
    this.handler.onRequestSent?.();
  }

  get isHeld(): boolean {
    return this.#way === "held";
  }

  /** Whether all of it has arrived. */
  get isWhole(): boolean {
    return this.#end === "whole";
  }

  /** From now on `flight` ends with the body; at once when that is over. */
  watch(flight: Flight): void {
    this.#flight = flight;
    if (this.#end === "whole") flight.done();
    else if (this.#end === "failed") this.#tellFailure(flight);
  }

  /** Frees the place; the rest still comes. */
  letGo(): void {
    this.#flight?.letGo();
  }

  /** Gives the whole body to `taker`, when it is there, and none of it to the platform. Only while it is held. */
  take(taker: Taker): void {
    this.#way = "taken";
    this.#taker = taker;
    const wasPaused = this.#isPaused;
    this.#isPaused = false;
    if (this.#end === "whole") this.#give();
    else if (wasPaused) this.goOn();
  }

  /** The platform gets what is there, and what will come. */
  pass(): void {
    if (this.#way !== "held") return;
    this.#way = "passed";
    const chunks = this.#chunks;
    this.#chunks = [];
    for (const chunk of chunks) this.hand(chunk);
    if (this.#end === "whole") this.handEnd(this.#trailers);
  }

  /** The headers are there. A body that is compressed is for the platform to read. */
  protected began(headers: HeadersLike, isCompressed: boolean): void {
    this.headers = headers;
    if (isCompressed) this.pass();
  }

  /** A chunk is there. False when no more may come until the connection is let go on. Dispatchers that only pretend give texts, too. */
  protected came(given: unknown): boolean {
    const chunk = typeof given === "string" ? utf8.encode(given) : (given as Uint8Array);
    this.#bytes += chunk.byteLength;
    const isAhead = this.#bytes < READ_AHEAD_BYTES;
    if (this.#way === "passed") return this.hand(chunk) || (isAhead && ++this.#ahead < MAX_AHEAD);
    this.#keep(chunk);
    if (isAhead || this.#way === "taken") return true;
    this.#isPaused = true;
    return false;
  }

  /** A chunk takes memory beside its bytes: many small ones are put together. */
  #keep(chunk: Uint8Array): void {
    const chunks = this.#chunks;
    if (chunks.length >= MAX_CHUNKS && this.#bytes < chunks.length * SMALL_BYTES)
      this.#chunks = [joined(chunks), chunk];
    else chunks.push(chunk);
  }

  /** The platform asks for bytes: somebody reads its stream. */
  protected asked(): void {
    this.pass();
    if (this.#end === undefined) this.goOn();
  }

  protected ended(trailers: unknown): void {
    this.#end = "whole";
    this.#trailers = trailers;
    this.#flight?.done();
    if (this.#way === "passed") this.handEnd(trailers);
    else if (this.#way === "taken") this.#give();
  }

  /** The platform wants no more: the body was cancelled, or the request aborted. */
  protected givenUp(): void {
    this.#isGivenUp = true;
    this.#drop();
  }

  protected broke(error: unknown): void {
    this.#end = "failed";
    this.#error = error;
    if (this.#flight !== undefined) this.#tellFailure(this.#flight);
    this.handError(error);
    this.#drop();
  }

  /** Nobody gets the body here any more. Not when it ends either: a dispatcher may go on for a while after an abort. */
  #drop(): void {
    const taker = this.#taker;
    this.#taker = undefined;
    this.#chunks = [];
    this.#way = "passed";
    taker?.(undefined);
  }

  /** Whoever cancels a body says nothing about the site, whatever the reason; an abort may be a timeout. */
  #tellFailure(flight: Flight): void {
    if (!this.#isGivenUp) flight.failed(this.#error);
    else if (this.signal?.aborted === true) flight.failed(this.signal.reason);
    else flight.done();
  }

  #give(): void {
    const [chunks, taker] = [this.#chunks, this.#taker];
    this.#chunks = [];
    this.#taker = undefined;
    this.handEnd(this.#trailers);
    taker?.(chunks);
  }
}
