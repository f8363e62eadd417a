import type { FetchOptions } from "../../types.js";
import type { Exchange } from "../exchange.js";
import type { Flight } from "../flight.js";
import { pacedDispatch } from "./callbackStyles.js";
import type { ControllerCallbacks, Dispatch, DispatchOptions, LegacyCallbacks } from "./dispatchTypes.js";
import { GLOBAL_DISPATCHERS } from "./globalKeys.js";
import type { Plan } from "./pacedHandler.js";

/** The part of an undici dispatcher that is looked at here. */
export interface Dispatcher {
  dispatch: Dispatch;
  /** Bodies to send are given as they are to one that only pretends. */
  readonly isMockActive?: unknown;
}

type Handler = ControllerCallbacks | LegacyCallbacks;

interface Globals {
  readonly [key: symbol]: Dispatcher | undefined;
  readonly Headers?: unknown;
  readonly process?: { readonly versions?: { readonly undici?: string } };
}

const globals = globalThis as unknown as Globals;
/** Where Node's own `fetch` looks for the dispatcher of requests that name none. */
const KEY = GLOBAL_DISPATCHERS[Number.parseInt(globals.process?.versions?.undici ?? "0", 10) < 8 ? 0 : 1];

let known: unknown;
let isKnownNodes = false;

/** Whether a function is the `fetch` that comes with Node, not one around it: its text says where it has its code from. */
function isNodes(fetch: unknown): boolean {
  if (fetch === known) return isKnownNodes;
  known = fetch;
  isKnownNodes = fetch instanceof Function && Function.prototype.toString.call(fetch).includes("internal/deps/undici");
  return isKnownNodes;
}

/**
 * What a request of Node's own `fetch` goes through: `given`, else the dispatcher of the Request where that can be seen, else the
 * global one. Undefined for every other `fetch`: what that makes of a dispatcher is not known.
 */
export function dispatcherOf(fetch: unknown, given: unknown, request: object | undefined): Dispatcher | undefined {
  if (!isNodes(fetch)) return undefined;
  const own = given ?? (request === undefined ? undefined : dispatcherOfRequest(request));
  if (own !== undefined && own !== null) return isDispatcher(own) ? own : undefined;
  // Node makes its dispatcher when one of these is first asked for.
  if (globals[KEY] === undefined) void globals.Headers;
  return globals[KEY];
}

/** Undici up to version 6, which Node 20 and 22 have, keeps it under a symbol; later ones hide it. */
function dispatcherOfRequest(request: object): unknown {
  const name = Object.getOwnPropertySymbols(request).find(({ description }) => description === "dispatcher");
  return name === undefined ? undefined : Reflect.get(request, name);
}

function isDispatcher(value: unknown): value is Dispatcher {
  return typeof value === "object" && value !== null && "dispatch" in value && typeof value.dispatch === "function";
}

/** What a call of `fetch` tells its dispatcher. */
export interface CallWay {
  readonly options: FetchOptions | undefined;
  /** The caller's own dispatcher. */
  readonly given: unknown;
  /** Ends the wait. */
  readonly signal: AbortSignal | undefined;
  granted(flight: Flight): void;
  answered(): void;
}

/**
 * The dispatcher of one call of Node's `fetch`. Node follows redirects by itself and dispatches each hop here, where it is paced
 * under its own host before it goes where it would have gone.
 */
export class CallDispatcher implements Plan {
  readonly isFetch = true;
  /** Why a hop did not go. `fetch` only knows it as the cause of its own error. */
  refusal: { readonly error: unknown } | undefined = undefined;
  #firstKey: string | undefined = undefined;

  constructor(
    readonly exchange: Exchange,
    readonly target: Dispatcher,
    readonly way: CallWay,
  ) {}

  get signal(): AbortSignal | undefined {
    return this.way.signal;
  }

  get given(): unknown {
    return this.way.given;
  }

  get isMockActive(): unknown {
    return this.target.isMockActive;
  }

  dispatch(request: DispatchOptions, handler: Handler): boolean {
    pacedDispatch(this, request, handler);
    this.exchange.underway.end(this);
    return true;
  }

  send(request: DispatchOptions, handler: Handler): void {
    this.target.dispatch(request, handler);
  }

  /**
   * A hop to another key costs one unit: a cost is written for the limits of the first host, and what another has no name or no
   * room for would end the request. Intent and scopes stay: an intent that a host does not know changes nothing, and a proxy is
   * the same one for every hop.
   */
  optionsOf(_request: DispatchOptions, url: string): FetchOptions | undefined {
    const { options } = this.way;
    if (options?.cost === undefined) return options;
    const key = this.exchange.pacer.keyOf(url);
    this.#firstKey ??= key;
    return key === this.#firstKey ? options : { ...options, cost: undefined };
  }

  granted(flight: Flight): void {
    this.way.granted(flight);
  }

  answered(): void {
    this.way.answered();
  }

  /** Either the next hop comes by itself, or `fetch` is done. */
  redirected(key: string): void {
    this.exchange.underway.begin(this, key);
  }

  refused(error: unknown): void {
    this.refusal = { error };
  }
}
