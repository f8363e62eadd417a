import type { Clock, HeadersLike } from "../../types.js";
import type { Flight } from "../flight.js";

/** The part of a `ClientRequest` that an observer needs. Those of http2-wrapper fit as well. */
export interface SentRequest {
  emit(event: string | symbol, ...args: unknown[]): boolean;
  destroy(error?: unknown): unknown;
}

/** An answer as Node has it. */
export interface Answer {
  readonly statusCode: number;
  readonly headers: HeadersLike;
  /** Whether all of it has arrived. */
  readonly complete?: boolean;
  /** What it broke off with; null when the program itself gave it up. */
  readonly errored?: unknown;
  /** Bytes that have arrived and wait for a reader. */
  readonly readableLength?: number;
  /** Whether anything was ever read from it. */
  readonly readableDidRead?: boolean;
  readonly socket?: { readonly bytesRead?: number } | null;
  once(event: "end", listener: () => void): unknown;
}

/** How long nobody reads an answer before its place is given to somebody else. */
const UNREAD_MS = 5_000;
const SLACK_MS = 1_000;

/**
 * Ends `flight` with the request: at the last byte of the answer, when the program gives it up, or when it fails.
 *
 * It watches what the request emits and adds no listeners: Node dumps an answer only if nobody listens for it, and closes an
 * upgraded connection only if nobody listens for that.
 */
export function follow(request: SentRequest, flight: Flight, clock: Clock): void {
  let answer: Answer | undefined;
  let isLate = false;
  before(request, "emit", (event, first) => {
    if (event === "response") {
      answer = first as Answer;
      hear(answer, flight, clock);
    } else if (event === "upgrade" || event === "connect") {
      // The socket belongs to the program from now on.
      const { statusCode, headers } = first as Answer;
      flight.finished(statusCode, headers);
    } else if (event === "timeout") {
      isLate = true;
    } else if (event === "error") {
      flight.failed(first);
    } else if (event === "close") {
      if (answer?.complete === false) flight.failed(answer.errored);
      else flight.done();
    }
  });
  // A request that is given up ends with the same error as one that the site tears off; they differ only here.
  before(request, "destroy", (error) => {
    const torn = answer?.errored ?? undefined;
    flight.failed(error ?? torn ?? (isLate && answer === undefined ? { code: "ETIMEDOUT" } : undefined));
  });
}

/** Reports an answer, and ends `flight` with its last byte, or once nobody has read what is there for about 5 s. */
export function hear(answer: Answer, flight: Flight, clock: Clock): void {
  flight.answered(answer.statusCode, answer.headers);
  answer.once("end", () => flight.done());
  freeUnread(answer, flight, clock);
}

/** Calls `act` with the arguments of a method before each call. */
export function before<Name extends string>(
  target: Readonly<Record<Name, (...args: never[]) => unknown>>,
  name: Name,
  act: (...args: unknown[]) => void,
): void {
  const method = target[name];
  const value = function observed(this: unknown, ...args: unknown[]): unknown {
    act(...args);
    return Reflect.apply(method, this, args);
  };
  Object.defineProperty(target, name, { configurable: true, writable: true, value });
}

/** A program that first starts all its requests and reads the answers later would otherwise wait for itself. */
function freeUnread(answer: Answer, flight: Flight, clock: Clock): void {
  if (answer.readableDidRead === undefined || flight.isOver) return;
  let timer: unknown;
  let bytesBefore: number | undefined;
  const look = (): void => {
    const { complete, readableLength = 0, readableDidRead, socket } = answer;
    const bytes = socket?.bytesRead;
    const isWaiting = readableLength > 0 && (readableDidRead === false || bytes === bytesBefore);
    bytesBefore = bytes;
    if (isWaiting || complete === true) flight.done();
    else wait();
  };
  const wait = (): void => {
    timer = clock.setTimer(clock.now() + UNREAD_MS, look, SLACK_MS);
    clock.unref?.(timer);
  };
  flight.onEnd = () => clock.clearTimer(timer);
  // One without a body has arrived by then.
  queueMicrotask(() => {
    if (answer.complete === true && answer.readableLength === 0) flight.done();
    else if (!flight.isOver) wait();
  });
}
