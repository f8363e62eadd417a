import { describe, expect, it } from "vitest";
import type { TakeOperation } from "../../../src/shared/operation.js";
import { keyOf } from "../../../src/testing/store/operations.js";
import { Place, type Tried, type Wanted } from "./place.js";

const ms = 1_000;
const second = 1_000 * ms;

/** Somebody in line, who comes with what it was told. */
class Waiter {
  turnUs = 0;
  joinedUs = 0;

  constructor(
    readonly place: Place,
    readonly name: string,
    readonly wanted: Wanted,
  ) {}

  ask(terms: Partial<TakeOperation> = {}): Tried {
    const { name, turnUs, joinedUs } = this;
    const tried = this.place.take(this.wanted, { ticket: name, turnUs, joinedUs, ...terms });
    const { stop, starts, nowUs } = tried.reply;
    if (stop === undefined) this.turnUs = this.joinedUs = 0;
    else {
      if (joinedUs === 0 || starts.length > 0) this.joinedUs = nowUs;
      this.turnUs = stop.turnUs;
    }
    return tried;
  }

  /** Asks at its turn, or now if that has passed. Gives the instant of its start, or undefined. */
  come(): number | undefined {
    this.place.nowUs = Math.max(this.place.nowUs, this.turnUs);
    return this.ask().starts[0]?.start.startedUs;
  }
}

function busy(host = keyOf({ gapUs: 2 * second })): { place: Place; wanted: Wanted; waiter: (name: string) => Waiter } {
  const place = new Place();
  const wanted = { host };
  place.start(wanted);
  return { place, wanted, waiter: (name) => new Waiter(place, name, wanted) };
}

describe("those who wait at a key", () => {
  it("are told turns one after the other, and start at these", () => {
    const { place, waiter } = busy();
    const beginUs = place.nowUs;
    const waiting = ["a", "b", "c"].map(waiter);
    for (const each of waiting) each.ask();
    expect(waiting.map(({ turnUs }) => turnUs - beginUs)).toEqual([2 * second, 4 * second, 6 * second]);
    expect(waiting.map((each) => each.come())).toEqual([2, 4, 6].map((seconds) => beginUs + seconds * second));
  });

  it("go to the end of the line for more, and each gets as much as the others", () => {
    const { place, waiter } = busy();
    const waiting = ["a", "b", "c"].map(waiter);
    for (const each of waiting) each.ask({ hasMore: true });
    const served: string[] = [];
    for (let turn = 0; turn < 9; turn++) {
      const next = waiting.reduce((first, each) => (each.turnUs < first.turnUs ? each : first));
      place.nowUs = next.turnUs;
      if (next.ask({ hasMore: true, count: 5 }).starts.length > 0) served.push(next.name);
    }
    expect(served.join("")).toBe("abcabcabc");
  });

  it("are not passed by one who comes later, also when it does not wait", () => {
    const { place, wanted, waiter } = busy();
    const first = waiter("a");
    first.ask();
    place.nowUs = first.turnUs;
    expect(place.fit(wanted, 1)).toBe(0);
    expect(first.come()).toBe(place.nowUs);
  });

  it("lose a turn that they do not take: after 100 ms it is for whoever comes", () => {
    const { place, wanted, waiter } = busy();
    const gone = waiter("gone");
    gone.ask();
    place.nowUs = gone.turnUs + 100 * ms - 1;
    expect(place.fit(wanted, 1)).toBe(0);
    expect(place.wait(1).fit(wanted, 1)).toBe(1);
  });

  it("are no longer counted a second after a turn that they did not take", () => {
    const { place, waiter } = busy();
    waiter("gone").ask();
    place.wait(3 * second - 1);
    expect(place.look({ host: keyOf({ gapUs: 2 * second }) })[0].waiting).toBe(1);
    place.wait(1);
    expect(place.look({ host: keyOf({ gapUs: 2 * second }) })[0].waiting).toBe(0);
    waiter("other").ask();
    expect(place.state("host").line).toEqual([]);
  });

  it("go before one whose turn it is, if they have waited for a second longer and are about to come", () => {
    const { place, waiter } = busy(keyOf({ gapUs: 200 * ms }));
    const old = waiter("old");
    old.ask();
    const joinedUs = old.joinedUs;
    // Somebody else was faster, again and again.
    for (let round = 0; round < 6; round++) {
      place.nowUs = old.turnUs;
      place.send(["host"], { kind: "leave", ...place.from(), ticket: "old" });
      place.start({ host: keyOf({ gapUs: 200 * ms }) });
      place.wait(ms);
      old.ask();
    }
    expect(place.nowUs - joinedUs).toBeGreaterThan(second);
    const young = waiter("young");
    young.ask();
    young.turnUs = old.turnUs;
    place.nowUs = old.turnUs;
    expect(young.ask().starts).toHaveLength(0);
    expect(old.come()).toBe(place.nowUs);
  });

  it("come back often for a place, a resumption or a probe, and the more of them wait the rarer each", () => {
    const place = new Place();
    const wanted = { host: keyOf({ concurrency: 1 }) };
    place.start(wanted);
    const turns = ["a", "b", "c"].map((ticket) => {
      const { stop, nowUs } = place.wait(0).take(wanted, { ticket }).reply;
      return (stop?.turnUs ?? 0) - nowUs;
    });
    expect(turns).toEqual([10 * ms, 30 * ms, 50 * ms]);
    place.wait(10 * second);
    const { stop } = place.take(wanted, { ticket: "a" }).reply;
    expect((stop?.turnUs ?? 0) - place.nowUs).toBe(250 * ms);
    place.send(["other"], { kind: "set", ...place.from(), pauseUs: Number.POSITIVE_INFINITY, reset: "nothing" });
    const paused = place.take({ other: keyOf({}) }, { ticket: "a" }).reply.stop;
    expect([paused?.kind, (paused?.turnUs ?? 0) - place.nowUs]).toEqual(["pause", 250 * ms]);
  });

  it("are not told to look for a place before another limit lets them start", () => {
    const place = new Place();
    const wanted = { host: keyOf({ concurrency: 1, gapUs: 5 * second }) };
    const { startedUs } = place.start(wanted).start;
    const { stop } = place.wait(second).take(wanted, { ticket: "a" }).reply;
    expect(stop).toMatchObject({ readyUs: startedUs + 5 * second, turnUs: startedUs + 5 * second });
  });

  it("stand in the line of the key that stops them longest, and leave every line", () => {
    const place = new Place();
    const wanted = { host: keyOf({ gapUs: second }), global: keyOf({ gapUs: 3 * second }) };
    place.start(wanted);
    place.take(wanted, { ticket: "a" });
    const waiting = (): number[] => place.look(wanted).map((look) => look.waiting);
    expect(waiting()).toEqual([0, 1]);
    place.send(["host", "global"], { kind: "leave", ...place.from(), ticket: "a" });
    expect(waiting()).toEqual([0, 0]);
  });

  it("do not come all at once when a hold or a period ends, but at the pace of the key", () => {
    const place = new Place();
    const wanted = { host: keyOf({ rateCount: 1, ratePerUs: second, burst: 3 }) };
    const taken = place.start(wanted);
    place.settle(["host"], taken, { answer: { kind: "rate_limited", retryAfterUs: 60 * second } });
    const turns = Array.from(
      { length: 6 },
      (_, index) => place.take(wanted, { ticket: `t${index}` }).reply.stop?.turnUs ?? 0,
    );
    expect(turns.map((turnUs) => (turnUs - place.nowUs) / second)).toEqual([60, 60, 60, 61, 62, 63]);
  });
});
