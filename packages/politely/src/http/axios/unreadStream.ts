import type { Clock } from "../../types.js";
import type { Flight } from "../flight.js";

/** How long nobody begins to read a stream before its place is given to somebody else. */
const UNREAD_MS = 5_000;
const SLACK_MS = 1_000;

/** A stream of Node's, as far as it tells whether somebody reads. */
export interface WaitingStream {
  /** Bytes that have arrived and wait for a reader. */
  readonly readableLength?: number;
  /** Whether anything was ever read from it. */
  readonly readableDidRead?: boolean;
}

/**
 * Ends `flight` when bytes of a stream have waited about 5 s for anybody to begin reading; up to 5 s more when they came late.
 *
 * A program that first starts all its requests and reads the answers later would otherwise wait for itself.
 */
export function freeUnread(stream: WaitingStream, flight: Flight, clock: Clock): void {
  if (stream.readableDidRead === undefined || flight.isOver) return;
  let timer: unknown;
  const look = (): void => {
    if (stream.readableDidRead === true) return;
    if (stream.readableLength !== undefined && stream.readableLength > 0) flight.done();
    else wait();
  };
  const wait = (): void => {
    timer = clock.setTimer(clock.now() + UNREAD_MS, look, SLACK_MS);
    clock.unref?.(timer);
  };
  flight.onEnd = () => clock.clearTimer(timer);
  wait();
}
