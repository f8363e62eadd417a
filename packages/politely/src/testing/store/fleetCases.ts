import { answerOf } from "../../core/answer.js";
import type { Limits } from "../../policy/types.js";
import { pause, same, until } from "../httpWorld.js";
import {
  type Asker,
  holds,
  isGrowing,
  keyOf,
  reach,
  renewedPlace,
  type StoreCases,
  type TakenStart,
  type Wanted,
} from "./world.js";

const second = 1_000_000;
const minute = 60 * second;
const free: Limits = { window: "100/s", cooldown: "40ms" };
const WAITS = { doesWait: true };
/** How long a crowd asks, in real time. */
const CROWD_MS = 500;

/** What processes have to do with each other: places, answers, turns, and a crowd whose starts are counted by hand. */
export const FLEET_CASES: StoreCases = {
  "has as many in flight as the limit allows, and says who may go on when one comes back": async ({ a, b, key }) => {
    const wanted = key({ concurrency: 3 });
    const { starts } = await a.take(wanted, { count: 2 });
    same(await b.fit(wanted, 2), 1, "starts beside two in flight");
    const heard: string[] = [];
    const end = b.store.listen?.(b.process, (asker) => heard.push(asker));
    const { stop, nowUs } = await b.take(wanted, WAITS);
    const isSoon = (stop?.turnUs ?? 0) - nowUs <= second;
    same([stop?.limit, isSoon], ["concurrency", true], "as stop, and whether it is told to look again within 1 s");
    // Whoever listens may not be known at once.
    if (end !== undefined) await pause(400);
    same((await a.settle(starts[0])).wake, [b.asker], "as the one who may go on");
    if (end !== undefined) await until("the one who may go on is told", () => heard.includes(b.asker));
    end?.();
    same([await a.fit(wanted, 1), await b.fit(wanted, 2)], [0, 1], "starts of one who passes it, and its own");
  },
  "frees a place once its process has said nothing for its lifetime, and not before": async ({ a, b, key, spanMs }) => {
    const wanted = key({ concurrency: 1, permitTtl: 2 * spanMs });
    const taken = await a.start(wanted);
    await reach(a, taken.startedUs + 1000 * spanMs);
    const { nowUs: seenUs } = await a.renew(wanted, { places: [[renewedPlace(taken)]] });
    await reach(a, taken.startedUs + 2000 * spanMs);
    const { starts, nowUs } = await b.take(wanted);
    holds(starts.length === 0 || nowUs >= seenUs + 2000 * spanMs, "that the place is kept for its lifetime");
    await reach(b, seenUs + 2000 * spanMs);
    same((await b.look(wanted)).inFlight + (await b.fit(wanted, 1)), 1, "places held, and starts after that");
  },
  "frees a place after the longest hold, and then for good": async ({ a, b, name, spanMs }) => {
    const host = name();
    const lost = await a.start({ [host]: keyOf({ concurrency: 1, maxHold: spanMs }) });
    await reach(b, lost.startedUs + 1000 * spanMs);
    await a.renew(lost.wanted, { places: [[renewedPlace(lost)]] });
    const wanted = { [host]: keyOf({ concurrency: 1 }) };
    await b.start(wanted);
    await a.settle(lost);
    same(await a.fit(wanted, 1), 0, "starts after one that was lost came back");
  },
  "frees places that their process does not name, or leaves, and takes again those that are forgotten": async (
    world,
  ) => {
    const { a, b, key } = world;
    const [wanted, empty] = [key({ concurrency: 2 }), key({ concurrency: 2 })];
    const { starts } = await a.take(wanted, { count: 2 });
    await b.take(wanted, WAITS);
    const places = [starts.slice(0, 1).map(renewedPlace)];
    same((await a.renew(wanted, { places })).wake, [], "woken by what may not have arrived yet");
    same((await a.renew(wanted, { places, completeBefore: 2 })).wake, [b.asker], "woken by the place not named");
    for (let round = 0; round < 2; round++) await a.renew(empty, { places });
    same([await b.fit(wanted, 2), await b.fit(empty, 2)], [1, 1], "starts beside the place that is named");
    const { members } = await a.renew(wanted, { isLeaving: true, completeBefore: Number.MAX_SAFE_INTEGER });
    same([members, await b.fit(wanted, 2)], [1, 1], "members left, and starts");
  },
  "runs gaps and windows from the answer where that is asked for": async ({ a, b, key }) => {
    for (const limits of [{ minDelay: "10s" }, { window: "1/10s" }] satisfies Limits[]) {
      const wanted = key({ ...limits, countFrom: "answer" });
      await a.settle(await a.start(wanted), answerOf("unused"));
      const taken = await a.start(wanted);
      same(await b.fit(wanted, 1, { horizonUs: minute }), 0, "starts before the answer");
      const { nowUs } = await a.settle(taken);
      same((await b.take(wanted)).stop?.atUs, nowUs + 10 * second, "as the earliest start after the answer");
    }
  },
  "holds a key for everybody as long as its site asks, once for each incident": async ({ a, b, key }) => {
    const wanted = key(free);
    const { starts } = await a.take(wanted, { count: 2 });
    const { holds: held, nowUs } = await a.settle(starts[0], answerOf("rate_limited", minute, "429"));
    same(held[0], { index: 0, untilUs: nowUs + minute, step: 1, because: "429" }, "as hold");
    const again = await a.settle(starts[1], answerOf("rate_limited", second, "429"));
    same(again.holds, held, "as hold after another answer to a start from before");
    const { stop, isHeld } = await b.take(wanted);
    const expected = ["cooldown", nowUs + minute, "429", true];
    same([stop?.limit, stop?.atUs, stop?.because, isHeld], expected, "as stop for the other client");
  },
  "sends one probe after a hold, and the rest at its answer": async ({ a, b, key }) => {
    const wanted = key(free);
    await a.settle(await a.start(wanted), answerOf("rate_limited"));
    const probe = await afterHold(a, wanted);
    same((await b.take(wanted, WAITS)).stop?.limit, "probe", "as stop while the probe is out");
    same((await a.settle(probe, answerOf("unused"))).wake, [b.asker], "as the one who may go on");
    const next = await b.start(wanted);
    same(await a.fit(wanted, 1), 0, "starts while the next probe is out");
    await b.settle(next, answerOf("success"));
    same(await a.fit(wanted, 5), 5, "starts after the probe's answer");
  },
  "pauses for everybody, and forgets a cooldown only when all is reset": async ({ a, b, key }) => {
    const wanted = key({ minDelay: "1m", window: "1/m" });
    await a.record(wanted, { pauseUs: Number.POSITIVE_INFINITY });
    same((await b.take(wanted, WAITS)).stop?.limit, "pause", "as stop");
    same((await a.record(wanted, { pauseUs: 0 })).wake, [b.asker], "as the one who may go on");
    await b.start(wanted);
    await a.record(wanted, { reset: "pacing" });
    await b.settle(await b.start(wanted), answerOf("rate_limited", minute));
    await a.record(wanted, { reset: "pacing" });
    same((await b.take(wanted)).stop?.limit, "cooldown", "as stop after pacing was reset");
    await a.record(wanted, { reset: "all" });
    await b.start(wanted);
  },
  "tells those who wait to come one after the other, and serves them in that order": async ({ asker, key }) => {
    const wanted = key({ minDelay: "10s" });
    const { startedUs } = await asker().start(wanted);
    const waiting = [0, 1, 2, 3].map(asker);
    const turns: (number | undefined)[] = [];
    for (const each of waiting) turns.push((await each.take(wanted, WAITS)).stop?.turnUs);
    const expected = [1, 2, 3, 4].map((turn) => startedUs + turn * 10 * second);
    same(turns, expected, "as turns");
    same(await asker().fit(wanted, 1, { horizonUs: 40 * second }), 0, "starts of one who came later");
    const [leaving] = waiting.splice(1, 1);
    await leaving.renew(wanted, { gone: [leaving.asker] });
    const served: number[] = [];
    for (const each of waiting) served.push((await each.start(wanted, { ...WAITS, horizonUs: minute })).startedUs);
    same(served, expected.slice(0, 3), "as starts once the second has left");
  },
  "forgets who is a second late for its turn": async ({ a, b, asker, key, spanMs }) => {
    const wanted = key({ minDelay: spanMs });
    await a.start(wanted);
    const turnUs = (await a.take(wanted, WAITS)).stop?.turnUs ?? 0;
    await reach(b, turnUs);
    const { starts, nowUs } = await b.take(wanted);
    holds(starts.length === 0 || nowUs >= turnUs + second, "that nobody passes before that");
    await reach(b, turnUs + second);
    await asker(1).start(wanted);
  },
  "counts the processes that share a key, and says how many where most are": async ({ a, b, asker, key }) => {
    const shared = key({});
    const members: number[] = [];
    for (const each of [a, b, a, asker(1)]) members.push((await each.take({ ...key({}), ...shared })).members);
    same(members, [1, 2, 2, 3], "as members");
  },
  "keeps the limits of each key and of the one they share, however many ask at once": async ({ a, asker, key }) => {
    const hosts = [1, 2, 3].map(() => key({ minDelay: "20ms" }));
    const shared = key({ window: "4/40ms", concurrency: 3 });
    const all: TakenStart[] = [];
    let [inFlight, most] = [0, 0];
    const endMs = performance.now() + CROWD_MS;
    const ask = async (own: Asker, index: number): Promise<void> => {
      for (; performance.now() < endMs; await pause(1 + Math.random() * 6)) {
        const { starts } = await own.take({ ...hosts[index % 3], ...shared });
        if (starts.length === 0) continue;
        most = Math.max(most, ++inFlight);
        all.push(...starts);
        await pause(2);
        inFlight -= 1;
        await own.settle(starts[0]);
      }
    };
    await Promise.all(Array.from({ length: 18 }, (_, index) => ask(asker(index), index)));
    mostWithin(all, 4, 40);
    for (const [host] of hosts.map(Object.keys))
      mostWithin(
        all.filter(({ wanted }) => host in wanted),
        1,
        20,
      );
    same([Math.max(most, 3), (await a.look(shared)).inFlight], [3, 0], "as the most in flight, and places in the end");
  },
};

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

/** The start after a hold has ended. */
async function afterHold(asker: Asker, wanted: Wanted): Promise<TakenStart> {
  await reach(asker, (await asker.look(wanted)).heldUntilUs);
  return asker.start(wanted);
}

/** Fails when any interval of so many milliseconds holds more than `count` starts, or when there is none. */
function mostWithin(starts: readonly TakenStart[], count: number, perMs: number): void {
  const times = starts.map(({ startedUs }) => startedUs);
  const inside = times.map((endUs) => times.filter((us) => us > endUs - 1000 * perMs && us <= endUs).length);
  const most = Math.max(0, ...inside);
  holds(most > 0 && most <= count, `at most ${count} starts in any ${perMs} ms, and some; got ${most}`);
}
