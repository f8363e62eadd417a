import { inFlight } from "../core/limits/places.js";
import type { Engine } from "./engine.js";

/** Tells those who ask when a limiter or one of its hosts has come to rest. */
export class Quiet {
  #pending: { readonly isQuiet: () => boolean; readonly resolve: () => void }[] = [];

  constructor(readonly engine: Engine) {}

  /** Resolves once nobody waits and nothing is in flight, at one key or at all, and nothing that `resting` knows of comes again. */
  async whenIdle(key: string | undefined, resting: () => Promise<void> | undefined): Promise<void> {
    const isQuiet = (): boolean =>
      key === undefined ? this.engine.queue.waiting === 0 && this.engine.books.flying === 0 : this.#isIdle(key);
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
    const { books, keys, queue, slab } = this.engine;
    let alarmUs = Number.POSITIVE_INFINITY;
    if (this.#pending.length > 0 && !this.engine.isClosed && books.flying > 0) {
      const nowUs = this.engine.nowUs();
      for (const [host, slot] of keys.hosts) {
        keys.bring(slot, host, true, nowUs);
        const { rule } = keys.profileOf(slot);
        const key = slab.key(slot);
        if (inFlight(key, rule, nowUs) === 0) continue;
        const firstUs = key.rest?.places?.first?.startedUs ?? books.lastUs(slot);
        alarmUs = Math.min(alarmUs, Math.max(nowUs + 1, firstUs + rule.maxHoldUs));
      }
    }
    queue.alarmUs = alarmUs;
    queue.rearm();
  }

  #isIdle(key: string): boolean {
    const { keys, queue, slab } = this.engine;
    const nowUs = this.engine.nowUs();
    const slot = keys.rowOf(key, true, nowUs);
    if (slot === undefined) return true;
    return (queue.gateAt(slot)?.waiting ?? 0) === 0 && inFlight(slab.key(slot), keys.profileOf(slot).rule, nowUs) === 0;
  }
}
