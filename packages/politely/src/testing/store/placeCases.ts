import { same } from "../httpWorld.js";
import { keyOf } from "./operations.js";
import { holds, reach, type StoreRule } from "./world.js";

const second = 1_000_000;
const minute = 60 * second;
const one = keyOf({ concurrency: 1 });

/** Requests in flight: places, their leases, and limits that run from the answer. */
export const PLACE_CASES: readonly StoreRule[] = [
  {
    title: "has as many in flight as the limit allows, over all clients",
    play: async ({ a, b, name }) => {
      const key = name();
      const wanted = { [key]: keyOf({ concurrency: 3 }) };
      const { starts } = await a.take(wanted, { count: 2 });
      same(await b.fit(wanted, 2), 1, "starts beside two in flight");
      const { stop, nowUs } = (await b.take(wanted)).reply;
      same(stop?.kind, "concurrency", "as stop");
      holds((stop?.turnUs ?? 0) - nowUs <= second, "that it is told to look again within a second");
      await a.settle([key], starts[0]);
      same(await b.fit(wanted, 2), 1, "starts after one came back");
      same((await a.look(wanted))[0].held, 3, "places held");
    },
  },
  {
    title: "gives a place back when its process says nothing for one lease, and not before",
    play: async ({ a, b, name, spanUs }) => {
      const wanted = { [name()]: one };
      const { startedUs } = (await a.start(wanted, { leaseUs: spanUs })).start;
      const { nowUs, starts } = (await b.take(wanted)).reply;
      holds(starts.length === 0 || nowUs >= startedUs + spanUs, "that the place is kept for its lease");
      await reach(b, startedUs + spanUs);
      same((await b.look(wanted))[0].held + (await b.fit(wanted, 1)), 1, "places held, and starts after that");
    },
  },
  {
    title: "keeps a place for as long as it is renewed",
    play: async ({ a, b, name, spanUs }) => {
      const key = name();
      const { start, place } = await a.start({ [key]: one }, { leaseUs: spanUs });
      same((await a.renew([key], [place], minute)).lost, [], "places lost");
      await reach(b, start.startedUs + spanUs + 1);
      same(await b.fit({ [key]: one }, 1), 0, "starts while it is renewed");
    },
  },
  {
    title: "gives a place back after the longest hold, renewed or not",
    play: async ({ a, b, name, spanUs }) => {
      const key = name();
      const { start, place } = await a.start({ [key]: one }, { maxHoldUs: spanUs });
      await a.renew([key], [place], minute);
      await reach(b, start.startedUs + spanUs);
      same(await b.fit({ [key]: one }, 1), 1, "starts after the longest hold");
    },
  },
  {
    title: "says which places are lost, and does not bring them back",
    play: async ({ a, b, name, spanUs }) => {
      const key = name();
      const { start, place } = await a.start({ [key]: one }, { leaseUs: spanUs });
      await reach(a, start.startedUs + spanUs);
      const next = await b.start({ [key]: one });
      same((await a.renew([key], [place, next.place], minute)).lost, [place], "places lost");
      same((await a.look({ [key]: one }))[0].held, 1, "places held");
    },
  },
  {
    title: "keeps a place that somebody else gives back",
    play: async ({ a, b, name, spanUs }) => {
      const key = name();
      const lost = await a.start({ [key]: one }, { leaseUs: spanUs });
      await reach(a, lost.start.startedUs + spanUs);
      await b.start({ [key]: one });
      // It was asleep and wakes up: the place is not its own any more.
      await a.settle([key], lost);
      same(await a.fit({ [key]: one }, 1), 0, "starts after the wrong one was given back");
      same((await a.look({ [key]: one }))[0].held, 1, "places held");
    },
  },
  {
    title: "runs a gap from the answer where that is asked for",
    play: async ({ a, b, name }) => {
      const key = name();
      const wanted = { [key]: keyOf({ gapUs: 10 * second, fromAnswer: true }) };
      const taken = await a.start(wanted);
      same(await b.fit(wanted, 1, { horizonUs: minute }), 0, "starts before the answer");
      const { nowUs } = await a.settle([key], taken);
      const { stop } = (await b.take(wanted)).reply;
      same([stop?.kind, stop?.readyUs], ["minDelay", nowUs + 10 * second], "as stop after the answer");
    },
  },
  {
    title: "runs windows from the answer where that is asked for",
    play: async ({ a, b, name }) => {
      const key = name();
      const wanted = { [key]: keyOf({ windows: [2, 10 * second, 1], fromAnswer: true }) };
      const { starts } = await a.take(wanted, { count: 2 });
      same(await b.fit(wanted, 1, { horizonUs: minute }), 0, "starts while two are under way");
      await a.settle([key], starts[0], { isUnused: true });
      same(await b.fit(wanted, 2), 1, "starts after one was not used");
      const { nowUs } = await a.settle([key], starts[1]);
      same((await b.take(wanted)).reply.stop?.readyUs, nowUs + 10 * second, "as the earliest start after the answer");
    },
  },
];
