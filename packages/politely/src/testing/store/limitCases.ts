import type { CalendarPeriod, TakeKey } from "../../shared/operation.js";
import { pause, same } from "../httpWorld.js";
import type { Asker, Tried, Wanted } from "./asker.js";
import { keyOf } from "./operations.js";
import { holds, reach, type StoreRule } from "./world.js";

const second = 1_000_000;
const minute = 60 * second;
/** So far ahead that everything a case asks for is granted at once, for its instant. */
const ahead = { horizonUs: 10 * minute };

/** Limits of one key and of several, to the microsecond. */
export const LIMIT_CASES: readonly StoreRule[] = [
  {
    title: "keeps a gap to the microsecond",
    play: async ({ a, b, name }) => {
      const wanted = { [name()]: keyOf({ gapUs: second }) };
      same(offsets(await a.take(wanted, { count: 3, ...ahead })), [0, second, 2 * second], "as starts");
      const { reply, starts } = await b.take(wanted);
      same([starts.length, reply.stop?.kind, reply.stop?.key], [0, "minDelay", 0], "as answer at once");
    },
  },
  {
    title: "refills a bucket without losing a fraction",
    play: async ({ a, name }) => {
      const wanted = { [name()]: keyOf({ rateCount: 3, ratePerUs: second, burst: 2 }) };
      const expected = [0, 0, 333_334, 666_667, second, 1_333_334];
      same(offsets(await a.take(wanted, { count: 6, ...ahead })), expected, "as starts");
    },
  },
  {
    title: "counts a sliding window exactly",
    play: async ({ a, b, name }) => {
      const wanted = { [name()]: keyOf({ windows: [3, 10 * second, 1] }) };
      const first = await a.take(wanted, { count: 2 });
      same(first.starts.length, 2, "starts at once");
      const { starts } = await b.take(wanted, { count: 4, ...ahead });
      const [begin, lastUs] = [first.starts[0].start.startedUs, starts[0].start.startedUs];
      const expected = [lastUs, begin + 10 * second, begin + 10 * second, lastUs + 10 * second];
      same(
        starts.map(({ start }) => start.startedUs),
        expected,
        "as starts of the second client",
      );
    },
  },
  {
    title: "keeps several windows at once",
    play: async ({ a, name }) => {
      const wanted = { [name()]: keyOf({ windows: [2, second, 1, 3, 10 * second, 1] }) };
      const expected = [0, 0, second, 10 * second, 10 * second, 11 * second];
      same(offsets(await a.take(wanted, { count: 6, ...ahead })), expected, "as starts");
    },
  },
  {
    title: "counts a grouped window late and never early",
    play: async ({ a, name }) => {
      const grainUs = second / 10;
      const wanted = { [name()]: keyOf({ windows: [2, second, grainUs] }) };
      const starts = (await a.take(wanted, { count: 3, ...ahead })).starts.map(({ start }) => start.startedUs);
      same(starts[2], Math.ceil(starts[0] / grainUs) * grainUs + second, "as start of the third");
    },
  },
  {
    title: "keeps a calendar budget until its period is over",
    play: async ({ a, b, name }) => {
      const key = name();
      const { nowUs } = (await a.take({ [name()]: keyOf({}) })).reply;
      const period = { index: 7, fromUs: 0, untilUs: nowUs + minute };
      same(await a.fit({ [key]: monthly(period) }, 5, ahead), 2, "starts in the period");
      const { stop } = (await b.take({ [key]: monthly(period) })).reply;
      same([stop?.kind, stop?.readyUs], ["quota", period.untilUs], "as stop");
      same(await b.fit({ [key]: monthly({ ...period, index: 8 }) }, 5), 2, "starts in the next period");
    },
  },
  {
    title: "does nothing for a calendar period that does not run",
    play: async ({ a, name }) => {
      const key = name();
      const { nowUs } = (await a.take({ [name()]: keyOf({}) })).reply;
      const running = { index: 7, fromUs: 0, untilUs: nowUs + minute };
      for (const period of [
        { ...running, untilUs: nowUs },
        { ...running, fromUs: nowUs + minute },
      ]) {
        const { reply } = await a.take({ [key]: monthly(period) });
        same([reply.isStalePeriod, reply.starts.length], [true, 0], "as answer for another period");
      }
      same(await a.fit({ [key]: monthly(running) }, 5), 2, "starts in the period that runs");
    },
  },
  {
    title: "takes costs from rate, window and quota, and counts a start once in gap and concurrency",
    play: async ({ a, name }) => {
      const limits = { rateCount: 1, ratePerUs: second, burst: 5, windows: [5, 10 * second, 1], concurrency: 2 };
      const key = name();
      const wanted = { [key]: keyOf(limits, { cost: 3 }) };
      await a.start(wanted);
      const { stop } = (await a.take(wanted)).reply;
      same([stop?.kind, stop?.key], ["window", 0], "as stop of the second");
      same(await a.fit({ [key]: keyOf(limits, { cost: 2 }) }, 1), 1, "starts of a cost that fits");
      same((await a.look(wanted))[0].held, 2, "places held");
    },
  },
  {
    title: "keeps the gap that a process asks for beyond its rule",
    play: async ({ a, b, name }) => {
      const key = name();
      const { startedUs } = (await a.start({ [key]: keyOf({ gapUs: 1 }) })).start;
      const slow = { [key]: keyOf({ gapUs: 1 }, { slowUs: 5 * second }) };
      same((await b.take(slow)).reply.stop?.readyUs, startedUs + 5 * second, "as the earliest start");
    },
  },
  {
    title: "takes from several keys together or from none",
    play: async ({ a, b, name }) => {
      const [host, global] = [name("host"), name("global")];
      const narrow = keyOf({ windows: [1, minute, 1] });
      const wide = keyOf({ windows: [5, minute, 1], rateCount: 1, ratePerUs: minute, burst: 5, gapUs: 1 });
      await a.start({ [global]: narrow });
      const { starts, reply } = await b.take({ [host]: wide, [global]: narrow });
      same([starts.length, reply.stop?.key], [0, 1], "starts, and the key that stops them");
      const [look] = await a.look({ [host]: wide });
      same([look.starts, look.owed, look.windows[0], look.lastUs], [0, 0, 0, -1], "as what the refusal took");
      const other = name("another global");
      const { start } = await b.start({ [host]: wide, [other]: narrow });
      for (const key of [host, other]) {
        same((await a.look({ [key]: wide }))[0].lastUs, start.startedUs, `as last start of ${key}`);
      }
    },
  },
  {
    title: "grants ahead within the horizon for the exact instant, and nothing beyond it",
    play: async ({ a, b, name }) => {
      const wanted = { [name()]: keyOf({ gapUs: 10 * second }) };
      const { startedUs } = (await a.start(wanted)).start;
      const early = await b.take(wanted, { horizonUs: 5 * second });
      same([early.starts.length, early.reply.stop?.readyUs], [0, startedUs + 10 * second], "starts beyond the horizon");
      same((await b.start(wanted, ahead)).start.startedUs, startedUs + 10 * second, "as start within it");
    },
  },
  {
    title: "starts nothing before its time, asked as often as you like",
    play: async ({ a, b, name, spanUs: gapUs }) => {
      const wanted = { [name()]: keyOf({ gapUs }) };
      const starts: number[] = [];
      for (let turn = 0; starts.length < 4; turn++) {
        holds(turn < 10_000, "four starts within 10,000 questions");
        await pause(1);
        const { reply } = await [a, b][turn % 2].take(wanted);
        for (const { startedUs } of reply.starts) {
          same(startedUs, reply.nowUs, "as start without a horizon");
          starts.push(startedUs);
        }
      }
      for (let index = 1; index < starts.length; index++) {
        const betweenUs = starts[index] - starts[index - 1];
        holds(betweenUs >= gapUs, `${gapUs} µs between two starts; got ${betweenUs}`);
      }
    },
  },
  {
    title: "gives back what was not used, as far as later starts allow",
    play: async ({ a, b, name }) => {
      const limits = [
        { gapUs: minute },
        { windows: [1, minute, 1] },
        { rateCount: 1, ratePerUs: minute, burst: 1 },
        { concurrency: 1 },
      ];
      for (const limit of limits) {
        const key = name();
        const wanted = { [key]: keyOf(limit) };
        const taken = await a.start(wanted);
        same(await b.fit(wanted, 1), 0, "starts while it is out");
        await a.settle([key], taken, { isUnused: true });
        same(await b.fit(wanted, 2), 1, `starts after it came back to ${JSON.stringify(limit)}`);
      }
    },
  },
  {
    title: "corrects a cost that was estimated",
    play: async ({ a, name }) => {
      const key = name();
      const limits = { windows: [10, minute, 1], rateCount: 1, ratePerUs: minute, burst: 10 };
      const taken = await a.start({ [key]: keyOf(limits, { cost: 8 }) });
      await a.settle([key], taken, { spent: 3 });
      same(await a.fit({ [key]: keyOf(limits) }, 9), 7, "units left after 3 of 8 were spent");
    },
  },
  {
    title: "counts starts that were made without asking",
    play: async ({ a, b, name }) => {
      const wanted = { [name()]: keyOf({ windows: [3, minute, 1], gapUs: 30 * second }) };
      const { nowUs } = await a.record(wanted, [40_000, 20_000]);
      const { stop } = (await b.take(wanted)).reply;
      const untilUs = (stop?.readyUs ?? 0) - nowUs;
      same([stop?.kind, untilUs], ["minDelay", 30 * second - 20_000], "as stop, and from the record on");
      same((await b.look(wanted))[0].windows[0], 2, "units in the window");
    },
  },
  {
    title: "looks without changing anything",
    play: async ({ a, b, name }) => {
      const wanted = { [name()]: keyOf({ windows: [2, minute, 1], gapUs: 1, concurrency: 2 }) };
      const [fresh] = await a.look(wanted);
      same([fresh.lastUs, fresh.starts, fresh.held, fresh.waiting, fresh.stops], [-1, 0, 0, 0, []], "as a new key");
      await a.start(wanted);
      const before = await looked(a, wanted);
      for (const asker of [a, b, a]) same(await looked(asker, wanted), before, "as the same look again");
      same(before[0].windows[0], 1, "units in the window");
      await reach(a, before[0].lastUs + 2);
      same(await b.fit(wanted, 1), 1, "starts after the looks");
    },
  },
];

function monthly(period: CalendarPeriod): TakeKey {
  return keyOf({ quota: 2, calendar: "month UTC" }, { period });
}

/** When each start is, from the first on. */
function offsets({ starts }: Tried): number[] {
  return starts.map(({ start }) => start.startedUs - starts[0].start.startedUs);
}

/** A look without what changes as time passes. */
async function looked(asker: Asker, wanted: Wanted): Promise<Awaited<ReturnType<Asker["look"]>>> {
  return (await asker.look(wanted)).map((look) => ({ ...look, stops: [], windows: look.windows.slice(0, 1) }));
}
