import type { SettleReply } from "../../shared/operation.js";
import { same } from "../httpWorld.js";
import type { Asker } from "./asker.js";
import { keyOf, type SettleTerms, type TakenStart } from "./operations.js";
import { holds, reach, type StoreRule } from "./world.js";

const second = 1_000_000;
const minute = 60 * second;
const free = keyOf({ windows: [100, second, 1] });
const shortUs = 40_000;
const throttled: SettleTerms = { answer: { kind: "rate_limited", because: "429" }, cooldownUs: [shortUs, 2 * shortUs] };

/** What answers do to a key: cooldowns, probes, budgets, pauses. */
export const ANSWER_CASES: readonly StoreRule[] = [
  {
    title: "holds a key for everybody as long as its site asks, and never shortens that",
    play: async ({ a, b, name }) => {
      const key = name();
      const { starts } = await a.take({ [key]: free }, { count: 2 });
      const answer = { kind: "rate_limited", retryAfterUs: minute, because: "429, Retry-After 60 s" } as const;
      const reply = await a.settle([key], starts[0], { answer });
      same([reply.cooldownUs, reply.steps], [[minute], [1]], "as cooldown and step");
      await a.settle([key], starts[1], { answer: { ...answer, retryAfterUs: second } });
      const { stop, isCooling } = (await b.take({ [key]: free })).reply;
      const expected = ["cooldown", reply.nowUs + minute, "429, Retry-After 60 s", true];
      same([stop?.kind, stop?.readyUs, stop?.because, isCooling], expected, "as stop for the other client");
    },
  },
  {
    title: "climbs a ladder once for each incident, and starts anew after a success",
    play: async ({ a, name }) => {
      const key = name();
      const { starts } = await a.take({ [key]: free }, { count: 3 });
      const replies: SettleReply[] = [];
      for (const taken of starts) replies.push(await a.settle([key], taken, throttled));
      same(
        replies.map(({ steps }) => steps[0]),
        [1, 1, 1],
        "as steps of one incident",
      );
      const second = await a.settle([key], await afterHold(a, key), throttled);
      same([second.steps, second.cooldownUs], [[2], [2 * shortUs]], "as step and hold of the next incident");
      await a.settle([key], await afterHold(a, key), { answer: { kind: "success" } });
      const third = await a.settle([key], await a.start({ [key]: free }), throttled);
      same(third.steps, [1], "as step after a success");
    },
  },
  {
    title: "takes the answer to a start that was granted ahead for part of the incident that began meanwhile",
    play: async ({ a, b, name }) => {
      const key = name();
      const wanted = { [key]: keyOf({ gapUs: second }) };
      const { starts } = await a.take(wanted, { count: 3, horizonUs: minute });
      const replies: SettleReply[] = [];
      for (const taken of starts) {
        replies.push(await b.settle([key], taken, { ...throttled, cooldownUs: [minute, 2 * minute] }));
      }
      same(
        replies.map(({ steps }) => steps[0]),
        [1, 1, 1],
        "as steps",
      );
    },
  },
  {
    title: "sends one probe after a hold, and the rest at its answer",
    play: async ({ a, b, name }) => {
      const key = name();
      await a.settle([key], await a.start({ [key]: free }), throttled);
      const probe = await afterHold(a, key);
      const { stop, nowUs } = (await b.take({ [key]: free })).reply;
      same(stop?.kind, "probe", "as stop while the probe is out");
      holds((stop?.turnUs ?? 0) - nowUs <= second, "that it is told to look again within a second");
      await a.settle([key], probe, { answer: { kind: "unused" } });
      const next = await b.start({ [key]: free });
      same(await a.fit({ [key]: free }, 1), 0, "starts while the next probe is out");
      await b.settle([key], next, { answer: { kind: "success" } });
      same(await a.fit({ [key]: free }, 5), 5, "starts after the probe's answer");
    },
  },
  {
    title: "backs off after errors by the ladder it is given",
    play: async ({ a, name }) => {
      const backoff = { kind: "exponential", baseUs: shortUs, maxUs: 3 * shortUs, jitter: 0.5 } as const;
      const key = name();
      const hold = async (taken: TakenStart, random: number): Promise<readonly number[]> =>
        (await a.settle([key], taken, { answer: { kind: "server_error", random }, backoff })).cooldownUs;
      same(await hold(await a.start({ [key]: free }), 0), [shortUs], "as first hold");
      same(await hold(await afterHold(a, key), 0.5), [2.5 * shortUs], "as second hold, with half the jitter");
    },
  },
  {
    title: "spreads what a site says is left until its budget is full again",
    play: async ({ a, b, name }) => {
      const key = name();
      const taken = await a.start({ [key]: free });
      const answer = { kind: "success", remaining: 10, resetUs: minute } as const;
      const { nowUs } = await a.settle([key], taken, { answer });
      const { stop } = (await b.take({ [key]: free })).reply;
      same([stop?.kind, stop?.readyUs], ["headers", taken.start.startedUs + 6 * second], "as stop with ten left");
      const later = await b.start({ [key]: free }, { horizonUs: minute });
      const none = await b.settle([key], later, { answer: { ...answer, remaining: 0, resetUs: 2 * minute } });
      const left = (await a.take({ [key]: free })).reply.stop?.readyUs;
      same(left, none.nowUs + 2 * minute, `as the earliest start with none left, said after ${nowUs}`);
    },
  },
  {
    title: "pauses for everybody until it is told to go on",
    play: async ({ a, b, name, spanUs }) => {
      const key = name();
      await a.pause([key], Number.POSITIVE_INFINITY);
      same((await b.take({ [key]: free })).reply.stop?.kind, "pause", "as stop");
      await b.pause([key], 0);
      same(await a.fit({ [key]: free }, 1), 1, "starts after it was ended");
      const { nowUs } = await a.pause([key], spanUs);
      const { reply } = await b.take({ [key]: free });
      holds(reply.starts.length === 0 || reply.nowUs >= nowUs + spanUs, "no start in a pause");
      await reach(b, nowUs + spanUs);
      same(await b.fit({ [key]: free }, 1), 1, "starts after it");
    },
  },
  {
    title: "forgets pacing at a reset, and a cooldown only when all is reset",
    play: async ({ a, b, name }) => {
      const key = name();
      const wanted = { [key]: keyOf({ gapUs: minute, windows: [1, minute, 1] }) };
      await a.start(wanted);
      await b.reset([key], "pacing");
      const taken = await a.start(wanted);
      await a.settle([key], taken, { answer: { kind: "rate_limited", retryAfterUs: minute } });
      await b.reset([key], "pacing");
      same((await a.take(wanted)).reply.stop?.kind, "cooldown", "as stop after pacing was reset");
      await b.reset([key], "all");
      same(await a.fit(wanted, 2), 1, "starts after all was reset");
    },
  },
];

/** The start after a hold has ended. */
async function afterHold(asker: Asker, key: string): Promise<TakenStart> {
  const { starts, reply } = await asker.take({ [key]: free });
  if (starts.length > 0) return starts[0];
  await reach(asker, reply.stop?.readyUs ?? 0);
  return asker.start({ [key]: free });
}
