import type {
  Abort,
  Controller,
  ControllerCallbacks,
  Dispatch,
  DispatchOptions,
  LegacyCallbacks,
} from "../../../../src/http/undici/dispatchTypes.js";
import { politeInterceptor } from "../../../../src/http/undici/index.js";
import { type Limiter, politely } from "../../../../src/index.js";
import { VirtualClock } from "../../../../src/testing/index.js";

export const SITE = "https://example.org";
export const page: DispatchOptions = { origin: SITE, path: "/a", method: "GET" };

/** One request as a scripted undici has it. */
interface Sent<Handler> {
  readonly options: DispatchOptions;
  readonly handler: Required<Handler>;
}

/** A limiter on virtual time in front of an undici that does nothing by itself. */
export function scripted<Handler extends ControllerCallbacks | LegacyCallbacks>(concurrency = 1) {
  const clock = new VirtualClock();
  const polite = politely({ default: { concurrency, backoff: "none" } }, { clock });
  const sent: Sent<Handler>[] = [];
  const dispatch: Dispatch = (options, handler) => {
    sent.push({ options, handler: handler as unknown as Required<Handler> });
    return false;
  };
  return { clock, polite, sent, dispatch: politeInterceptor(polite)(dispatch) };
}

/** A handler in the older style that writes down what it hears. `wantsMore` is what it answers to data. */
export function legacyEar(wantsMore: () => boolean = () => true) {
  const heard: unknown[][] = [];
  const ear = {
    heard,
    abort: undefined as Abort | undefined,
    resume: undefined as (() => void) | undefined,
    onConnect: (abort: Abort, context: unknown) => {
      ear.abort = abort;
      heard.push(["connect", context]);
    },
    onUpgrade: (...args: unknown[]) => void heard.push(["upgrade", ...args]),
    onHeaders: (status: number, raw: readonly unknown[], resume: () => void, message?: string) => {
      ear.resume = resume;
      heard.push(["headers", status, raw, message]);
      return wantsMore();
    },
    onData: (chunk: unknown) => {
      heard.push(["data", chunk]);
      return wantsMore();
    },
    onComplete: (trailers: unknown) => void heard.push(["complete", trailers]),
    onError: (error: unknown) => void heard.push(["error", error]),
  };
  return ear;
}

/** A handler in the newer style that writes down what it hears. */
export function controllerEar() {
  const heard: unknown[][] = [];
  const ear = {
    heard,
    controller: undefined as Controller | undefined,
    onRequestStart: (controller: Controller, context: unknown) => {
      ear.controller = controller;
      heard.push(["start", context]);
    },
    onRequestUpgrade: (_: Controller, ...args: unknown[]) => void heard.push(["upgrade", ...args]),
    onResponseStart: (_: Controller, ...args: unknown[]) => void heard.push(["headers", ...args]),
    onResponseData: (_: Controller, ...args: unknown[]) => void heard.push(["data", ...args]),
    onResponseEnd: (_: Controller, ...args: unknown[]) => void heard.push(["end", ...args]),
    onResponseError: (controller: Controller, error: unknown) => void heard.push(["error", error, controller.aborted]),
  };
  return ear;
}

/** The controller of a connection, which writes down what it is told. */
export function connection() {
  const told: unknown[] = [];
  return {
    told,
    rawHeaders: ["x-a", "1"],
    rawTrailers: [],
    abort: (reason: unknown) => void told.push(["abort", reason]),
    pause: () => void told.push("pause"),
    resume: () => void told.push("resume"),
  };
}

export function places(polite: Limiter): [number, number] {
  const { inFlight = 0, waiting = 0 } = polite.stats("example.org") ?? {};
  return [inFlight, waiting];
}
