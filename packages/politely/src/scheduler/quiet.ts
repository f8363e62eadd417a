import type { Engine } from "./engine.js";

/** Tells those who ask when a limiter or one of its hosts has come to rest. */
export class Quiet {
  #pending: { readonly isQuiet: () => boolean; readonly resolve: () => void }[] = [];

  #busyHost = "";

  constructor(readonly engine: Engine) {}

  /** Resolves once nobody waits and nothing is in flight, at one key or at all, and nothing that `resting` knows of comes again. */
  async whenIdle(key: string | undefined, resting: () => Promise<void> | undefined): Promise<void> {
    const isQuiet = (): boolean => (key === undefined ? this.#isAllIdle() : this.#isIdle(key));
    for (;;) {
      await this.#when(isQuiet);
      const nextEnd = resting();
      if (nextEnd !== undefined) await nextEnd;
      // A redirect's next hop has come since.
      else if (isQuiet()) return;
    }
  }

  whenNobodyWaits(): Promise<void> {
    return this.#when(() => this.engine.queue.waiting === 0);
  }

  /** Keeps no timer any more for those who ask: the limiter is closed. */
  close(): void {
    this.#setAlarm();
  }

  #when(isQuiet: () => boolean): Promise<void> {
    if (isQuiet()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#pending.push({ isQuiet, resolve });
      this.engine.onQuiet = () => this.#look();
      this.engine.onAlarm = () => this.#setAlarm();
      this.#setAlarm();
    });
  }

  #look(): void {
    const done = this.#pending.filter(({ isQuiet }) => isQuiet());
    if (done.length === 0) return;
    this.#pending = this.#pending.filter((each) => !done.includes(each));
    if (this.#pending.length === 0) this.engine.onQuiet = undefined;
    for (const { resolve } of done) resolve();
    this.#setAlarm();
  }

  /** A permit that is never released ends by itself: whoever waits for rest is told then. */
  #setAlarm(): void {
    const { queue, ledger } = this.engine;
    let alarmUs = Number.POSITIVE_INFINITY;
    if (this.#pending.length > 0 && !this.engine.isClosed) {
      alarmUs = ledger.loose.lapseAt(this.engine.nowUs());
    }
    queue.alarmUs = alarmUs;
    queue.rearm();
  }

  #isIdle(key: string): boolean {
    const { hosts, overflow } = this.engine.keys;
    const slot = hosts.get(key);
    // A host beyond `maxKeys` rests when all of them do.
    return slot === undefined ? overflow.every(([, shared]) => this.#isRowIdle(shared)) : this.#isRowIdle(slot);
  }

  #isAllIdle(): boolean {
    const { queue, keys } = this.engine;
    if (queue.waiting > 0) return false;
    // The host that was busy the last time is most likely busy still: all are looked at only when it is not.
    const known = keys.hosts.get(this.#busyHost);
    if (known !== undefined && !this.#isRowIdle(known)) return false;
    for (const [host, slot] of keys.hosts) {
      if (this.#isRowIdle(slot)) continue;
      this.#busyHost = host;
      return false;
    }
    return keys.overflow.every(([, slot]) => this.#isRowIdle(slot));
  }

  #isRowIdle(slot: number): boolean {
    const { queue, ledger } = this.engine;
    return (queue.gateAt(slot)?.waiting ?? 0) === 0 && ledger.inFlight(slot, this.engine.nowUs()) === 0;
  }
}
