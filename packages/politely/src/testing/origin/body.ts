import { onAbort } from "../../http/onAbort.js";
import type { Clock } from "../../types.js";
import type { Body } from "./options.js";

const slowPieces = 10;
const pieceBytes = 64 * 1_024;
const letter = 0x78;

type Controller = ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;

/** How a body is sent. */
export interface Way {
  readonly clock: Clock;
  /** The client goes away: its next read rejects with the reason. */
  readonly signal: AbortSignal | undefined;
  readonly startMs: number;
  /** 0: as fast as it is read. */
  readonly sendMs: number;
  /** Half of it comes, and then nothing. */
  readonly isStalled: boolean;
  /** Called after the last byte, when the reader cancels, or when the client goes away. */
  readonly onEnd: () => void;
}

/** A body on its way. A slow one comes at its times whether or not somebody reads it. */
export function bodyStream({ content, bytes }: Body, way: Way): ReadableStream<Uint8Array<ArrayBuffer>> {
  const { clock, signal, startMs, sendMs, isStalled, onEnd } = way;
  let timer: unknown;
  let sent = 0;
  let unwatch: (() => void) | undefined;
  const end = (): void => {
    clock.clearTimer(timer);
    unwatch?.();
    onEnd();
  };
  const push = (to: number, isLast: boolean, controller: Controller): void => {
    // A copy that its reader may keep.
    const piece = typeof content === "number" ? new Uint8Array(to - sent).fill(letter) : content.slice(sent, to);
    if (to > sent) controller.enqueue(piece);
    sent = to;
    if (!isLast) return;
    controller.close();
    end();
  };
  const pushSlowly = (piece: number, controller: Controller): void => {
    timer = clock.setTimer(startMs + (sendMs * piece) / slowPieces, () => {
      push(Math.floor((bytes * piece) / slowPieces), piece === slowPieces, controller);
      if (piece < slowPieces) pushSlowly(piece + 1, controller);
    });
  };
  return new ReadableStream({
    start(controller) {
      unwatch =
        signal &&
        onAbort(signal, () => {
          controller.error(signal.reason);
          end();
        });
      if (isStalled) push(Math.floor(bytes / 2), false, controller);
      else if (sendMs > 0) pushSlowly(1, controller);
    },
    pull(controller) {
      if (isStalled || sendMs > 0) return;
      const to = Math.min(bytes, sent + pieceBytes);
      push(to, to === bytes, controller);
    },
    cancel: end,
  });
}
