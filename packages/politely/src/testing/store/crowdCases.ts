import { pause, same } from "../httpWorld.js";
import type { Asker, Wanted } from "./asker.js";
import { keyOf } from "./operations.js";
import { holds, type StoreRule, type StoreWorld } from "./world.js";

const ms = 1_000;

/** How long a crowd asks, in real time. */
const CROWD_MS = 400;

/** Many processes at two clients, all at once. Their starts are merged and counted by hand. */
export const CROWD_CASES: readonly StoreRule[] = [
  {
    title: "lets no more than N start in any P, however many ask at once",
    play: async (world) => {
      const wanted = { [world.name()]: keyOf({ windows: [7, 50 * ms, 1] }) };
      const starts = await crowd(world, 20, () => wanted);
      mostWithin(starts, 7, 50 * ms);
      holds(starts.length > 7, `more than 7 starts in ${CROWD_MS} ms; got ${starts.length}`);
    },
  },
  {
    title: "keeps the limit of each key and the one they share, however many ask at once",
    play: async (world) => {
      const hosts = [world.name("host 1"), world.name("host 2"), world.name("host 3")];
      const global = world.name("global");
      const merged: { readonly host: string; readonly startedUs: number }[] = [];
      await crowd(
        world,
        18,
        (index) => ({
          [hosts[index % 3]]: keyOf({ gapUs: 20 * ms }),
          [global]: keyOf({ windows: [4, 40 * ms, 1] }),
        }),
        (wanted, startedUs) => merged.push({ host: Object.keys(wanted)[0], startedUs }),
      );
      const all = merged.map(({ startedUs }) => startedUs);
      mostWithin(all, 4, 40 * ms);
      for (const host of hosts) {
        const own = merged.filter((start) => start.host === host).map(({ startedUs }) => startedUs);
        mostWithin(own, 1, 20 * ms);
        holds(own.length > 0, `a start at ${host}`);
      }
    },
  },
  {
    title: "never has more in flight than allowed, however many ask at once",
    play: async ({ asker, name }) => {
      const key = name();
      const wanted = { [key]: keyOf({ concurrency: 3 }) };
      let inFlight = 0;
      let most = 0;
      let served = 0;
      await Promise.all(
        Array.from({ length: 12 }, async (_, index) => {
          const own = asker(index % 2 === 0 ? "a" : "b");
          for (const endMs = performance.now() + CROWD_MS; performance.now() < endMs; ) {
            const { starts } = await own.take(wanted);
            if (starts.length === 0) {
              await pause(1 + Math.random() * 4);
              continue;
            }
            inFlight += 1;
            most = Math.max(most, inFlight);
            served += 1;
            await pause(2);
            inFlight -= 1;
            await own.settle([key], starts[0]);
          }
        }),
      );
      holds(most <= 3, `at most 3 in flight; got ${most}`);
      holds(served > 3, `more than 3 starts; got ${served}`);
      same((await asker().look(wanted))[0].held, 0, "places held in the end");
    },
  },
];

/** Lets many processes ask for a while, as fast as they can, and gives their starts in order. */
async function crowd(
  { asker }: StoreWorld,
  count: number,
  wantedBy: (index: number) => Wanted,
  heard: (wanted: Wanted, startedUs: number) => void = () => undefined,
): Promise<number[]> {
  const starts: number[] = [];
  const endMs = performance.now() + CROWD_MS;
  const one = async (own: Asker, wanted: Wanted): Promise<void> => {
    while (performance.now() < endMs) {
      const { reply } = await own.take(wanted, { count: 2 });
      for (const { startedUs } of reply.starts) {
        starts.push(startedUs);
        heard(wanted, startedUs);
      }
      await pause(1 + Math.random() * 6);
    }
  };
  const askers = Array.from({ length: count }, (_, index) => asker(index % 2 === 0 ? "a" : "b"));
  await Promise.all(askers.map((own, index) => one(own, wantedBy(index))));
  return starts.sort((first, other) => first - other);
}

/** Fails when any interval of `perUs` holds more than `count` starts. */
function mostWithin(starts: readonly number[], count: number, perUs: number): void {
  for (const endUs of starts) {
    const inside = starts.filter((startedUs) => startedUs > endUs - perUs && startedUs <= endUs);
    holds(inside.length <= count, `at most ${count} starts in the ${perUs} µs up to ${endUs}; got ${inside.length}`);
  }
}
