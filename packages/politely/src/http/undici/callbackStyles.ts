import type { HeadersLike } from "../../types.js";
import type { Abort, Controller, ControllerCallbacks, DispatchOptions, LegacyCallbacks } from "./dispatchTypes.js";
import { PacedHandler, type Plan } from "./pacedHandler.js";

type LegacyArgs<Name extends keyof LegacyCallbacks> = Parameters<NonNullable<LegacyCallbacks[Name]>>;
type ControllerArgs<Name extends keyof ControllerCallbacks> = Parameters<NonNullable<ControllerCallbacks[Name]>>;
type Callbacks = ControllerCallbacks | LegacyCallbacks;

/** A dispatch that waits its turn, is heard, and keeps its place until its last byte. The caller is told in its own style. */
export function pacedDispatch(plan: Plan, request: DispatchOptions, handler: Callbacks): true {
  const paced =
    "onRequestStart" in handler
      ? new ControllerHandler(plan, request, handler)
      : new LegacyHandler(plan, request, handler);
  paced.begin();
  return true;
}

/** What is only passed on, in either style. */
abstract class PassingHandler<Handler extends Callbacks> extends PacedHandler {
  constructor(
    plan: Plan,
    request: DispatchOptions,
    readonly handler: Handler,
  ) {
    super(plan, request);
  }

  onResponseStarted(): void {
    this.handler.onResponseStarted?.();
  }

  onBodySent(chunk: unknown): void {
    this.handler.onBodySent?.(chunk);
  }

  onRequestSent(): void {
    this.handler.onRequestSent?.();
  }
}

/** For undici 6, and for callers of 7 that still speak its way. */
class LegacyHandler extends PassingHandler<LegacyCallbacks> implements Required<LegacyCallbacks> {
  #hasStarted = false;
  readonly #abort: Abort = (reason) => this.stop(reason);

  protected get self(): LegacyCallbacks {
    return this;
  }

  protected tellStart(): void {
    this.handler.onConnect?.(this.#abort, undefined);
  }

  protected tellFailure(error: unknown): void {
    if (this.handler.onError === undefined) throw error;
    this.handler.onError(error);
  }

  onConnect(...[abort, context]: LegacyArgs<"onConnect">): void {
    if (!this.started(abort)) return;
    const isFirst = !this.#hasStarted;
    this.#hasStarted = true;
    // The handler can abort since the start. It is called again for what it could not know then.
    if (!isFirst || (context !== undefined && context !== null)) this.handler.onConnect?.(this.#abort, context);
  }

  onUpgrade(...[status, rawHeaders, socket]: LegacyArgs<"onUpgrade">): unknown {
    this.upgraded(status, (rawHeaders ?? []) as unknown as HeadersLike);
    return this.handler.onUpgrade?.(status, rawHeaders, socket);
  }

  onHeaders(...[status, rawHeaders, resume, message]: LegacyArgs<"onHeaders">): unknown {
    // Names and values in turn are read as they are.
    this.answered(status, rawHeaders as unknown as HeadersLike);
    const goOn = (): void => {
      this.resumed();
      resume();
    };
    const result = this.handler.onHeaders?.(status, rawHeaders, goOn, message);
    // `fetch` refuses a 1xx with the same word, and nobody resumes it.
    return status < 200 ? result : true;
  }

  onData(chunk: unknown): unknown {
    return this.goesOn(chunk, this.handler.onData?.(chunk) !== false);
  }

  onComplete(trailers: unknown): void {
    this.completed();
    this.handler.onComplete?.(trailers);
  }

  onError(error: unknown): void {
    if (this.failed(error)) this.tellFailure(error);
  }
}

/** For undici 7 and later. It is also the controller that the caller keeps from the queue to the end. */
class ControllerHandler
  extends PassingHandler<ControllerCallbacks>
  implements Required<ControllerCallbacks>, Controller
{
  #inner: Controller | undefined = undefined;
  #wantsMore = true;
  #aborted: { readonly reason: unknown } | undefined = undefined;

  protected get self(): ControllerCallbacks {
    return this;
  }

  protected tellStart(): void {
    this.handler.onRequestStart(this, null);
  }

  protected tellFailure(error: unknown): void {
    if (this.handler.onResponseError === undefined) throw error;
    this.handler.onResponseError(this, error);
  }

  onRequestStart(...[controller, context]: ControllerArgs<"onRequestStart">): void {
    if (!this.started((reason) => controller.abort(reason))) return;
    const isFirst = this.#inner === undefined;
    this.#inner = controller;
    // The handler has its controller since the start. It is called again for what it could not know then.
    if (!isFirst || (context !== undefined && context !== null)) this.handler.onRequestStart(this, context);
  }

  onRequestUpgrade(...[, status, headers, socket]: ControllerArgs<"onRequestUpgrade">): unknown {
    this.upgraded(status, headers);
    return this.handler.onRequestUpgrade?.(this, status, headers, socket);
  }

  onResponseStart(...[, status, headers, message]: ControllerArgs<"onResponseStart">): void {
    this.answered(status, headers);
    this.handler.onResponseStart?.(this, status, headers, message);
  }

  onResponseData(...[controller, chunk]: ControllerArgs<"onResponseData">): void {
    this.handler.onResponseData?.(this, chunk);
    if (!this.goesOn(chunk, this.#wantsMore)) controller.pause();
  }

  onResponseEnd(...[, trailers]: ControllerArgs<"onResponseEnd">): void {
    this.completed();
    this.handler.onResponseEnd?.(this, trailers);
  }

  onResponseError(...[, error]: ControllerArgs<"onResponseError">): void {
    if (this.failed(error)) this.tellFailure(error);
  }

  get aborted(): boolean {
    return this.#aborted !== undefined || this.#inner?.aborted === true;
  }

  get reason(): unknown {
    return this.#aborted === undefined ? (this.#inner?.reason ?? null) : this.#aborted.reason;
  }

  get paused(): boolean {
    return !this.#wantsMore;
  }

  get rawHeaders(): unknown {
    return this.#inner?.rawHeaders ?? null;
  }

  get rawTrailers(): unknown {
    return this.#inner?.rawTrailers ?? null;
  }

  abort(reason?: unknown): void {
    this.#aborted ??= { reason };
    this.stop(reason);
  }

  pause(): void {
    this.#wantsMore = false;
  }

  resume(): void {
    this.#wantsMore = true;
    this.resumed();
    this.#inner?.resume();
  }
}
