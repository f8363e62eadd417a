import { answerOf } from "../../core/answer.js";
import { StoreError } from "../../errors.js";
import type { Limits } from "../../policy/types.js";
import { failureOf, same } from "../httpWorld.js";
import { holds, isGrowing, keyOf, type StoreCases } from "./world.js";

const second = 1_000_000;
const minute = 60 * second;
const narrow = keyOf({ window: "1/m" });
const month = { per: "month", timeZone: "UTC" } as const;
/** So far ahead that everything a case asks for is granted at once, for its instant. */
const AHEAD = { horizonUs: 60 * minute };
/** Limits, and when starts are, counted from the first: the first client takes those at once, the second all others. */
const PACES: readonly (readonly [Limits, readonly number[]])[] = [
  [{ minDelay: "10s" }, [0, 10 * second, 20 * second]],
  [{ rate: "3/s", burst: 2 }, [0, 0, 333_334, 666_667, second, 1_333_334]],
  [{ window: ["2/s", "3/10s"] }, [0, 0, second, 10 * second, 10 * second, 11 * second]],
];

/** Limits of one key and of several, operations that are sent twice, names and values of any kind. */
export const LIMIT_CASES: StoreCases = {
  "keeps gaps, rates and windows to the microsecond": async ({ a, b, key }) => {
    for (const [limits, expected] of PACES) {
      const wanted = key(limits);
      const first = await a.take(wanted, { count: expected.filter((us) => us === 0).length });
      const then = await b.take(wanted, { count: expected.length - first.starts.length, ...AHEAD });
      const all = [...first.starts, ...then.starts].map(({ startedUs }) => startedUs - first.starts[0].startedUs);
      same(all, expected, `as starts under ${JSON.stringify(limits)}`);
    }
    const [early, , late] = (await a.take(key({ window: "5000/1024s" }, 2_500), { count: 3, ...AHEAD })).starts;
    same(late.startedUs, Math.ceil(early.startedUs / second + 1_024) * second, "as start in a window of many units");
  },
  "keeps a quota until its period is over": async ({ a, b, key }) => {
    const wanted = key({ quota: { count: 2, ...month } });
    same(await a.fit(wanted, 5), 2, "starts in the period");
    const { stop } = await b.take(wanted);
    const today = new Date();
    const end = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 1);
    const leftUs = (stop?.atUs ?? 0) - (await b.look(wanted)).nowUs;
    const isThen = Math.abs(leftUs - 1000 * (end - today.getTime())) < minute;
    same([stop?.limit, isThen], ["quota", true], "as stop until the month ends, give or take a minute");
  },
  "takes from several keys together or from none": async ({ a, b, key }) => {
    const [full, other] = [key({ window: "1/m" }), key({ window: "1/m" })];
    const wide = key({ window: "5/m", rate: "1/m", burst: 5, concurrency: 5 }, 2);
    await a.start(full);
    const { starts, stop } = await b.take({ ...wide, ...full });
    same([starts.length, stop?.limit, stop?.index], [0, "window", 1], "starts, and what stops them");
    const none = await a.look(wide);
    same([none.starts, none.inFlight, none.tokens, none.windows[0].used], [0, 0, 5, 0], "as what it took");
    const { startedUs } = await b.start({ ...wide, ...other });
    const one = await a.look(wide);
    same([one.inFlight, one.tokens, one.windows[0].used], [1, 3, 2], "as what a start of two units took");
    same([one.lastUs, (await a.look(other)).lastUs], [startedUs, startedUs], "as last start of both");
  },
  "lets each process obey its own limits, and counts everybody's starts": async ({ a, b, name }) => {
    const [host, bucket] = [name(), name()];
    same(await a.fit({ [host]: keyOf({ window: "2/m" }) }, 9), 2, "starts under two a minute");
    same(await b.fit({ [host]: keyOf({ window: "5/m" }) }, 9), 3, "starts under five a minute");
    same(await a.fit({ [host]: keyOf({ rate: "1/m", burst: 5 }) }, 9), 0, "starts from a bucket that is new");
    const { startedUs } = await a.start({ [bucket]: keyOf({ rate: "1/m" }) });
    same(
      await b.fit({ [bucket]: keyOf({ rate: "2/m", burst: 4 }) }, 9),
      3,
      "starts from a larger bucket, which owes one",
    );
    const { stop } = await b.take({ [bucket]: keyOf({ minDelay: 1 }, 1, 5 * second) });
    const isSlower = (stop?.atUs ?? 0) >= startedUs + 5 * second;
    same(isSlower, true, "as what is said of one that is slower by itself");
  },
  "grants ahead within the horizon, for the exact instant or the next grain": async ({ a, b, key }) => {
    const wanted = key({ minDelay: "10s" });
    const { startedUs } = await a.start(wanted);
    const { starts, stop } = await b.take(wanted, { horizonUs: 5 * second });
    same([starts.length, stop?.limit, stop?.atUs], [0, "minDelay", startedUs + 10 * second], "starts beyond it");
    const grained = await b.start(wanted, { ...AHEAD, grainUs: second });
    same(grained.startedUs, Math.ceil(startedUs / second + 10) * second, "as start at a whole second");
  },
  "gives back what was never sent, and what an estimate was above what was spent": async ({ a, b, key }) => {
    const quota = { count: 1, ...month };
    const all: Limits[] = [{ minDelay: "1m" }, { window: "1/m" }, { rate: "1/m" }, { concurrency: 1 }, { quota }];
    for (const limits of all) {
      const wanted = key(limits);
      const taken = await a.start(wanted);
      same(await b.fit(wanted, 1), 0, "starts while it is out");
      await a.settle(taken, answerOf("unused"));
      same(await b.fit(wanted, 2), 1, `starts after it came back to ${JSON.stringify(limits)}`);
    }
    const eight = key({ window: "10/m", rate: "1/m", burst: 10 }, 8);
    await a.settle(await a.start(eight), undefined, true, 3);
    const { tokens, windows } = await b.look(eight);
    same([tokens, windows[0].used], [7, 3], "units left and used where 3 of 8 were spent");
  },
  "counts starts that were made without asking": async ({ a, b, key }) => {
    const wanted = key({ window: "3/m", minDelay: "30s", rate: "1/m", burst: 5 });
    const { nowUs } = await a.record(wanted, { agesUs: [40_000, 20_000], counts: [1, 1], owed: [1] });
    const { told, windows, tokens } = await b.look(wanted);
    same([told[0].limit, told[0].atUs], ["minDelay", nowUs - 20_000 + 30 * second], "as stop");
    same([windows[0].used, tokens], [2, 4], "units in the window, and left where one is still owed");
  },
  "counts once what is sent twice, and answers it the same": async ({ a, b, key }) => {
    const wanted = key({ window: "90/m" });
    const [first] = (await a.take(wanted)).starts;
    for (const send of [
      () => a.take(wanted, { count: 2 }),
      () => a.settle(first, answerOf("unused")),
      () => a.record(wanted, { agesUs: [0], counts: [1] }),
      () => a.record(wanted, { reset: "pacing", pauseUs: minute }),
    ]) {
      await send();
      const reply = await a.reply;
      await b.record(wanted, { agesUs: [0], counts: [1], pauseUs: 0 });
      const { windows, told } = await b.look(wanted);
      // The second may come over another connection.
      // What time it is there is told anew.
      for (const store of [a.store, b.store])
        same({ ...(await a.again(store)), nowUs: 0 }, { ...reply, nowUs: 0 }, "as the same answer");
      const now = await b.look(wanted);
      same([now.windows[0].used, now.told.length], [windows[0].used, told.length], "as units and stops as before");
    }
  },
  "counts a take once that is sent twice at the same time, or after its asker has gone on": async ({ a, b, key }) => {
    const wanted = key({ window: "9/m" });
    await Promise.all([a.take(wanted), a.again(b.store), a.again(), a.again(b.store)]);
    const late = a.again;
    await a.take(wanted);
    await late(b.store);
    same((await b.look(wanted)).starts, 2, "starts counted");
  },
  "gives every start a larger token, at whichever client": async ({ a, b, key }) => {
    const wanted = key({ window: "9/m" });
    const tokens: number[] = [];
    for (const each of [a, b, a])
      for (const { token } of (await each.take(wanted, { count: 2 })).starts) tokens.push(token);
    holds(tokens.length === 6 && isGrowing(tokens), `six tokens that grow; got ${tokens.join(", ")}`);
  },
  "tells names apart by every bit, and takes any of 2,000 characters": async ({ a, b, name }) => {
    const key = name("Key");
    const odd = name("\"quoted\" 'single' \\ % _ * ? [x] {tag} $1 ;-- / | \u00a0 é 漢字 😀 \uffff");
    const long = name("x".repeat(1_900)).padEnd(1_999, "y");
    const like = [`${key} `, ` ${key}`, `${key}:1`, key.toLowerCase(), `${key}é`, `${key}e\u0301`, key.slice(0, -1)];
    const names = [key, ...like, odd, `${odd}1`, `${long}1`, `${long}2`];
    for (const each of names) same(await a.fit({ [each]: narrow }, 2), 1, `starts at "${each.slice(0, 60)}"`);
    for (const each of names) same(await b.fit({ [each]: narrow }, 1), 0, "starts for the other client");
  },
  "says which key has a value that is none of the library's, and grants nothing": async ({ a, name, spoil }) => {
    if (spoil === undefined) return;
    const [odd, fine] = [name("odd"), name("fine")];
    await spoil(odd);
    const wanted = { [fine]: narrow, [odd]: narrow };
    for (const work of [() => a.take(wanted), () => a.look(wanted), () => a.lease(odd, "take")]) {
      const error = await failureOf(work(), `at "${odd}"`);
      const isTold = error instanceof StoreError && error.isLasting && error.message.includes(odd);
      holds(isTold, `a StoreError that lasts and names "${odd}"; got ${String(error)}`);
    }
    same(await a.fit({ [fine]: narrow }, 2), 1, "starts at the other key");
  },
};
