import type { Clock } from "../../types.js";
import type { Flight } from "../flight.js";
import { readAhead } from "../readAhead.js";
import { freeUnread, type WaitingStream } from "./unreadStream.js";

/** A stream of Node's, as far as its end matters. */
interface NodeStream extends WaitingStream {
  readonly destroyed: boolean;
  /** What it broke off with; null when it did not. */
  readonly errored?: unknown;
  once(event: "end" | "close", listener: () => void): unknown;
  destroy(): unknown;
}

/**
 * Ends `flight` with the body: when a stream ends, breaks off, is given up or not read for 5 s, and at once when it is none.
 * Gives the same bytes back.
 */
export function holdStream(data: unknown, flight: Flight, clock: Clock): unknown {
  if (isWebStream(data)) return readAhead(data, flight);
  if (!isNodeStream(data) || data.destroyed) {
    flight.done();
    return data;
  }
  data.once("end", () => flight.done());
  data.once("close", () => {
    if (data.errored === undefined || data.errored === null) flight.done();
    else flight.failed(data.errored);
  });
  freeUnread(data, flight, clock);
  return data;
}

/** Nobody wants the body, if it is still to come. */
export function dropStream(data: unknown): void {
  if (isNodeStream(data)) data.destroy();
  else if (isWebStream(data) && !data.locked) data.cancel().catch(() => undefined);
}

function isWebStream(data: unknown): data is ReadableStream<Uint8Array> {
  return typeof data === "object" && data !== null && "getReader" in data;
}

function isNodeStream(data: unknown): data is NodeStream {
  return typeof data === "object" && data !== null && "pipe" in data && "once" in data && "destroyed" in data;
}
