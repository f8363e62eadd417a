import type { Clock } from "../../types.js";
import type { Link } from "./link.js";
import type { Grant } from "./run.js";
import type { SharedPermit } from "./sharedPermit.js";

/** Places that are renewed in one operation, at most. */
const TOGETHER_MOST = 500;

/** One permit whose place is kept. */
interface Kept {
  readonly permit: SharedPermit;
  readonly grant: Grant;
  readonly sinceMs: number;
}

/**
 * Tells the store that this process still holds its places, three times in each lifetime.
 *
 * A place held for `maxHold` is renewed no longer. The timer does not keep the process alive.
 */
export class Renewals {
  readonly #kept = new Map<SharedPermit, Kept>();
  #timer: unknown = undefined;
  #dueMs = Number.POSITIVE_INFINITY;

  constructor(
    readonly clock: Clock,
    readonly link: Link,
    /** A place is gone although its permit was not released. */
    readonly onLost: (permit: SharedPermit, heldMs: number) => void,
  ) {}

  add(permit: SharedPermit, grant: Grant): void {
    const nowMs = this.clock.now();
    this.#kept.set(permit, { permit, grant, sinceMs: nowMs });
    this.#arm(nowMs + grant.facts.plan.leaseUs / 3000);
  }

  remove(permit: SharedPermit): void {
    this.#kept.delete(permit);
    if (this.#kept.size === 0) this.close();
  }

  close(): void {
    if (this.#timer !== undefined) this.clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#dueMs = Number.POSITIVE_INFINITY;
  }

  #arm(dueMs: number): void {
    if (dueMs >= this.#dueMs) return;
    this.close();
    this.#dueMs = dueMs;
    this.#timer = this.clock.setTimer(dueMs, () => {
      this.#timer = undefined;
      this.#dueMs = Number.POSITIVE_INFINITY;
      void this.#renew();
    });
    this.clock.unref?.(this.#timer);
  }

  async #renew(): Promise<void> {
    const nowMs = this.clock.now();
    const groups = new Map<string, Kept[]>();
    let leastUs = Number.POSITIVE_INFINITY;
    for (const kept of this.#kept.values()) {
      const { plan } = kept.grant.facts;
      leastUs = Math.min(leastUs, plan.leaseUs);
      if ((nowMs - kept.sinceMs) * 1000 >= plan.maxHoldUs) {
        this.#lose(kept, nowMs);
        continue;
      }
      const name = plan.storeKeys.join("\n");
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [kept]);
      else group.push(kept);
    }
    if (this.#kept.size > 0) this.#arm(nowMs + leastUs / 3000);
    await Promise.all([...groups.values()].map((group) => this.#renewGroup(group)));
  }

  async #renewGroup(group: readonly Kept[]): Promise<void> {
    const { plan } = group[0].grant.facts;
    for (let from = 0; from < group.length; from += TOGETHER_MOST) {
      const part = group.slice(from, from + TOGETHER_MOST);
      const places = part.map(({ grant }) => grant.place);
      try {
        const make = (by: { readonly asker: string; readonly sequence: number }) =>
          ({ kind: "renew", ...by, places, leaseUs: plan.leaseUs }) as const;
        const { lost } = await this.link.send(plan.storeKeys, make);
        const nowMs = this.clock.now();
        for (const kept of part) if (lost.includes(kept.grant.place)) this.#lose(kept, nowMs);
      } catch {
        // The store is away: the next round tries again, and a place that lapsed meanwhile is found lost then.
      }
    }
  }

  #lose({ permit, sinceMs }: Kept, nowMs: number): void {
    if (!this.#kept.delete(permit)) return;
    this.onLost(permit, nowMs - sinceMs);
  }
}
