import { same } from "../httpWorld.js";
import { holds, reach, type StoreRule, sameInstant } from "./world.js";

const second = 1_000_000;
const minute = 60 * second;

/** Exclusive leases. */
export const LEASE_CASES: readonly StoreRule[] = [
  {
    title: "has one holder of a lease, and tells the others who it is and for how long",
    play: async ({ a, b, name }) => {
      const lease = name("lease");
      same((await b.lease(lease, "look")).isHeld, false, "as held before anybody came");
      const held = await a.lease(lease, "take", { ttlUs: minute });
      same([held.isHeld, held.label, held.remainingUs], [true, `label of ${a.name}`, minute], "as the holder's answer");
      for (const act of ["take", "look"] as const) {
        const other = await b.lease(lease, act);
        const { isHeld, label, token } = other;
        same([isHeld, label, token], [false, held.label, held.token], `as the other's answer to ${act}`);
        sameInstant(b, other.nowUs + other.remainingUs, held.nowUs + minute, "as the end of the lease");
      }
    },
  },
  {
    title: "takes a lease asked for again by its holder for the same attempt",
    play: async ({ a, name }) => {
      const lease = name("lease");
      const first = await a.lease(lease, "take");
      const again = await a.lease(lease, "take");
      same([again.isHeld, again.token], [true, first.token], "as held, and the token");
    },
  },
  {
    title: "lets only the owner renew or release a lease",
    play: async ({ a, b, name }) => {
      const lease = name("lease");
      const held = await a.lease(lease, "take", { ttlUs: 10 * second });
      for (const act of ["renew", "release"] as const) {
        const { isHeld, token } = await b.lease(lease, act, { ttlUs: minute });
        same([isHeld, token], [false, held.token], `as the other's answer to ${act}`);
      }
      const renewed = await a.lease(lease, "renew", { ttlUs: minute });
      same(
        [renewed.isHeld, renewed.remainingUs],
        [true, minute],
        "as held after the owner renewed it, and for how long",
      );
      same((await a.lease(lease, "release")).isHeld, false, "as held after the owner released it");
      const next = await b.lease(lease, "take");
      holds(next.isHeld && next.token > held.token, `a token above ${held.token}; got ${next.token}`);
    },
  },
  {
    title: "judges when asked whether a lease has run out",
    play: async ({ a, b, name, spanUs }) => {
      const lease = name("lease");
      const held = await a.lease(lease, "take", { ttlUs: spanUs });
      const early = await b.lease(lease, "take");
      holds(!early.isHeld || early.nowUs >= held.nowUs + spanUs, "that it is held until it has run out");
      await reach(b, held.nowUs + spanUs);
      same((await a.lease(lease, "renew")).isHeld, false, "as held for the one who comes too late");
      const next = await b.lease(lease, "take");
      holds(next.isHeld && next.token > held.token, `a holder with a token above ${held.token}; got ${next.token}`);
      same((await a.lease(lease, "release")).token, next.token, "as token after the former holder released it");
      same((await b.lease(lease, "look")).isHeld, true, "as held by the second");
    },
  },
  {
    title: "gives a lease to exactly one of twenty who want it at once",
    play: async ({ asker, name }) => {
      const lease = name("lease");
      const askers = Array.from({ length: 20 }, (_, index) => asker(index % 2 === 0 ? "a" : "b"));
      const replies = await Promise.all(askers.map((each) => each.lease(lease, "take")));
      const holders = replies.filter(({ isHeld }) => isHeld);
      same(holders.length, 1, "holders");
      same(new Set(replies.map(({ label, token }) => `${label} ${token}`)).size, 1, "names of the holder");
    },
  },
];
