/** Turns of the event loop, in the shape of `setImmediate`. */
export interface Turns {
  /** Calls `fn(argument)` in the next turn, never before returning; calls are made in the order they were asked for. */
  readonly setImmediate: <T>(fn: (argument: T) => void, argument: T) => unknown;
  /** Makes the call not happen. A handle whose call was made is ignored. */
  readonly clearImmediate: (handle: unknown) => void;
}

/** One call that is asked for; without `call` it was cancelled. */
interface Turn {
  call: (() => void) | undefined;
}

/**
 * Makes turns from messages, for platforms without `setImmediate`: a message is not subject to the 4 ms of nested
 * timers.
 *
 * The channel is open only while a call is pending, since an open one keeps some platforms alive.
 */
export function messageTurns(Channel: new () => MessageChannel): Turns {
  const queue: Turn[] = [];
  let channel: MessageChannel | undefined;

  function runNext(): void {
    const turn = queue.shift();
    try {
      turn?.call?.();
    } finally {
      if (queue.length === 0) {
        channel?.port1.close();
        channel?.port2.close();
        channel = undefined;
      }
    }
  }

  return {
    setImmediate(fn, argument) {
      const turn: Turn = { call: () => fn(argument) };
      if (channel === undefined) {
        channel = new Channel();
        channel.port1.onmessage = runNext;
      }
      queue.push(turn);
      channel.port2.postMessage(undefined);
      return turn;
    },
    clearImmediate(handle) {
      // The message is on its way and cannot be recalled; it finds nothing to call.
      const turn = handle as Turn | undefined;
      if (turn !== undefined) turn.call = undefined;
    },
  };
}
