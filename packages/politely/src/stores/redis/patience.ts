/** How often it is looked whether something is overdue, as a share of the time allowed. */
const LOOK_SHARE = 1 / 8;

/** Something that is to be over soon, in a list of such. */
export abstract class Wait {
  dueMs = 0;
  before: Wait | undefined;
  after: Wait | undefined;

  /** Called once if it takes too long. */
  abstract onLate(): void;
}

/**
 * Calls `onLate` of everything that takes longer than `timeoutMs`, up to an eighth of that later.
 *
 * One timer for all, and none while nothing waits. Beginning and ending cost a few assignments.
 */
export class Patience {
  readonly #timeoutMs: number;
  #first: Wait | undefined;
  #last: Wait | undefined;
  #isWatched = false;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** It begins now. */
  begin(wait: Wait): void {
    wait.dueMs = performance.now() + this.#timeoutMs;
    wait.before = this.#last;
    if (this.#last === undefined) this.#first = wait;
    else this.#last.after = wait;
    this.#last = wait;
    if (!this.#isWatched) this.#lookLater();
  }

  /** It is over. To be called once, and not after `onLate`. */
  end(wait: Wait): void {
    if (wait.before === undefined) this.#first = wait.after;
    else wait.before.after = wait.after;
    if (wait.after === undefined) this.#last = wait.before;
    else wait.after.before = wait.before;
  }

  #lookLater(): void {
    this.#isWatched = true;
    setTimeout(() => {
      const nowMs = performance.now();
      for (let wait = this.#first; wait !== undefined && wait.dueMs <= nowMs; wait = this.#first) {
        this.end(wait);
        wait.onLate();
      }
      this.#isWatched = false;
      if (this.#first !== undefined) this.#lookLater();
    }, this.#timeoutMs * LOOK_SHARE);
  }
}
