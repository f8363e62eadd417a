/** The functions of the platform that the system clock calls. Tests pass their own. */
export interface ClockPlatform {
  /** Monotonic milliseconds with fractions. */
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wall: () => number;
  /**
   * Calls `fn(argument)` after about `delayMs`, a whole number from 1 to 2^31 - 1. Keeps the process alive until then.
   */
  readonly setTimeout: <T>(fn: (argument: T) => void, delayMs: number, argument: T) => unknown;
  readonly clearTimeout: (handle: unknown) => void;
  /**
   * Calls `fn(argument)` in the next turn of the event loop, never before returning. Keeps the process alive until
   * then.
   */
  readonly setImmediate: <T>(fn: (argument: T) => void, argument: T) => unknown;
  readonly clearImmediate: (handle: unknown) => void;
  /**
   * The shortest delay that `setTimeout` keeps to: 1 where there is `setImmediate`, 4 in browsers, which stretch nested
   * timers.
   */
  readonly minDelayMs: number;
}

/** What the global object of a platform may offer, without its `this`. */
interface PlatformGlobal {
  readonly performance: { now(): number };
  readonly setTimeout: ClockPlatform["setTimeout"];
  readonly clearTimeout: ClockPlatform["clearTimeout"];
  readonly setImmediate?: ClockPlatform["setImmediate"];
  readonly clearImmediate?: ClockPlatform["clearImmediate"];
  readonly MessageChannel?: typeof MessageChannel;
}

/**
 * Collects the functions of the platform this runs on, as they are at the time of the call.
 *
 * Turns of the event loop come from `setImmediate` (Node, Bun, Deno), else from a `MessageChannel` (browsers, workers),
 * else from `setTimeout`. Timers replaced by a test framework before the call are used as they are.
 */
export function globalPlatform(): ClockPlatform {
  const global = globalThis as unknown as PlatformGlobal;
  // Looked up once: on some platforms `performance` is a getter that costs more than the reading itself.
  const { performance, MessageChannel: Channel } = global;
  const setTimeout = global.setTimeout.bind(global);
  const clearTimeout = global.clearTimeout.bind(global);
  const timers = { now: () => performance.now(), wall: () => Date.now(), setTimeout, clearTimeout };
  if (global.setImmediate !== undefined && global.clearImmediate !== undefined) {
    const setImmediate = global.setImmediate.bind(global);
    return { ...timers, setImmediate, clearImmediate: global.clearImmediate.bind(global), minDelayMs: 1 };
  }
  const slow = { ...timers, minDelayMs: 4 };
  if (Channel === undefined) {
    return { ...slow, setImmediate: (fn, argument) => setTimeout(fn, 0, argument), clearImmediate: clearTimeout };
  }
  return {
    ...slow,
    // A message is not subject to the 4 ms of nested timers. Each has a channel of its own, since an open one keeps some platforms alive.
    setImmediate(fn, argument) {
      const { port1, port2 } = new Channel();
      port1.onmessage = () => {
        port1.close();
        fn(argument);
      };
      port2.postMessage(undefined);
      return port1;
    },
    clearImmediate(handle) {
      const port = handle as MessagePort;
      port.onmessage = null;
      port.close();
    },
  };
}
