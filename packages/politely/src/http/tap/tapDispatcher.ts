import type { ControllerCallbacks, Dispatch, LegacyCallbacks } from "../undici/dispatchTypes.js";
import { ControllerTap } from "./controllerTap.js";
import { LegacyTap } from "./legacyTap.js";
import type { Tap } from "./tap.js";

/** The part of an undici dispatcher that is looked at here. */
interface Dispatcher {
  dispatch: Dispatch;
  /** Bodies to send are given to one that pretends as they are. */
  readonly isMockActive?: unknown;
}

type Globals = Readonly<Record<symbol, Dispatcher | undefined>>;

const globals = globalThis as unknown as Globals;
/** Where undici 6 and 7 look for the dispatcher of requests that name none. */
const LEGACY_KEY = Symbol.for("undici.globalDispatcher.1");
/** Where undici 8 looks for it. */
const CONTROLLER_KEY = Symbol.for("undici.globalDispatcher.2");

/** What `fetch` is given as the dispatcher of one request, to tap its answer. The request goes where it would have gone. */
export class TapDispatcher {
  /** Undefined before the request has got here. */
  tap: Tap | undefined = undefined;

  /** `given` is the dispatcher that the caller wants; undefined for the global one. */
  constructor(readonly given: Dispatcher | undefined) {}

  get isMockActive(): unknown {
    return (this.given ?? globals[LEGACY_KEY] ?? globals[CONTROLLER_KEY])?.isMockActive;
  }

  dispatch(options: Parameters<Dispatch>[0], handler: ControllerCallbacks | LegacyCallbacks): boolean {
    const isLegacy = !("onRequestStart" in handler);
    const tap = isLegacy ? new LegacyTap(handler) : new ControllerTap(handler);
    this.tap = tap;
    const dispatcher = this.given ?? globals[isLegacy ? LEGACY_KEY : CONTROLLER_KEY];
    if (dispatcher === undefined) throw new TypeError("fetch has no dispatcher to send requests with.");
    return dispatcher.dispatch(options, tap);
  }
}

/** Undefined where `fetch` has no dispatchers, as in browsers, and in Node before the first request. */
export function tapFor(given: unknown): TapDispatcher | undefined {
  if (given !== undefined && given !== null) return isDispatcher(given) ? new TapDispatcher(given) : undefined;
  const hasGlobal = globals[LEGACY_KEY] !== undefined || globals[CONTROLLER_KEY] !== undefined;
  return hasGlobal ? new TapDispatcher(undefined) : undefined;
}

function isDispatcher(value: object): value is Dispatcher {
  return "dispatch" in value && typeof value.dispatch === "function";
}
