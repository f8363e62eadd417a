import { Heap, type Positioned } from "../../engine/heap.js";

/** One request's stay in one count. */
class Stay implements Positioned {
  position = -1;
  endUs = Number.POSITIVE_INFINITY;
}

/**
 * Counts who is in flight at an instant: from arrival up to, not including, the end.
 *
 * Who ends now has left before who arrives now, whatever the order of their timers.
 */
export class InFlight {
  readonly #stays = new Heap<Stay>((a, b) => a.endUs < b.endUs);
  #peak = 0;

  /** The most that were ever in flight together. */
  get peak(): number {
    return this.#peak;
  }

  countAt(nowUs: number): number {
    for (let first = this.#stays.peek(); first !== undefined && first.endUs <= nowUs; first = this.#stays.peek()) {
      this.#stays.remove(first);
    }
    return this.#stays.size;
  }

  /** Lets one in who arrives now, with no end known yet. */
  enter(nowUs: number): Stay {
    const stay = new Stay();
    this.countAt(nowUs);
    this.#stays.push(stay);
    this.#peak = Math.max(this.#peak, this.#stays.size);
    return stay;
  }

  endAt(stay: Stay, us: number): void {
    stay.endUs = us;
    if (stay.position >= 0) this.#stays.update(stay);
  }

  leave(stay: Stay): void {
    if (stay.position >= 0) this.#stays.remove(stay);
  }
}

/** One request's stay in several counts at once: of its host, of the whole origin, of each limit on concurrency. */
export class Flight {
  readonly #stays: { readonly inFlight: InFlight; readonly stay: Stay }[];

  constructor(counts: readonly InFlight[], nowUs: number) {
    this.#stays = counts.map((inFlight) => ({ inFlight, stay: inFlight.enter(nowUs) }));
  }

  /** Ends at this instant by itself. Infinity: not before `end`. */
  endAt(us: number): void {
    for (const { inFlight, stay } of this.#stays) inFlight.endAt(stay, us);
  }

  /** Ends now, if it has not ended yet. */
  end(): void {
    for (const { inFlight, stay } of this.#stays) inFlight.leave(stay);
  }
}
