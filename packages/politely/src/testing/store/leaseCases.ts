import { same } from "../httpWorld.js";
import { holds, isGrowing, reach, type StoreCases } from "./world.js";

const minute = 60_000_000;

/** Exclusive leases. */
export const LEASE_CASES: StoreCases = {
  "gives a lease to exactly one of twenty, and tells the others who it is and for how long": async (world) => {
    const lease = world.name("lease");
    const askers = Array.from({ length: 20 }, (_, index) => world.asker(index));
    const replies = await Promise.all(askers.map((each) => each.lease(lease, "take")));
    same(replies.filter(({ isHeld }) => isHeld).length, 1, "holders");
    const held = await askers[replies.findIndex(({ isHeld }) => isHeld)].lease(lease, "take");
    same([held.isHeld, held.remainingUs], [true, minute], "as the holder's answer when it asks again");
    const others = new Set(replies.map(({ label, token }) => `${label} ${token}`));
    same([...others], [`${held.label} ${held.token}`], "as holder and token");
    const { nowUs, remainingUs } = await world.b.lease(lease, "look");
    const errorUs = Math.abs(nowUs + remainingUs - held.nowUs - minute);
    holds(errorUs <= (world.a.store.clockErrorUs ?? 0), `the end that its holder knows; got ${errorUs} µs between`);
  },
  "lets only its holder renew or release a lease, and only until it has run out": async ({ a, b, name, spanMs }) => {
    const lease = name("lease");
    const held = await a.lease(lease, "take", { ttlUs: 1000 * spanMs });
    const early = await b.lease(lease, "take");
    holds(!early.isHeld || early.nowUs >= held.nowUs + 1000 * spanMs, "that it is held until it has run out");
    await reach(b, held.nowUs + 1000 * spanMs);
    same((await a.lease(lease, "renew")).isHeld, false, "as held for the one who comes too late");
    const next = await b.lease(lease, "take", { ttlUs: 1000 * spanMs });
    for (const act of ["renew", "release"] as const)
      same((await a.lease(lease, act)).token, next.token, `as token after the former holder asked to ${act} it`);
    same((await b.lease(lease, "renew")).remainingUs, minute, "left after its holder renewed it");
  },
  "gives every holder of a lease a larger token, whatever the time is at its process": async ({ a, b, name }) => {
    const lease = name("lease");
    const tokens: number[] = [];
    for (const [index, epochUs] of [Date.now() * 1000, 0, 1_000_000, Date.now() * 1000].entries()) {
      const own = [a, b][index % 2];
      tokens.push((await own.lease(lease, "take", { epochUs })).token);
      same((await own.lease(lease, "release", { epochUs })).isHeld, false, "as held after it was released");
    }
    holds(isGrowing(tokens), `tokens that grow; got ${tokens.join(", ")}`);
  },
};
