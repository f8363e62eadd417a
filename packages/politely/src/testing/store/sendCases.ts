import { same } from "../httpWorld.js";
import { keyOf, settleOf, takeOf } from "./operations.js";
import { holds, type StoreRule } from "./world.js";

const second = 1_000_000;
const minute = 60 * second;
const many = keyOf({ windows: [9, minute, 1], rateCount: 1, ratePerUs: minute, burst: 9 });

/** What happens when a reply is lost, and to keys beside the ones that are asked for. */
export const SEND_CASES: readonly StoreRule[] = [
  {
    title: "counts a take that is sent twice once, and answers it the same",
    play: async ({ a, b, name }) => {
      const key = name();
      const operation = takeOf(a.next(), [many], { count: 2 });
      const first = await a.store.transact([key], operation);
      same(first.starts.length, 2, "starts");
      // The second may come over another connection.
      for (const { store } of [a, b]) same(await store.transact([key], operation), first, "as the same answer");
      same((await a.look({ [key]: many }))[0].starts, 2, "starts counted");
    },
  },
  {
    title: "counts a take once that is sent twice at the same time",
    play: async ({ a, b, name }) => {
      const key = name();
      const operation = takeOf(a.next(), [many]);
      const replies = await Promise.all([a, b, a, b].map(({ store }) => store.transact([key], operation)));
      for (const reply of replies) same(reply.starts, replies[0].starts, "as the same start");
      same((await a.look({ [key]: many }))[0].starts, 1, "starts counted");
    },
  },
  {
    title: "settles and records once what is sent twice",
    play: async ({ a, b, name }) => {
      const key = name();
      await a.take({ [key]: many }, { count: 5 });
      const taken = await a.start({ [key]: many });
      const settle = settleOf(a.next(), taken, { isUnused: true });
      for (const { store } of [a, b]) await store.transact([key], settle);
      same((await a.look({ [key]: many }))[0].windows[0], 5, "units after one of six came back");
      const record = { kind: "record", ...a.next(), keys: [many], agesUs: [0] } as const;
      for (const { store } of [b, a]) await store.transact([key], record);
      same((await a.look({ [key]: many }))[0].windows[0], 6, "units after one was recorded");
    },
  },
  {
    title: "resets and pauses once what is sent twice",
    play: async ({ a, b, name }) => {
      const key = name();
      await a.take({ [key]: many }, { count: 5 });
      const reset = { kind: "set", ...a.next(), pauseUs: -1, reset: "pacing" } as const;
      await a.store.transact([key], reset);
      await b.take({ [key]: many }, { count: 3 });
      await b.store.transact([key], reset);
      same((await a.look({ [key]: many }))[0].windows[0], 3, "units since the one reset");
      const pause = { kind: "set", ...a.next(), pauseUs: minute, reset: "nothing" } as const;
      await a.store.transact([key], pause);
      await b.store.transact([key], { kind: "set", ...b.next(), pauseUs: 0, reset: "nothing" });
      await b.store.transact([key], pause);
      same((await a.look({ [key]: many }))[0].stops.length, 0, "stops after the pause was ended");
    },
  },
  {
    title: "does not carry out what arrives again after the asker has gone on",
    play: async ({ a, b, name }) => {
      const key = name();
      const late = takeOf(a.next(), [many]);
      await a.store.transact([key], late);
      await a.take({ [key]: many });
      await b.store.transact([key], late);
      same((await b.look({ [key]: many }))[0].starts, 2, "starts counted");
    },
  },
  {
    title: "gives every start a larger token, at whichever client",
    play: async ({ a, b, name }) => {
      const wanted = { [name()]: many };
      const tokens: number[] = [];
      for (const asker of [a, b, a, b]) {
        const { starts } = await asker.take(wanted, { count: 2 });
        tokens.push(...starts.map(({ start }) => start.token));
      }
      same(tokens.length, 8, "starts");
      for (let index = 1; index < tokens.length; index++) {
        holds(tokens[index] > tokens[index - 1], `a token above ${tokens[index - 1]}; got ${tokens[index]}`);
      }
    },
  },
  {
    title: "leaves keys alone that it was not asked about",
    play: async ({ a, name }) => {
      const key = name("Key");
      const others = [
        `${key} `,
        ` ${key}`,
        `${key}:1`,
        key.toLowerCase(),
        `${key}é`,
        `${key}e\u0301`,
        key.slice(0, -1),
      ];
      const narrow = keyOf({ windows: [1, minute, 1] });
      for (const each of [key, ...others]) same(await a.fit({ [each]: narrow }, 2), 1, `starts at "${each}"`);
    },
  },
  {
    title: "takes names of 2,000 characters, and names of any characters",
    play: async ({ a, b, name }) => {
      const odd = "\"quoted\" 'single' \\ % _ * ? [x] {tag} $1 ;-- / | \u00a0 é 漢字 😀 \uffff";
      const names = [name("x".repeat(1_900)).padEnd(1_999, "y"), name(odd)].flatMap((key) => [`${key}1`, `${key}2`]);
      const narrow = keyOf({ windows: [1, minute, 1] });
      for (const key of names) {
        same(await a.fit({ [key]: narrow }, 2), 1, `starts at "${key.slice(0, 60)}…"`);
        same(await b.fit({ [key]: narrow }, 2), 0, `starts at "${key.slice(0, 60)}…" for the other client`);
      }
      same(await b.fit(Object.fromEntries(names.map((key) => [key, narrow])), 1), 0, "starts at all of them together");
    },
  },
];
