import { StoreError } from "../../src/errors.js";
import type { Limits, PolicyInput } from "../../src/policy/types.js";
import { politely } from "../../src/politely.js";
import type { SharedLimiter, SharedOptions, SharedPermit } from "../../src/sharedTypes.js";
import { memoryStore } from "../../src/stores/memory.js";
import type { Store } from "../../src/stores/store.js";
import { VirtualClock } from "../../src/testing/virtualClock.js";
import type { Clock } from "../../src/types.js";

/** How a store behaves from now on. */
export type Mood = "well" | "refusing" | "silent" | "replies lost";

/** A fleet of limiters over one store, all in virtual time. */
export class Fleet {
  readonly clock = new VirtualClock();
  readonly limiters: SharedLimiter[] = [];
  readonly starts: { limiter: number; key: string; atMs: number; token: number | undefined }[] = [];
  readonly store: Store;
  readonly inner: Store;
  roundTripMs: number;
  mood: Mood = "well";
  calls = 0;
  readonly #mortals = new Map<SharedLimiter, { isDead: boolean }>();

  constructor({ roundTripMs = 1 }: { readonly roundTripMs?: number } = {}) {
    this.roundTripMs = roundTripMs;
    this.inner = memoryStore(
      () => Math.floor(this.clock.now() * 1000 + 0.01),
      () => this.clock.wall(),
    );
    this.store = {
      name: "virtual",
      timeline: "machine",
      listen: (process, onWake) =>
        this.inner.listen?.(process, (asker) => {
          void this.#pass(this.roundTripMs / 2).then(() => (this.mood === "well" ? onWake(asker) : undefined));
        }) ?? (() => undefined),
      transact: async (keys, operation) => {
        this.calls += 1;
        if (this.mood === "refusing") throw new StoreError("virtual: connection refused");
        if (this.mood === "silent") return new Promise(() => undefined);
        await this.#pass(this.roundTripMs / 2);
        const reply = await this.inner.transact(keys, operation);
        if (this.mood === "replies lost") return new Promise(() => undefined);
        await this.#pass(this.roundTripMs / 2);
        return reply;
      },
    };
  }

  /** One more process. */
  add(policy: PolicyInput | Limits, options: Partial<SharedOptions> = {}): SharedLimiter {
    const whole = isPolicy(policy) ? policy : { default: policy };
    const { clock } = this;
    const mortal = { isDead: false };
    const own: Clock = {
      now: () => clock.now(),
      wall: () => clock.wall(),
      setTimer: (atMs, fn) => clock.setTimer(atMs, () => (mortal.isDead ? undefined : fn())),
      clearTimer: (timer) => clock.clearTimer(timer),
    };
    const limiter = politely(whole, { store: this.store, clock: own, ...options });
    this.limiters.push(limiter);
    this.#mortals.set(limiter, mortal);
    return limiter;
  }

  /** Ends a process as SIGKILL does: none of its timers is called any more. */
  kill(limiter: SharedLimiter): void {
    const mortal = this.#mortals.get(limiter);
    if (mortal !== undefined) mortal.isDead = true;
  }

  /** Makes `count` requests at once, notes their starts, and releases them with `outcome` after `holdMs`. */
  async demand(limiter: SharedLimiter, count: number, { key = "x.org", holdMs = 0 } = {}): Promise<void> {
    const one = async (): Promise<void> => {
      const permit = await limiter.acquire(key);
      this.note(limiter, permit);
      if (holdMs > 0) await this.#pass(holdMs);
      await permit.release("success");
    };
    await Promise.all(Array.from({ length: count }, one));
  }

  /** The same, and lets as much time pass as the store needs to answer. */
  async demandNow(limiter: SharedLimiter, count: number): Promise<void> {
    await this.now(this.demand(limiter, count));
  }

  /** Lets time pass until the work is done, at most ten seconds. */
  async now<Value>(work: Promise<Value>): Promise<Value> {
    let isDone = false;
    const settled = work.finally(() => {
      isDone = true;
    });
    settled.catch(() => undefined);
    for (let step = 0; step < 1_000 && !isDone; step++) await this.clock.advance(10);
    return settled;
  }

  note(limiter: SharedLimiter, permit: SharedPermit): void {
    const { key, startedAtMs, token } = permit;
    this.starts.push({ limiter: this.limiters.indexOf(limiter), key, atMs: startedAtMs, token });
  }

  /** The instants of all starts, in order, in whole microseconds. */
  startsUs(): number[] {
    return this.starts.map(({ atMs }) => Math.round(atMs * 1000)).sort((a, b) => a - b);
  }

  #pass(ms: number): Promise<void> {
    if (ms === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.clock.setTimer(this.clock.now() + ms, resolve);
    });
  }
}

/** The most starts in any interval of `perUs`, by counting. */
export function mostWithin(startsUs: readonly number[], perUs: number): number {
  return Math.max(0, ...startsUs.map((from) => startsUs.filter((at) => at >= from && at < from + perUs).length));
}

/** The shortest time between two starts. */
export function leastGap(startsUs: readonly number[]): number {
  return Math.min(...startsUs.slice(1).map((at, index) => at - startsUs[index]));
}

function isPolicy(policy: PolicyInput | Limits): policy is PolicyInput {
  return "default" in policy || "hosts" in policy || "global" in policy || "scopes" in policy;
}
