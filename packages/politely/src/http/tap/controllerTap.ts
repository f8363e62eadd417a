import type { Controller, ControllerCallbacks } from "../undici/dispatchTypes.js";
import { Tap } from "./tap.js";

type Args<Name extends keyof ControllerCallbacks> = Parameters<NonNullable<ControllerCallbacks[Name]>>;

/** A tap for a `fetch` with the callbacks of undici 8, as that of Node 26. It is also the controller that `fetch` steers with. */
export class ControllerTap extends Tap implements Required<ControllerCallbacks>, Controller {
  #inner: Controller | undefined = undefined;
  #wantsMore = true;

  constructor(
    readonly handler: ControllerCallbacks,
    signal: AbortSignal | undefined,
  ) {
    super(signal);
  }

  onRequestStart(...[controller, context]: Args<"onRequestStart">): void {
    this.#inner = controller;
    this.handler.onRequestStart(this, context);
  }

  onRequestUpgrade(...[, status, headers, socket]: Args<"onRequestUpgrade">): unknown {
    return this.handler.onRequestUpgrade?.(this, status, headers, socket);
  }

  onResponseStart(...[, status, headers, message]: Args<"onResponseStart">): void {
    this.handler.onResponseStart?.(this, status, headers, message);
    // What comes before the answer says nothing of it.
    if (status >= 200) this.began(headers, headers["content-encoding"] !== undefined);
  }

  onResponseData(...[, chunk]: Args<"onResponseData">): void {
    if (!this.came(chunk)) this.#inner?.pause();
  }

  onResponseEnd(...[, trailers]: Args<"onResponseEnd">): void {
    this.ended(trailers);
  }

  onResponseError(...[, error]: Args<"onResponseError">): void {
    this.broke(error);
  }

  get aborted(): boolean {
    return this.#inner?.aborted === true;
  }

  get reason(): unknown {
    return this.#inner?.reason ?? null;
  }

  get paused(): boolean {
    return this.#inner?.paused === true;
  }

  get rawHeaders(): unknown {
    return this.#inner?.rawHeaders ?? null;
  }

  get rawTrailers(): unknown {
    return this.#inner?.rawTrailers ?? null;
  }

  abort(reason?: unknown): void {
    this.givenUp();
    this.#inner?.abort(reason);
  }

  pause(): void {
    this.#wantsMore = false;
  }

  resume(): void {
    this.asked();
  }

  protected hand(chunk: Uint8Array): boolean {
    this.#wantsMore = true;
    this.handler.onResponseData?.(this, chunk);
    return this.#wantsMore;
  }

  protected handEnd(trailers: unknown): void {
    this.handler.onResponseEnd?.(this, trailers as Args<"onResponseEnd">[1]);
  }

  protected handError(error: unknown): void {
    this.handler.onResponseError?.(this, error);
  }

  protected goOn(): void {
    this.#inner?.resume();
  }
}
