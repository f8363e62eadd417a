import type { HeadersLike, Outcome, Permit } from "../types.js";
import { failureOf } from "./failure.js";

/** One request on its way, from the grant to its last byte. Each end counts once; what comes after is ignored. */
export class Flight {
  #isOver = false;
  /** Called once when it is over. */
  onEnd: (() => void) | undefined = undefined;

  constructor(readonly permit: Permit) {}

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The headers are there: what they say is heard now, the place is kept. */
  answered(status: number, headers: HeadersLike): void {
    if (!this.#isOver) this.permit.report({ status, headers });
  }

  /** The whole answer is there at once. */
  finished(status: number, headers: HeadersLike): void {
    this.#end({ status, headers });
  }

  /** The last byte has arrived, or nobody wants the rest. */
  done(): void {
    this.#end(undefined);
  }

  /** It failed, before or after its headers. */
  failed(error: unknown): void {
    this.#end(failureOf(error));
  }

  /** It was never sent, or answered without the site: what it took goes back. */
  unused(): void {
    this.#end("unused");
  }

  #end(outcome: Outcome | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.onEnd?.();
    this.permit.release(outcome);
  }
}
