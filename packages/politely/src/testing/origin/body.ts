import type { Clock } from "../../types.js";
import type { Outgoing } from "./host.js";
import type { BodyRule } from "./rules.js";

const slowPieces = 10;
const pieceBytes = 64 * 1_024;
const letter = 0x78;

/** A body on its way, and how to break it off. */
export interface Sending {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Makes the reader's next read reject with this. Nothing happens after the end. */
  fail(reason: unknown): void;
}

/** Tells whether a body is simply there with its headers, and small enough to be so. */
export function isWhole({ body, isStalled }: Outgoing): boolean {
  return body === undefined || (!isStalled && body.sendMs === 0 && typeof body.content !== "number");
}

/**
 * Sends a body on `clock`: slowly, or until it stalls, or as fast as it is read.
 *
 * A slow body comes at its times whether or not somebody reads it. `onEnd` is called once: after the last byte, when the
 * reader cancels, or by `fail`.
 */
export function sendBody(outgoing: Outgoing, body: BodyRule, clock: Clock, onEnd: () => void): Sending {
  const bytes = typeof body.content === "number" ? body.content : body.content.length;
  let timer: unknown;
  let isOver = false;
  let controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;

  const end = (): void => {
    if (isOver) return;
    isOver = true;
    clock.clearTimer(timer);
    onEnd();
  };
  const push = (from: number, to: number, isLast: boolean): void => {
    if (to > from) controller?.enqueue(slice(body.content, from, to));
    if (!isLast) return;
    controller?.close();
    end();
  };
  const pushSlowly = (piece: number): void => {
    const atMs = outgoing.startMs + (body.sendMs * piece) / slowPieces;
    timer = clock.setTimer(atMs, () => {
      const from = Math.floor((bytes * (piece - 1)) / slowPieces);
      push(from, Math.floor((bytes * piece) / slowPieces), piece === slowPieces);
      if (piece < slowPieces) pushSlowly(piece + 1);
    });
  };

  let sent = 0;
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(given) {
      controller = given;
      if (outgoing.isStalled) {
        if (bytes > 1) given.enqueue(slice(body.content, 0, Math.floor(bytes / 2)));
      } else if (body.sendMs > 0) pushSlowly(1);
    },
    pull() {
      if (outgoing.isStalled || body.sendMs > 0) return;
      const from = sent;
      sent = Math.min(bytes, from + pieceBytes);
      push(from, sent, sent === bytes);
    },
    cancel: end,
  });
  const fail = (reason: unknown): void => {
    if (isOver) return;
    controller?.error(reason);
    end();
  };
  return { stream, fail };
}

/** A part of the content, as a copy that its reader may keep. */
function slice(content: BodyRule["content"], from: number, to: number): Uint8Array<ArrayBuffer> {
  return typeof content === "number" ? new Uint8Array(to - from).fill(letter) : content.slice(from, to);
}
