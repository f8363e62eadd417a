import type { Controller, ControllerCallbacks } from "./dispatchTypes.js";
import type { Caller, Ride } from "./ride.js";

type Args<Name extends keyof ControllerCallbacks> = Parameters<NonNullable<ControllerCallbacks[Name]>>;

/** Stands between undici 7 or later and a handler, in the style of both: everything is passed on, and heard. */
export class ControllerHandler implements Caller, Required<ControllerCallbacks> {
  readonly #steer: RideController;

  constructor(
    readonly ride: Ride,
    readonly handler: ControllerCallbacks,
  ) {
    this.#steer = new RideController(ride);
  }

  start(): void {
    this.handler.onRequestStart(this.#steer, null);
  }

  fail(error: unknown): void {
    if (this.handler.onResponseError === undefined) throw error;
    this.handler.onResponseError(this.#steer, error);
  }

  onRequestStart(...[controller, context]: Args<"onRequestStart">): void {
    if (!this.ride.started((reason) => controller.abort(reason))) return;
    const isFirst = this.#steer.steers(controller);
    // The handler has its controller since `start`. It is called again for what it could not know then.
    if (!isFirst || (context !== undefined && context !== null)) this.handler.onRequestStart(this.#steer, context);
  }

  onRequestUpgrade(...[, status, headers, socket]: Args<"onRequestUpgrade">): unknown {
    this.ride.upgraded(status, headers);
    return this.handler.onRequestUpgrade?.(this.#steer, status, headers, socket);
  }

  onResponseStart(...[, status, headers, message]: Args<"onResponseStart">): void {
    this.ride.answered(status, headers);
    this.handler.onResponseStart?.(this.#steer, status, headers, message);
  }

  onResponseData(...[, chunk]: Args<"onResponseData">): void {
    this.handler.onResponseData?.(this.#steer, chunk);
  }

  onResponseEnd(...[, trailers]: Args<"onResponseEnd">): void {
    this.ride.completed();
    this.handler.onResponseEnd?.(this.#steer, trailers);
  }

  onResponseError(...[, error]: Args<"onResponseError">): void {
    if (this.ride.failed(error)) this.fail(error);
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

/** The controller a handler keeps from the queue to the end. Before there is a connection it remembers what is asked of it. */
class RideController implements Controller {
  #inner: Controller | undefined = undefined;
  #isPaused = false;
  #aborted: { readonly reason: unknown } | undefined = undefined;

  constructor(readonly ride: Ride) {}

  /** Steers the request on its connection from now on. True the first time; undici may need another connection later. */
  steers(inner: Controller): boolean {
    const isFirst = this.#inner === undefined;
    this.#inner = inner;
    if (this.#isPaused) inner.pause();
    return isFirst;
  }

  get aborted(): boolean {
    return this.#aborted !== undefined || this.#inner?.aborted === true;
  }

  get reason(): unknown {
    return this.#aborted === undefined ? (this.#inner?.reason ?? null) : this.#aborted.reason;
  }

  get paused(): boolean {
    return this.#isPaused;
  }

  get rawHeaders(): unknown {
    return this.#inner?.rawHeaders ?? null;
  }

  get rawTrailers(): unknown {
    return this.#inner?.rawTrailers ?? null;
  }

  abort(reason?: unknown): void {
    this.#aborted ??= { reason };
    this.ride.abort(reason);
  }

  pause(): void {
    this.#isPaused = true;
    this.#inner?.pause();
    this.ride.paused();
  }

  resume(): void {
    this.#isPaused = false;
    this.ride.resumed();
    this.#inner?.resume();
  }
}
