import type { TakeReply } from "../../shared/operation.js";
import type { Clock } from "../../types.js";
import type { Link, PlaceKeeper, SendSurely } from "./link.js";
import { ShortSpots, type Spot, spotsOf } from "./renewalSpots.js";
import type { Grant } from "./run.js";
import type { SharedPermit } from "./sharedPermit.js";

/** Places that are renewed in one operation, at most. */
const TOGETHER_MOST = 500;

/** One permit whose place is kept. */
interface Kept {
  readonly permit: SharedPermit;
  readonly grant: Grant;
  readonly sinceMs: number;
  readonly spots: Set<Spot>;
  /** The policy of this process has changed since. */
  isFormer: boolean;
}

/**
 * Tells the store that this process still holds its places, three times in each lifetime.
 *
 * A place that lapsed since the store heard nothing for a lifetime is taken again, first thing when it hears again, or as soon as there is room; until then this
 * process starts nothing else at that key. A place held for `maxHold` is renewed no longer. The timer does not keep the process alive.
 */
export class Renewals implements PlaceKeeper {
  readonly #kept = new Map<SharedPermit, Kept>();
  readonly #short: ShortSpots;
  #timer: unknown = undefined;
  #dueMs = Number.POSITIVE_INFINITY;
  /** By this process's clock no place has lapsed before. */
  #freshUntilMs = Number.POSITIVE_INFINITY;

  constructor(
    readonly clock: Clock,
    readonly link: Link,
    /** A permit was held for `maxHold`, and not released: it has no place any more. */
    readonly onLost: (permit: SharedPermit, heldMs: number) => void,
  ) {
    this.#short = new ShortSpots(link);
    link.places = this;
  }

  /** Keeps the place of a permit. One that the store did not grant gets its place when the store is back. */
  add(permit: SharedPermit, grant: Grant): void {
    const nowMs = this.clock.now();
    const { plan, origin } = grant.facts;
    const holdUntilMs = nowMs + plan.maxHoldUs / 1000;
    const freshUntilMs = nowMs + plan.leaseUs / 1000;
    const { storeKeys, leaseUs } = plan;
    const own: Spot = {
      storeKeys,
      key: undefined,
      leaseUs,
      holdUntilMs,
      place: grant.place,
      freshUntilMs,
      isGone: false,
    };
    const kept: Kept = { permit, grant, sinceMs: nowMs, spots: new Set(), isFormer: false };
    this.#kept.set(permit, kept);
    if (origin === "store") {
      kept.spots.add(own);
      this.#freshUntilMs = Math.min(this.#freshUntilMs, freshUntilMs);
    } else this.#miss(kept);
    this.#arm(nowMs + leaseUs / 3000);
  }

  /** The policy has changed: those in flight do not keep the one they were granted by in use. */
  configured(): void {
    for (const kept of this.#kept.values()) kept.isFormer = true;
  }

  /** The permit is back. */
  remove(permit: SharedPermit): void {
    const kept = this.#kept.get(permit);
    if (kept === undefined) return;
    this.#kept.delete(permit);
    for (const spot of kept.spots) this.#short.free(spot);
    if (this.#kept.size === 0) this.close();
  }

  close(): void {
    if (this.#timer !== undefined) this.clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#dueMs = Number.POSITIVE_INFINITY;
  }

  isShort(storeKeys: readonly string[]): boolean {
    if (this.#kept.size === 0) return false;
    if (this.clock.now() >= this.#freshUntilMs) return true;
    return !this.#short.isEmpty && storeKeys.some((key) => this.#short.has(key));
  }

  async regain(storeKeys: readonly string[]): Promise<TakeReply | undefined> {
    const send: SendSurely = (keys, make) => this.link.send(keys, make);
    if (this.clock.now() >= this.#freshUntilMs) await this.#renewPlaces(send);
    for (const [index, storeKey] of storeKeys.entries()) {
      if (!this.#short.has(storeKey)) continue;
      const reply = await this.#short.regain(storeKey, send);
      if (reply?.stop !== undefined) return { ...reply, starts: [], stop: { ...reply.stop, key: index } };
    }
    return undefined;
  }

  async renewAll(send: SendSurely): Promise<void> {
    this.#endOld();
    await this.#renewPlaces(send);
    for (const storeKey of this.#short.keys) this.#warn(storeKey, await this.#short.regain(storeKey, send));
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
    let leastUs = Number.POSITIVE_INFINITY;
    this.#endOld();
    for (const { grant } of this.#kept.values()) leastUs = Math.min(leastUs, grant.facts.plan.leaseUs);
    if (this.#kept.size > 0) this.#arm(this.clock.now() + leastUs / 3000);
    // Where the store is away, it is told when it is back.
    await this.renewAll((keys, make) => this.link.send(keys, make)).catch(() => undefined);
  }

  /** Gives up what was held for too long. */
  #endOld(): void {
    const nowMs = this.clock.now();
    for (const { permit, grant, sinceMs, spots } of Array.from(this.#kept.values())) {
      if ((nowMs - sinceMs) * 1000 < grant.facts.plan.maxHoldUs) continue;
      this.#kept.delete(permit);
      for (const spot of spots) this.#short.free(spot);
      this.onLost(permit, nowMs - sinceMs);
    }
  }

  /** Renews all places that there are. Rejects when some could not be, after all were tried. */
  async #renewPlaces(send: SendSurely): Promise<void> {
    const groups = new Map<string, [Spot, Kept][]>();
    for (const kept of this.#kept.values()) {
      for (const spot of kept.spots) {
        if (spot.place === undefined) continue;
        const name = spot.storeKeys.join("\n");
        const group = groups.get(name);
        if (group === undefined) groups.set(name, [[spot, kept]]);
        else group.push([spot, kept]);
      }
    }
    const renewed = await Promise.allSettled(Array.from(groups.values(), (group) => this.#renewGroup(group, send)));
    let freshUntilMs = Number.POSITIVE_INFINITY;
    for (const { spots } of this.#kept.values())
      for (const spot of spots) freshUntilMs = Math.min(freshUntilMs, spot.freshUntilMs);
    this.#freshUntilMs = freshUntilMs;
    const failed = renewed.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  async #renewGroup(group: readonly (readonly [Spot, Kept])[], send: SendSurely): Promise<void> {
    for (let from = 0; from < group.length; from += TOGETHER_MOST) {
      const part = group.slice(from, from + TOGETHER_MOST);
      const [{ storeKeys, leaseUs }] = part[0];
      const places = part.flatMap(([{ place }]) => place ?? []);
      const rules = rulesOf(part);
      const sentMs = this.clock.now();
      const { lost } = await send(storeKeys, (by) => ({ kind: "renew", ...by, places, leaseUs, ...rules }) as const);
      const gone = new Set(lost);
      for (const [spot, kept] of part) {
        if (spot.isGone) continue;
        if (spot.place === undefined || !gone.has(spot.place)) spot.freshUntilMs = sentMs + leaseUs / 1000;
        else this.#lapsed(spot, kept);
      }
    }
  }

  /** The store has forgotten a place: it stood still, or was cut off, for a whole lifetime. */
  #lapsed(spot: Spot, kept: Kept): void {
    spot.place = undefined;
    spot.freshUntilMs = Number.POSITIVE_INFINITY;
    if (spot.key !== undefined) {
      this.#short.add(spot);
      return;
    }
    kept.spots.delete(spot);
    this.#miss(kept);
  }

  #miss({ grant, sinceMs, spots }: Kept): void {
    const { plan } = grant.facts;
    for (const spot of spotsOf(plan, sinceMs + plan.maxHoldUs / 1000)) {
      spots.add(spot);
      this.#short.add(spot);
    }
  }

  /** Says once that tasks run beyond the limit, if they do. */
  #warn(storeKey: string, reply: TakeReply | undefined): void {
    if (reply?.stop?.kind !== "concurrency" || !this.#short.isNews(storeKey)) return;
    const { store, onLost } = this.link.parts;
    onLost(
      storeKey,
      `a task of this process runs without a place: ${store.name} heard nothing of it for permitTtl, and others have taken all there are. It gets the next one, and nothing else starts here before`,
    );
  }
}

/** The policy that this process has at the keys of these places; nothing when it has changed since all of them were granted. */
function rulesOf(part: readonly (readonly [Spot, Kept])[]): { readonly ruleIds?: readonly string[] } {
  const current = part.find(([, { isFormer }]) => !isFormer);
  if (current === undefined) return {};
  const [{ key }, { grant }] = current;
  return { ruleIds: (key === undefined ? grant.facts.plan.keys : [key]).map(({ ruleId }) => ruleId) };
}
