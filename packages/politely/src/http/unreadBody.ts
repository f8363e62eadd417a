import type { Flight } from "./flight.js";

/** How much of a body is let in although nobody reads it, so that a small one frees its place by itself. */
export const READ_AHEAD_BYTES = 1_048_576;
/** How long a body beyond that waits for its reader before its place is given to another request. */
export const UNREAD_MS = 5_000;
const SLACK_MS = 1_000;

/**
 * Gives the place of `flight` back once its body has waited for its reader for 5 s without a break. The body goes on.
 *
 * A program that first starts all its requests and reads the answers later would otherwise wait for itself.
 */
export class UnreadBody {
  #pausedAtMs: number | undefined = undefined;
  #timer: unknown = undefined;

  constructor(readonly flight: Flight) {
    const { onEnd } = flight;
    flight.onEnd = () => {
      flight.clock.clearTimer(this.#timer);
      onEnd?.();
    };
  }

  /** The reader wants no more for now. */
  paused(): void {
    if (this.flight.isOver || this.#pausedAtMs !== undefined) return;
    this.#pausedAtMs = this.flight.clock.now();
    // One timer serves many pauses in a row: a fast download pauses at every chunk.
    if (this.#timer === undefined) this.#look();
  }

  /** The reader goes on. */
  resumed(): void {
    this.#pausedAtMs = undefined;
  }

  #look(): void {
    this.#timer = undefined;
    if (this.#pausedAtMs === undefined) return;
    const { clock } = this.flight;
    const atMs = this.#pausedAtMs + UNREAD_MS;
    if (clock.now() >= atMs) {
      this.flight.letGo();
      return;
    }
    this.#timer = clock.setTimer(atMs, () => this.#look(), SLACK_MS);
    clock.unref?.(this.#timer);
  }
}
