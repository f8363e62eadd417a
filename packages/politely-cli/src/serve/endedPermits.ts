/** How a permit ended. */
export type EndedHow = "released" | "lapsed" | "undelivered";

/** When and how. */
export interface Ended {
  readonly how: EndedHow;
  readonly atMs: number;
}

/**
 * The last `most` permits that have ended.
 *
 * In a ring: a map from which the oldest is taken each time has to step over all that were taken before.
 */
export class EndedPermits {
  readonly #places = new Map<string, number>();
  readonly #ids: string[] = [];
  readonly #hows: EndedHow[] = [];
  readonly #atMs: Float64Array;
  #next = 0;

  constructor(readonly most: number) {
    this.#atMs = new Float64Array(most);
  }

  /** Remembers one, in place of the oldest if there are too many. An id comes once. */
  add(id: string, how: EndedHow, atMs: number): void {
    if (this.most === 0) return;
    const place = this.#next;
    if (place < this.#ids.length) this.#places.delete(this.#ids[place]);
    this.#ids[place] = id;
    this.#hows[place] = how;
    this.#atMs[place] = atMs;
    this.#places.set(id, place);
    this.#next = (place + 1) % this.most;
  }

  find(id: string): Ended | undefined {
    const place = this.#places.get(id);
    return place === undefined ? undefined : { how: this.#hows[place], atMs: this.#atMs[place] };
  }
}
