import type { HeadersLike } from "../../types.js";
import type { LegacyCallbacks } from "../undici/dispatchTypes.js";
import { Tap } from "./tap.js";

type Args<Name extends keyof LegacyCallbacks> = Parameters<NonNullable<LegacyCallbacks[Name]>>;

const CONTENT_ENCODING = "content-encoding";

/** A tap for a `fetch` with the callbacks of undici 6, as that of Node 20 to 24. */
export class LegacyTap extends Tap implements Required<LegacyCallbacks> {
  #resume: (() => void) | undefined = undefined;

  constructor(
    readonly handler: LegacyCallbacks,
    signal: AbortSignal | undefined,
  ) {
    super(signal);
  }

  onConnect(...[abort, context]: Args<"onConnect">): void {
    const giveUp = (reason?: unknown): void => {
      this.givenUp();
      abort(reason);
    };
    this.handler.onConnect?.(giveUp, context);
  }

  onUpgrade(...[status, rawHeaders, socket]: Args<"onUpgrade">): unknown {
    return this.handler.onUpgrade?.(status, rawHeaders, socket);
  }

  onHeaders(...[status, rawHeaders, resume, message]: Args<"onHeaders">): unknown {
    this.#resume = resume;
    const result = this.handler.onHeaders?.(status, rawHeaders, () => this.asked(), message);
    // What comes before the answer says nothing of it. Names and values in turn are read as they are.
    if (status >= 200) this.began(rawHeaders as unknown as HeadersLike, isCompressed(rawHeaders));
    return result;
  }

  onData(chunk: unknown): unknown {
    return this.came(chunk);
  }

  onComplete(trailers: unknown): void {
    this.ended(trailers);
  }

  onError(error: unknown): void {
    this.broke(error);
  }

  protected hand(chunk: Uint8Array): boolean {
    return this.handler.onData?.(chunk) !== false;
  }

  protected handEnd(trailers: unknown): void {
    this.handler.onComplete?.(trailers);
  }

  protected handError(error: unknown): void {
    this.handler.onError?.(error);
  }

  protected goOn(): void {
    this.#resume?.();
  }
}

/** Also true for an encoding that changes nothing. */
function isCompressed(rawHeaders: readonly unknown[]): boolean {
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string | Uint8Array;
    if (name.length === CONTENT_ENCODING.length && String(name).toLowerCase() === CONTENT_ENCODING) return true;
  }
  return false;
}
