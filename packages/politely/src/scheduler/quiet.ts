import type { Engine } from "./engine.js";

/** Tells those who ask when a limiter or one of its hosts has come to rest. */
export class Quiet {
  #pending: { readonly isQuiet: () => boolean; readonly resolve: () => void }[] = [];

  constructor(readonly engine: Engine) {}

  /** Resolves once nobody waits and nothing is in flight, at one key or at all. */
  whenIdle(key: string | undefined): Promise<void> {
    return this.#when(() => (key === undefined ? this.#isAllIdle() : this.#isIdle(key)));
  }

  whenNobodyWaits(): Promise<void> {
    return this.#when(() => this.engine.queue.waiting === 0);
  }

  #when(isQuiet: () => boolean): Promise<void> {
    if (isQuiet()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#pending.push({ isQuiet, resolve });
      this.engine.onQuiet = () => this.#look();
      this.#setAlarm();
      this.engine.queue.run();
    });
  }

  #look(): void {
    const done = this.#pending.filter(({ isQuiet }) => isQuiet());
    if (done.length > 0) this.#pending = this.#pending.filter((each) => !done.includes(each));
    if (this.#pending.length === 0) this.engine.onQuiet = undefined;
    for (const { resolve } of done) resolve();
    this.#setAlarm();
  }

  /** A permit that is never released ends by itself: whoever waits for rest must be told then. */
  #setAlarm(): void {
    const { queue, ledger } = this.engine;
    let alarmUs = Number.POSITIVE_INFINITY;
    if (this.#pending.length > 0) {
      alarmUs = ledger.loose.lapseAt(this.engine.nowUs());
      for (const [slot, { first }] of ledger.holds) {
        if (first !== undefined) alarmUs = Math.min(alarmUs, first.startedUs + ledger.profileOf(slot).rule.maxHoldUs);
      }
    }
    queue.alarmUs = alarmUs;
  }

  #isIdle(key: string): boolean {
    const slot = this.engine.keys.hosts.get(key);
    return slot === undefined || this.#isRowIdle(slot);
  }

  #isAllIdle(): boolean {
    const { queue, keys } = this.engine;
    if (queue.waiting > 0) return false;
    for (const slot of keys.hosts.values()) if (!this.#isRowIdle(slot)) return false;
    return keys.overflow.every(([, slot]) => this.#isRowIdle(slot));
  }

  #isRowIdle(slot: number): boolean {
    const { queue, ledger } = this.engine;
    return (queue.gateAt(slot)?.waiting ?? 0) === 0 && ledger.inFlight(slot, this.engine.nowUs()) === 0;
  }
}
