import type { Clock } from "../../types.js";

/** How long nobody reads a body before its place is given to somebody else. */
export const UNREAD_MS = 5_000;
const SLACK_MS = 1_000;

/**
 * Notices that a body has waited for its reader for 5 s without a break.
 *
 * A program that first starts all its requests and reads the answers later would otherwise wait for itself.
 */
export class UnreadBody {
  #pausedAtMs: number | undefined = undefined;
  #timer: unknown = undefined;
  #isOver = false;

  constructor(
    readonly clock: Clock,
    readonly giveBack: () => void,
  ) {}

  /** The reader wants no more for now. */
  paused(): void {
    if (this.#isOver || this.#pausedAtMs !== undefined) return;
    this.#pausedAtMs = this.clock.now();
    // One timer serves many pauses in a row: a fast download pauses at every chunk.
    if (this.#timer === undefined) this.#look();
  }

  /** The reader goes on. */
  resumed(): void {
    this.#pausedAtMs = undefined;
  }

  /** Nothing is left to notice; no timer is left behind. */
  stop(): void {
    this.#isOver = true;
    this.clock.clearTimer(this.#timer);
  }

  #look(): void {
    this.#timer = undefined;
    if (this.#pausedAtMs === undefined) return;
    const atMs = this.#pausedAtMs + UNREAD_MS;
    if (this.clock.now() >= atMs) {
      this.giveBack();
      return;
    }
    this.#timer = this.clock.setTimer(atMs, () => this.#look(), SLACK_MS);
    this.clock.unref?.(this.#timer);
  }
}
