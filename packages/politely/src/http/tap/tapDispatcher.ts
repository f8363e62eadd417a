import type { ControllerCallbacks, Dispatch, LegacyCallbacks } from "../undici/dispatchTypes.js";
import { GLOBAL_DISPATCHERS } from "../undici/globalKeys.js";
import { ControllerTap } from "./controllerTap.js";
import { LegacyTap } from "./legacyTap.js";
import type { Tap } from "./tap.js";

/** The part of an undici dispatcher that is looked at here. */
interface Dispatcher {
  dispatch: Dispatch;
  /** Bodies to send are given as they are to one that only pretends. */
  readonly isMockActive?: unknown;
}

interface Globals {
  readonly [key: symbol]: Dispatcher | undefined;
  readonly fetch?: unknown;
  readonly process?: { readonly versions?: { readonly undici?: string } };
}

const globals = globalThis as unknown as Globals;
/** Where Node's own `fetch` looks for the dispatcher of requests that name none. */
const KEY = GLOBAL_DISPATCHERS[Number.parseInt(globals.process?.versions?.undici ?? "0", 10) < 8 ? 0 : 1];

/** What `fetch` is given as the dispatcher of one request, to tap its answer. The request goes where it would have gone. */
export class TapDispatcher {
  /** Undefined before the request has got here. */
  tap: Tap | undefined = undefined;

  constructor(
    readonly target: Dispatcher,
    readonly signal: AbortSignal | undefined,
  ) {}

  get isMockActive(): unknown {
    return this.target.isMockActive;
  }

  dispatch(options: Parameters<Dispatch>[0], handler: ControllerCallbacks | LegacyCallbacks): boolean {
    const { signal } = this;
    const tap = "onRequestStart" in handler ? new ControllerTap(handler, signal) : new LegacyTap(handler, signal);
    this.tap = tap;
    return this.target.dispatch(options, tap);
  }
}

/**
 * A tap for a request of the global `fetch` that names the dispatcher `given` and is sent with `signal`. Undefined where there can be none.
 *
 * That is so with every `fetch` but Node's own: what another one makes of an answer, or which dispatcher it would choose, is not
 * known. It is also so in Node before the first request, when it has no dispatcher yet.
 */
export function tapFor(given: unknown, signal: AbortSignal | undefined): TapDispatcher | undefined {
  if (!isNodes(globals.fetch)) return undefined;
  const target = given === undefined || given === null ? globals[KEY] : given;
  return isDispatcher(target) ? new TapDispatcher(target, signal) : undefined;
}

let known: unknown;
let isKnownNodes = false;

/** Whether a function is the `fetch` that comes with Node, not one around it: its text says where it has its code from. One of another realm has other globals. */
function isNodes(fetch: unknown): boolean {
  if (fetch === known) return isKnownNodes;
  known = fetch;
  isKnownNodes = fetch instanceof Function && Function.prototype.toString.call(fetch).includes("internal/deps/undici");
  return isKnownNodes;
}

function isDispatcher(value: unknown): value is Dispatcher {
  return typeof value === "object" && value !== null && "dispatch" in value && typeof value.dispatch === "function";
}
