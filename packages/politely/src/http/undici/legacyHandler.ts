import type { HeadersLike } from "../../types.js";
import type { Abort, LegacyCallbacks } from "./dispatchTypes.js";
import type { Caller, Ride } from "./ride.js";

type Args<Name extends keyof LegacyCallbacks> = Parameters<NonNullable<LegacyCallbacks[Name]>>;

/** Stands between undici 6 or 7 and a handler, in the older style of both: everything is passed on, and heard. */
export class LegacyHandler implements Caller, Required<LegacyCallbacks> {
  readonly #abort: Abort;
  #hasStarted = false;

  constructor(
    readonly ride: Ride,
    readonly handler: LegacyCallbacks,
  ) {
    this.#abort = (reason) => ride.abort(reason);
  }

  start(): void {
    this.handler.onConnect?.(this.#abort, undefined);
  }

  fail(error: unknown): void {
    if (this.handler.onError === undefined) throw error;
    this.handler.onError(error);
  }

  onConnect(...[abort, context]: Args<"onConnect">): void {
    if (!this.ride.started(abort)) return;
    const isFirst = !this.#hasStarted;
    this.#hasStarted = true;
    // The handler can abort since `start`. It is called again for what it could not know then.
    if (!isFirst || (context !== undefined && context !== null)) this.handler.onConnect?.(this.#abort, context);
  }

  onUpgrade(...[status, rawHeaders, socket]: Args<"onUpgrade">): unknown {
    this.ride.upgraded(status, fieldsOf(rawHeaders ?? []));
    return this.handler.onUpgrade?.(status, rawHeaders, socket);
  }

  onHeaders(...[status, rawHeaders, resume, message]: Args<"onHeaders">): unknown {
    this.ride.answered(status, fieldsOf(rawHeaders));
    const goOn = (): void => {
      this.ride.resumed();
      resume();
    };
    const result = this.handler.onHeaders?.(status, rawHeaders, goOn, message);
    // `fetch` refuses a 1xx with the same word, and nobody resumes it.
    return status < 200 ? result : this.#heard(result);
  }

  onData(chunk: unknown): unknown {
    return this.#heard(this.handler.onData?.(chunk));
  }

  onComplete(trailers: unknown): void {
    this.ride.completed();
    this.handler.onComplete?.(trailers);
  }

  onError(error: unknown): void {
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

  #heard(result: unknown): unknown {
    if (result === false) this.ride.paused();
    return result;
  }
}

/** Names and values in turn, as bytes or text, as a record. A name that comes twice has a list of values. */
function fieldsOf(rawHeaders: readonly unknown[]): HeadersLike {
  const fields = Object.create(null) as Record<string, string | string[]>;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = String(rawHeaders[index]).toLowerCase();
    const value = rawHeaders[index + 1];
    const values = Array.isArray(value) ? value.map(String) : [String(value)];
    const known = fields[name];
    if (known === undefined) fields[name] = values.length === 1 ? values[0] : values;
    else fields[name] = [known, values].flat();
  }
  return fields;
}
