const maxWaitingBytes = 1_048_576;

/** Something on its way, and what to do when it arrives. */
interface Parcel {
  readonly dueMs: number;
  readonly bytes: number;
  deliver(): void;
}

/**
 * Delivers what it is handed a while later, in the order in which it was handed over, also when the delay shrinks meanwhile.
 *
 * It holds what it is given, so its source should pause while more than 1 MiB is on the way.
 */
export class DelayLine {
  readonly #onDelivered: () => void;
  readonly #parcels: Parcel[] = [];
  #waitingBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `onDelivered` is called after each delivery that had to wait. */
  constructor(onDelivered: () => void) {
    this.#onDelivered = onDelivered;
  }

  /** More than 1 MiB is on the way. */
  get isFull(): boolean {
    return this.#waitingBytes > maxWaitingBytes;
  }

  /** Delivers at once when `delayMs` is 0 and nothing is on the way. */
  send(delayMs: number, bytes: number, deliver: () => void): void {
    if (delayMs === 0 && this.#parcels.length === 0) {
      deliver();
      return;
    }
    const beforeMs = this.#parcels.at(-1)?.dueMs ?? 0;
    this.#parcels.push({ dueMs: Math.max(beforeMs, performance.now() + delayMs), bytes, deliver });
    this.#waitingBytes += bytes;
    this.#wait();
  }

  /** Forgets what is on the way. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#parcels.length = 0;
    this.#waitingBytes = 0;
  }

  #wait(): void {
    const [next] = this.#parcels;
    if (this.#timer !== undefined || next === undefined) return;
    this.#timer = setTimeout(() => this.#deliverDue(), Math.max(0, next.dueMs - performance.now()));
  }

  #deliverDue(): void {
    this.#timer = undefined;
    while (this.#parcels.length > 0 && this.#parcels[0].dueMs <= performance.now()) {
      const parcel = this.#parcels.shift();
      this.#waitingBytes -= parcel?.bytes ?? 0;
      parcel?.deliver();
    }
    this.#onDelivered();
    this.#wait();
  }
}
