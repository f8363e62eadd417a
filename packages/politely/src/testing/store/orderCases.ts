import type { TakeOperation } from "../../shared/operation.js";
import { pause, same } from "../httpWorld.js";
import type { Asker, Tried, Wanted } from "./asker.js";
import { keyOf } from "./operations.js";
import { reach, type StoreRule } from "./world.js";

const second = 1_000_000;
const minute = 60 * second;

/** How long one who waits may be passed over. */
const PATIENCE_MS = 2_000;

/** Turns, and policies that differ. */
export const ORDER_CASES: readonly StoreRule[] = [
  {
    title: "tells those who wait to come one after the other, and serves them in that order",
    play: async ({ asker, name }) => {
      const wanted = { [name()]: keyOf({ gapUs: minute }) };
      const { startedUs } = (await asker().start(wanted)).start;
      const waiting = [new Waiter(asker("a"), wanted), new Waiter(asker("b"), wanted), new Waiter(asker("a"), wanted)];
      for (const waiter of waiting) await waiter.ask();
      const turns = waiting.map(({ turnUs }) => turnUs);
      const expected = [1, 2, 3].map((turn) => startedUs + turn * minute);
      same(turns, expected, "as turns");
      const served: number[] = [];
      for (const waiter of waiting) {
        const { starts } = await waiter.ask({ horizonUs: 10 * minute });
        served.push(...starts.map(({ start }) => start.startedUs));
      }
      same(served, expected, "as starts");
    },
  },
  {
    title: "lets nobody pass who comes later and has no turn",
    play: async ({ a, asker, name }) => {
      const wanted = { [name()]: keyOf({ gapUs: minute }) };
      const { startedUs } = (await a.start(wanted)).start;
      const waiter = new Waiter(asker("b"), wanted);
      await waiter.ask();
      const { starts, reply } = await a.take(wanted, { horizonUs: 1.5 * minute });
      same([starts.length, reply.stop?.turnUs], [0, startedUs + 2 * minute], "starts and turn of one who came later");
      const [taken] = (await waiter.ask({ horizonUs: 1.5 * minute })).starts;
      same(taken?.start.startedUs, startedUs + minute, "as start of the one whose turn it is");
    },
  },
  {
    title: "serves one who waits for a place, however often another takes it again",
    play: async ({ a, asker, name }) => {
      const key = name();
      const wanted = { [key]: keyOf({ concurrency: 1 }) };
      const waiter = new Waiter(asker("b"), wanted);
      const greedy = new Waiter(a, wanted);
      let holder: Tried | undefined;
      for (const endMs = performance.now() + PATIENCE_MS; performance.now() < endMs; ) {
        await pause(1);
        if (holder !== undefined) await a.settle([key], holder.starts[0]);
        const taken = await greedy.ask();
        holder = taken.starts.length > 0 ? taken : undefined;
        if (waiter.turnUs > 0 && taken.reply.nowUs < waiter.turnUs) continue;
        if ((await waiter.ask()).starts.length > 0) return;
      }
      throw new Error(`Expected a start for the one who waits; for ${PATIENCE_MS} ms they went to the other.`);
    },
  },
  {
    title: "forgets who leaves the line",
    play: async ({ a, b, name }) => {
      const key = name();
      const wanted = { [key]: keyOf({ gapUs: minute }) };
      const { startedUs } = (await a.start(wanted)).start;
      await a.take(wanted, { ticket: "first" });
      same((await b.take(wanted, { ticket: "second" })).reply.stop?.turnUs, startedUs + 2 * minute, "as second turn");
      same((await b.look(wanted))[0].waiting, 2, "in line");
      await a.leave([key], "first");
      same(
        (await b.take(wanted, { ticket: "second" })).reply.stop?.turnUs,
        startedUs + minute,
        "as turn after it left",
      );
      same((await b.look(wanted))[0].waiting, 1, "left in line");
    },
  },
  {
    title: "counts the processes that share a key",
    play: async ({ a, b, name }) => {
      const wanted = { [name()]: keyOf({}) };
      const fleet = async (asker: Asker, member: string): Promise<number> =>
        (await asker.take(wanted, { member })).reply.fleet;
      same([await fleet(a, "one"), await fleet(b, "two"), await fleet(a, "one")], [1, 2, 2], "as fleet");
      same(await fleet(a, ""), 0, "as fleet for one who does not ask");
    },
  },
  {
    title: "counts them at every key, and says how many there are where most are",
    play: async ({ a, b, name }) => {
      const shared = name();
      const fleet = async (asker: Asker, member: string): Promise<number> =>
        (await asker.take({ [name()]: keyOf({}), [shared]: keyOf({}) }, { member })).reply.fleet;
      same([await fleet(a, "one"), await fleet(b, "two"), await fleet(a, "three")], [1, 2, 3], "as fleet");
      await a.store.transact([shared], { kind: "leave", ...a.next(), ticket: "two" });
      same(await fleet(a, "one"), 2, "as fleet after one has left");
    },
  },
  {
    title: "applies the stricter of two policies until it has been gone for one lease",
    play: async ({ a, b, name, spanUs: leaseUs }) => {
      const key = name();
      const strict = { [key]: keyOf({ windows: [2, minute, 1] }) };
      const loose = { [key]: keyOf({ windows: [5, minute, 1] }) };
      const { startedUs } = (await a.start(strict, { leaseUs })).start;
      const { starts, reply } = await b.take(loose, { count: 5 });
      same([starts.length, reply.stricterAt], [1, 0], "starts beside a stricter policy, and its key");
      await reach(b, startedUs + leaseUs);
      const after = await b.take(loose, { count: 5 });
      same([after.starts.length, after.reply.stricterAt], [3, -1], "starts when that is gone, and the key");
    },
  },
  {
    title: "gives nothing away when a policy changes",
    play: async ({ a, b, name }) => {
      const key = name();
      await a.take({ [key]: keyOf({ windows: [3, minute, 1] }) }, { count: 3, leaseUs: 1 });
      const { nowUs } = await a.pause([key], -1);
      await reach(b, nowUs + 2);
      same(await b.fit({ [key]: keyOf({ windows: [4, minute, 1] }) }, 9), 1, "starts under a wider window");
      const bucket = name();
      await a.take({ [bucket]: keyOf({ rateCount: 1, ratePerUs: minute, burst: 2 }) }, { count: 2, leaseUs: 1 });
      await reach(b, (await a.pause([bucket], -1)).nowUs + 2);
      same(await b.fit({ [bucket]: keyOf({ rateCount: 2, ratePerUs: minute, burst: 4 }) }, 9), 0, "starts at once");
    },
  },
];

/** Somebody in line, who comes with what it was told. */
class Waiter {
  turnUs = 0;
  #joinedUs = 0;

  constructor(
    readonly asker: Asker,
    readonly wanted: Wanted,
  ) {}

  async ask(terms: Partial<TakeOperation> = {}): Promise<Tried> {
    const { asker, turnUs } = this;
    const tried = await asker.take(this.wanted, { ticket: asker.name, turnUs, joinedUs: this.#joinedUs, ...terms });
    const { stop, nowUs } = tried.reply;
    this.turnUs = stop?.turnUs ?? 0;
    if (stop === undefined) this.#joinedUs = 0;
    else if (this.#joinedUs === 0) this.#joinedUs = nowUs;
    return tried;
  }
}
